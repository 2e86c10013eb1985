#!/usr/bin/env bash
# archive.sh DIR makes the files of an archive: the committed code, the recordings, and check sums.
set -euo pipefail
out=$(mkdir -p "${1:?want a folder}" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
[[ -z $(git status --porcelain) ]] || { echo "archive: there are uncommitted changes" >&2; exit 1; }
version=$(sed -n 's/^version: //p' CITATION.cff)
name=eagergc-$version
git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$out/$name.tar.gz"
git archive --format=tar --prefix="$name-recordings/" HEAD trace/formats/samples results/2026-11-23-heaptrack LICENSE NOTICE CITATION.cff | gzip -9n >"$out/$name-recordings.tar.gz"
git ls-files -z trace/formats/samples results/2026-11-23-heaptrack | grep -zE '\.(arrows|zst)$' | xargs -0 sha256sum >"$out/recordings.sha256"
git rev-parse HEAD >"$out/COMMIT"
(cd "$out" && sha256sum "$name.tar.gz" "$name-recordings.tar.gz" recordings.sha256 COMMIT >SHA256SUMS && cat SHA256SUMS)
