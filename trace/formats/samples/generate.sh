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
# The Go programs record themselves, while they give everything back by hand: see
# cmd/clients/frame/record.go. They should have the machine to themselves.
clients=$(mktemp -d)
trap 'rm -r "$clients"' EXIT
record() { # client, how it is counted
	(cd "../../../cmd/clients/$1" && go build -o "$clients" .)
	EAGERGC=off "$clients/$1" -way close -idle 100ms -by "$2" -record "$1.arrows"
}
record thumb gauge
record query gauge
record arrow own
record wasm own
record matrix account
# Those of GoMLX were recorded on a GPU: results/2026-11-23-gomlx says how.
