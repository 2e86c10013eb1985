#!/usr/bin/env bash
# Measures the lab again, in place: sizes, times, memory, frames, equality and pictures. It needs
# Go and Chromium, and brotli for its size; about ten minutes on two idle cores.
# EAGERGC_LAB_SNAPSHOT=FILE opens a large snapshot too: make-snapshot.go makes one.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=results/2026-11-22-lab
{
	echo "machine  $(uname -srm), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1); load $(cut -d' ' -f1 /proc/loadavg) before"
	echo "go       $(go version | cut -d' ' -f3-)"
	echo "browser  $(chromium --version)"
	echo "commit   $(git rev-parse --short HEAD)$(git diff --quiet HEAD -- '*.go' '*.js' || echo ', with changes')"
	echo "command  $dir/measure.sh"
} >$dir/env.txt
export EAGERGC_LAB_NUMBERS=$PWD/$dir
measure() { go test ./cmd/replay -count 1 -timeout 1h -v -run "^TestLab($1)\$"; }
measure 'Sizes|Times|Memory|Frames|Pictures' | grep -- '^ *--- '
EAGERGC_LAB=all measure IsEqual | grep -o '[0-9]* results are equal' | tee $dir/equality.txt
