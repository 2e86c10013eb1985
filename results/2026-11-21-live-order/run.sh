#!/usr/bin/env bash
# Five workloads under six policies on real memory, several runs at a time, each on
# eight idle cores of its own. $OUT: where to write. replay is on the path.
part() { # CPUS POLICY...
	cpus=$1; shift
	for policy; do
		for trace in mlp resnet gpt2 vit gp; do
			timeout 60 taskset -c "$cpus" replay live $trace --policy $policy --limit 2x --ballast 256MiB --touch 4KiB --speed 1 --cost "$OUT/cost.json" --format json >>"$OUT/live-$cpus.jsonl" 2>>"$OUT/err.txt"
		done
	done
}
taskset -c 0-7 replay calibrate --heap 256MiB -o "$OUT/cost.json" 2>"$OUT/calibrate.txt"
if [ "$(nproc)" -ge 32 ]; then
	part 0-7 pacer cudajl & part 8-15 sqrt growth:1 & part 16-23 v8step never & wait
else
	part 0-7 pacer cudajl v8step & part 8-15 sqrt growth:1 never & wait
fi
