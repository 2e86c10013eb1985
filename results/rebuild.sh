#!/usr/bin/env bash
# Makes every result that needs neither a GPU nor a quiet machine again, in
# place. Replays are exact: on an unchanged tree nothing changes but env.txt and
# the speed. Some ten minutes on two cores. Names make only those: compare report.
set -euo pipefail
cd "$(dirname "$0")/.."
replay=$(mktemp)
research=$(mktemp)
trap 'rm -f "$replay" "$research"' EXIT
go build -o "$replay" ./cmd/replay
go build -o "$research" ./cmd/research

only=" $* "
# wants NAME says whether a result is to be made.
wants() { [[ $only == "  " || $only == *" $1 "* ]]; }

# into FOLDER COMMAND... makes the folder and writes down where and how.
into() {
	dir=results/$1
	shift
	mkdir -p "$dir"
	{
		echo "machine  $(uname -srm), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)"
		echo "go       $(go version | cut -d' ' -f3-), GOEXPERIMENT=$(go env GOEXPERIMENT)"
		echo "commit   $(git rev-parse --short HEAD)$(git diff --quiet HEAD -- '*.go' || echo ', with changes')"
		echo "command  $*"
	} >"$dir/env.txt"
}

if wants compare; then
	into 2026-11-21-compare replay compare -o results/2026-11-21-compare
	"$replay" compare -o "$dir" >/dev/null
	find "$dir" -name '*.svg' ! -name 'limits-*' ! -name 'front-*' ! -name 'lbo-*' ! -name '*-gpt2.svg' -delete
	front=$(mktemp -d) # the picture of the README: few enough policies to tell apart
	"$replay" compare --policies never,cudajl,sqrt,v8step,pacer,optimum-overlap --cycle 10ms -o "$front" >/dev/null
	mv "$front/front-cycle-10ms.svg" "$dir/front.svg"
	rm -r "$front"
fi

if wants report; then
	into 2026-11-22-report replay report -o results/2026-11-22-report/report.html
	if command -v chromium >/dev/null; then # its first screen, as the README shows it
		page=$(mktemp -d)
		"$replay" report -o "$page/report.html"
		chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$page/profile" --window-size=1200,900 \
			--virtual-time-budget=5000 --screenshot="$dir/report.png" "file://$page/report.html" 2>/dev/null
		rm -r "$page"
	fi
fi

if wants corpus; then # one minute
	into 2026-11-23-corpus results/rebuild.sh corpus
	"$research" corpus -o "$dir" all results/2026-11-23-heaptrack/*.zst
fi

if wants baselines; then # some three minutes
	into 2026-11-23-baselines results/rebuild.sh baselines
	"$research" baselines -o "$dir" -live results/2026-11-22-fidelity/live.jsonl.gz,results/2026-11-23-rule/others.jsonl all results/2026-11-23-heaptrack/*.zst
	gzip -9nf "$dir/cells.csv"
fi
