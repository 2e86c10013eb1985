#!/usr/bin/env bash
# Measures the pool beside malloc, mmap and Go slices, and drops 1 TiB through
# 1 GiB. About six minutes. $1: where to write.
set -euo pipefail
out=$(realpath "${1:-$(dirname "$0")}")
cd "$(dirname "$0")/../.."
go test -c -o "$out/pool.test" ./pool
trap 'rm -f "$out/pool.test"' EXIT
cd "$out"
./pool.test -test.run '^$' -test.bench 'AllocFree$|AllocFreeParallel|Array|Point|Record|LiveBlocks' \
	-test.benchtime 30ms -test.count 10 -test.cpu 1,2 >pool.bench
./pool.test -test.run DropThrough -test.v -drop 1TiB -droplimit 1GiB >drop.txt
