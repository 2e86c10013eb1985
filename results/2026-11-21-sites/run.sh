#!/usr/bin/env bash
# Measures what noting sites costs, before and after sampling. $1 and $2: test binaries of package
# pool, of the commit before (with BenchmarkSites, its rates 0 and 1 as Sites false and true) and of this one.
set -euo pipefail
cd "$(dirname "$0")"
for _ in $(seq 12); do
	echo "# before"; "$1" -test.run '^$' -test.bench Sites -test.benchtime 40ms -test.cpu 1
	echo "# after"; "$2" -test.run '^$' -test.bench Sites -test.benchtime 40ms -test.cpu 1
done >sites.bench
"$2" -test.run '^$' -test.bench 'SiteDepth|Holders' -test.benchtime 100ms -test.cpu 1 -test.count 5 >depth.bench
