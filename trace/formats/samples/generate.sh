#!/usr/bin/env bash
# Makes the samples from the recordings in ../shared/traces beside the repository. It needs xz.
set -eu
cd "$(dirname "$0")"
recordings=../../../../shared/traces
for snapshot in "$recordings"/*.snapshot.pickle.*z; do
	name=$(basename "$snapshot" | cut -d. -f1)
	case $snapshot in *.xz) xz -dc "$snapshot" ;; *) cat "$snapshot" ;; esac |
		go run ../../../cmd/replay import /dev/stdin \
		--sync "$recordings/$name.sync.kineto.json.gz" --name "$name" -o "$name.arrows"
done
# Five Go programs recorded themselves, while they freed everything by hand: see cmd/clients/frame/record.go at
# commit 215a23a, and this file there.
# Those of GoMLX were recorded on a GPU: results/2026-11-23-gomlx says how.
