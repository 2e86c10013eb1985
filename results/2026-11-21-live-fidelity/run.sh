#!/usr/bin/env bash
# The five built-in workloads, live and simulated. Run it in this folder, with
# replay on the path and nothing else running; it takes about six minutes.
set -euo pipefail
replay calibrate --heap 256MiB -o cost.json 2> calibrate.txt
: > live.jsonl
: > own-cost.jsonl
for trace in mlp resnet gpt2 vit gp; do
	for policy in cudajl never; do
		for limit in 1.5x 2x; do
			replay live $trace --policy $policy --limit $limit --ballast 256MiB --touch 4KiB --speed 1 \
				--cost cost.json --ladder 1x --format json | tee -a live.jsonl > last.jsonl
			# The same, simulated at the cost that this very run measured.
			cycle=$(head -1 last.jsonl | sed 's/.*"cycle_ns":\([0-9]*\).*/\1/')
			replay compare $trace --policies $policy --limits $limit --cycle ${cycle}ns --ladder 1x \
				--format json -o '' >> own-cost.jsonl
		done
	done
done
rm last.jsonl
replay calibrate --heap 256MiB -o cost-after.json 2> calibrate-after.txt
