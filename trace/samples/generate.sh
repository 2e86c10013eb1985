#!/usr/bin/env bash
# Makes the samples from the recordings in ../shared/traces beside the repository.
set -eu
cd "$(dirname "$0")"
recordings=../../../shared/traces
for name in mlp resnet gpt2 vit gp; do
	go run ../../cmd/replay import "$recordings/$name.snapshot.pickle.gz" \
		--sync "$recordings/$name.sync.kineto.json.gz" --name "$name" -o "$name.arrows"
done
