#!/usr/bin/env bash
# run.sh executes the notebooks from top to bottom, in place or, with --check, in a temporary copy. It stops
# at a cell that fails. It needs Go and Debian's packages jupyter-nbconvert, python3-ipykernel and
# python3-matplotlib.
#
#   notebooks/run.sh [--check] [NOTEBOOK...]
set -euo pipefail
cd "$(dirname "$0")"
where=(--inplace)
if [ "${1:-}" = --check ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	where=(--output-dir "$out")
	shift
fi
command -v jupyter >/dev/null || { echo "no jupyter: apt-get install jupyter-nbconvert python3-ipykernel python3-matplotlib" >&2; exit 1; }
[ $# -gt 0 ] || set -- *.ipynb
for file; do
	echo "$file"
	jupyter nbconvert --to notebook --execute "${where[@]}" --ExecutePreprocessor.timeout=600 --ClearMetadataPreprocessor.enabled=True "$file"
done
