#!/usr/bin/env bash
# Records six programs of Debian with heaptrack, and writes NAME.zst here. It needs Debian's packages
# heaptrack, sqlite3, gawk, libxml2-utils, ghostscript, git, python3 and zstd, and the history of this repository.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp programs/* "$work"
git_dir=$(git rev-parse --absolute-git-dir)
cd "$work"
/usr/bin/python3 inputs.py

record() {
	name=$1
	shift
	heaptrack -r -o "$work/$name" "$@" >"$name.out" 2>&1 || { cat "$name.out" >&2; exit 1; }
	zstd -dc "$name.raw.zst" | /usr/lib/heaptrack/libexec/heaptrack_interpret 2>/dev/null | zstd -19 -qfo "$here/$name.zst"
}
record sqlite3 sqlite3 :memory: '.read sqlite.sql'
record gawk gawk -f words.awk words.txt
record xmllint xmllint --xpath 'count(//item[price>5000]/note[string-length(.)>40])' big.xml
record gs gs -q -dNOPAUSE -dBATCH -sDEVICE=pdfwrite -sOutputFile=/dev/null page.ps
GIT_DIR=$git_dir record git git log --stat --no-color -n 150 839d106
PYTHONMALLOC=malloc record python3 /usr/bin/python3 tree.py # else python takes most from arenas of its own
