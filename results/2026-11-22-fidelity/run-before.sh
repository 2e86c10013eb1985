#!/bin/bash
# Fidelity of the machine's world on a GPU and on the host, side by side on idle cores; then GPU tests and other allocators.
# Three lanes of four cores replay on the GPU and sleep where they wait; two lanes of two cores replay on the host.
# It limits itself: no cell starts after END seconds, and all is over 20 s later.
cd "$(dirname "$0")"; D=$PWD
export OUT=${OUT:-/tmp/gpu-out} T=${T:-/tmp/gpu-run}; mkdir -p "$OUT" $T/out; began=$(date +%s); export began
LAST=${LAST:-435} END=${END:-480} CAL=${CAL:-25s} POOL=${POOL:-cuda}; export END POOL
since() { echo $(($(date +%s) - began)); }; export -f since
for f in replay; do gzip -dc $f.gz >$T/$f && chmod +x $T/$f; done; cp *.arrows $T
{ nvidia-smi -L; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv; lscpu | grep -E 'Model name|Thread|^CPU\(s\)|L2|L3'; uname -r; cat /sys/kernel/mm/transparent_hugepage/enabled; cat COMMIT; uptime; } >"$OUT/env.txt" 2>&1
cd $T
echo "$(since) s: calibrate"
cal() { # cores program name flags
	c=$1 b=$2 n=$3; shift 3; extra=; [ $b = replay ] && extra="--cycles cycles-$n.jsonl"
	timeout 75 taskset -c $c ./$b calibrate "$@" --time ${CALT:-$CAL} $extra -o m-$n.json 2>m-$n.txt || echo "FAILED calibrate $n: $(tail -1 m-$n.txt)"; }
{ cal 12,13 replay host-1MiB --heap 1MiB; cal 12,13 replay host-16MiB --heap 16MiB; } &
{ cal 14,15 replay again-host-1MiB --heap 1MiB; cal 14,15 replay again-host-16MiB --heap 16MiB; } &
{ cal 0-3 replay gpu-16MiB --heap 16MiB --pool $POOL; cal 0-3 replay gpu-256MiB --heap 256MiB --pool $POOL; } &
{ cal 4-7 replay third-gpu-16MiB --heap 16MiB --pool $POOL; cal 4-7 replay third-gpu-256MiB --heap 256MiB --pool $POOL; } &
{ cal 8-11 replay again-gpu-16MiB --heap 16MiB --pool $POOL; cal 8-11 replay again-gpu-256MiB --heap 256MiB --pool $POOL; } &
wait
echo "$(since) s: live"
cell() { # cores where ballast trace limit policy run flags
	c=$1 w=$2 b=$3 t=$4 l=$5 p=$6 n=$7; shift 7
	left=$((END + 15 - $(since))); [ $left -lt 20 ] && { echo "{\"left_out\":\"$w $b $t $l $p $n\"}" >>left-$w.jsonl; return; }
	o=out/$w-$b-$t-$l-$p-$n.jsonl
	timeout $((left < 90 ? left : 90)) taskset -c $c ./replay live $t.arrows --policy $p --limit $l --ballast $b --machine m-$w-$b.json --format json "$@" >$o 2>$o.err || echo "{\"failed\":\"$w $b $t $l $p $n\",\"why\":\"$(tail -1 $o.err | tr -d '"')\"}" >>left-$w.jsonl
	sed -i "s/^{/{\"where\":\"$w\",\"ballast\":\"$b\",\"run\":\"$n\",/" $o; }
hostcell() { k=$1; cell $((12 + 2 * k)),$((13 + 2 * k)) host $2 $3 $4 $5 $6 --scale 16 $7; }
gpu() { # lane, then traces: every policy and limit
	g=$1; shift; for t; do for l in 2x 1.5x; do for p in never pacer cudajl sqrt; do
		[ $(since) -ge $LAST ] && { echo "{\"left_out\":\"gpu 16MiB $t $l $p\"}" >>left-gpu.jsonl; continue; }
		cell $((4 * g))-$((4 * g + 3)) gpu 16MiB $t $l $p 1 --pool $POOL --sleep; done; done; done; }
queue() { while [ $(since) -lt $LAST ]; do # the cells of 256 MiB, for whoever is done
	next=$(flock queue.lock sh -c 'head -1 queue; sed -i 1d queue'); [ -z "$next" ] && return
	cell $((4 * $1))-$((4 * $1 + 3)) gpu 256MiB $next 1 --pool $POOL --sleep; done; }
export -f cell hostcell
for l in 1.5x 2x; do for t in mlp gp vit rcnn burst; do for p in never pacer cudajl sqrt; do echo "$t $l $p"; done; done; done >queue
for b in 1MiB 16MiB; do for t in vit rcnn; do echo "$b $t 1.5x pacer compute --compute"; done; done >cells
{ for b in 1MiB 16MiB; do for l in 1.5x 2x; do for p in never cudajl sqrt pacer; do for t in spectral serve gnn gpt2 resnet rcnn burst ppo vit gp mlp; do echo "$b $t $l $p 1"; done; done; done; done
for n in 2; do for b in 1MiB 16MiB; do for t in vit gp burst; do for p in never pacer; do echo "$b $t 1.5x $p $n"; done; done; done; done; } | shuf --random-source=<(yes b) >>cells
likes() { k=$1; shift; for t; do for b in 1MiB 16MiB; do CALT=3s cal $((12 + 2 * k)),$((13 + 2 * k)) replay like-$t-$b --heap $b --like $t.arrows --scale 16; done; done; }
{ likes 0 gnn gpt2 resnet serve spectral & likes 1 rcnn burst ppo vit gp mlp & wait
  xargs -a cells -P 2 --process-slot-var=SLOT -L 1 bash -c 'hostcell $SLOT $0 $1 $2 $3 $4 $5'; } & HOST=$!
{ gpu 0 gpt2 gnn vit mlp; queue 0; } & A=$!
{ gpu 1 rcnn gp burst ppo resnet; queue 1; } & B=$!
{ gpu 2 serve spectral; queue 2; } & C=$!
wait $A $B $C
sed 's/.*/{"left_out":"gpu 256MiB &"}/' queue >>left-gpu.jsonl
echo "$(since) s: the rest"
one() { echo "--- $*"; timeout 40 taskset -c 0-11 "$@" 2>&1; }
L="--policy never --limit 1.5x --pool $POOL"
{ one ./replay live vit.arrows $L --ballast 16MiB --machine m-gpu-16MiB.json --waits rigid
  one ./replay live vit.arrows $L --ballast 16MiB --machine m-gpu-16MiB.json --waits elastic
  one ./replay live gnn.arrows $L --ballast 16MiB --machine m-gpu-16MiB.json; } >"$OUT/gnn.txt"
wait $HOST
echo "$(since) s: end"
cat out/host-*.jsonl left-host.jsonl >"$OUT/host.jsonl"; cat out/gpu-*.jsonl left-gpu.jsonl >"$OUT/gpu.jsonl"
tar czf "$OUT/calibrate.tar.gz" m-*.json m-*.txt cycles-*.jsonl; uptime >>"$OUT/env.txt"
wc -l "$OUT"/*.jsonl; cat left-*.jsonl | head -20; grep -E '^---|failed|time' "$OUT/gnn.txt"; ls -la "$OUT"
