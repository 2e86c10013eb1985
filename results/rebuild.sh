#!/usr/bin/env bash
# rebuild.sh [NAME...] rebuilds the results that need neither a GPU nor an idle machine, in place. Replays
# are exact: on an unchanged tree only env.txt and the speed change. It takes about six minutes on two cores.
# The names are compare, report and corpus; without a name it rebuilds all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
replay=$(mktemp)
research=$(mktemp)
trap 'rm -f "$replay" "$research"' EXIT
go build -o "$replay" ./cmd/replay
go build -o "$research" ./cmd/research

only=" $* "
# wants NAME reports whether to rebuild a result.
wants() { [[ $only == "  " || $only == *" $1 "* ]]; }

# into FOLDER COMMAND... makes the folder, and records machine, Go, commit and command in env.txt.
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
	front=$(mktemp -d) # the picture of the README has few policies, so that they can be told apart
	"$replay" compare --policies never,host,cudajl,sqrt,v8,pacer,optimum-overlap --cycle 10ms -o "$front" >/dev/null
	mv "$front/front-cycle-10ms.svg" "$dir/front.svg"
	rm -r "$front"
fi

if wants report; then
	into 2026-11-22-report replay report -o results/2026-11-22-report/report.html
	if command -v chromium >/dev/null; then # the first screen of the report
		page=$(mktemp -d)
		"$replay" report -o "$page/report.html"
		chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$page/profile" --window-size=1200,900 \
			--virtual-time-budget=5000 --screenshot="$dir/report.png" "file://$page/report.html" 2>/dev/null
		rm -r "$page"
	fi
fi

if wants corpus; then # takes one minute
	into 2026-11-23-corpus results/rebuild.sh corpus
	"$research" corpus -o "$dir" all results/2026-11-23-heaptrack/*.zst
fi
