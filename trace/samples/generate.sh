#!/usr/bin/env bash
# Makes the samples from the recordings in ../shared/traces beside the repository.
set -eu
cd "$(dirname "$0")"
recordings=../../../shared/traces
for snapshot in "$recordings"/*.snapshot.pickle.*z; do
	name=$(basename "$snapshot" | cut -d. -f1)
	go run ../../cmd/replay import "$snapshot" \
		--sync "$recordings/$name.sync.kineto.json.gz" --name "$name" -o "$name.arrows"
done
# The Go programs record themselves.
(
	cd ../../cmd/clients
	for client in matrix wasm arrow query; do
		EAGERGC=off go run ./$client -way close -idle 100ms -record ../../trace/samples/$client.arrows
	done
	cd thumb && EAGERGC=off go run . -way close -idle 100ms -record ../../../trace/samples/thumb.arrows
)
