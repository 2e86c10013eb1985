#!/bin/bash
# calibrates, then runs every cell live on two cores of its own; a lane is two cores
cd "$(dirname "$0")"; D=$PWD; mkdir -p /tmp/f; cp traces/* /tmp/f; xz -dc replay.xz > /tmp/f/replay; chmod +x /tmp/f/replay; cd /tmp/f
{ uname -srm; lscpu | grep -E "Model name|Thread|^CPU\(s\)|L2|L3"; nproc; uptime; } > "${OUT:-.}"/env.txt
LANES=${LANES:-7}
for b in 1MiB 16MiB; do
 for k in $(seq 0 $((LANES-1))); do taskset -c $((2*k)),$((2*k+1)) ./replay calibrate --heap $b --time 25s -o m-$b-$k.json 2> m-$b-$k.txt & done; wait
done
tar cf "${OUT:-.}"/machines.tar m-*.json m-*.txt
cell() { k=$SLOT; b=$1; t=$2; l=$3; p=$4
 timeout 200 taskset -c $((2*k)),$((2*k+1)) ./replay live $t.arrows --policy $p --limit $l --ballast $b --machine m-$b-0.json --format json $5 $6 > out-$b-$t-$l-$p.jsonl 2> err-$b-$t-$l-$p.txt || echo "FAILED $b $t $l $p $(tail -1 err-$b-$t-$l-$p.txt)" >> failed.txt
 sed -i "s/^{/{\"ballast\":\"$b\",\"lane\":$k,/" out-$b-$t-$l-$p.jsonl; }
export -f cell; export OUT
for b in 1MiB 16MiB; do for l in 1.5x 2x; do for p in never cudajl sqrt pacer; do for t in spectral serve gnn gpt2 resnet rcnn burst ppo vit gp mlp; do echo "$b $t $l $p"; done; done; done; done > cells
shuf --random-source=<(yes) cells | timeout ${CAP:-400} xargs -P $LANES --process-slot-var=SLOT -L 1 bash -c 'cell $0 $1 $2 $3'
for t in burst resnet gp; do SLOT=0 cell 16MiB $t 1.5x cudajl --record rec-$t.arrows; cp rec-$t.arrows "${OUT:-.}"/; done 2>/dev/null
cat out-*.jsonl > "${OUT:-.}"/live.jsonl; cat failed.txt >> "${OUT:-.}"/env.txt; uptime >> "${OUT:-.}"/env.txt; wc -l "${OUT:-.}"/live.jsonl; cat failed.txt | head; cat m-*-0.txt
