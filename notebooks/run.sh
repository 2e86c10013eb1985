#!/usr/bin/env bash
# Executes the notebooks from top to bottom, in place; with --check into a
# throw-away copy. A cell that fails ends it. It needs Debian's packages
# jupyter-nbconvert and python3-ipykernel, and builds the Go kernel itself.
#
#   notebooks/run.sh [--check] [NOTEBOOK...]
set -euo pipefail
cd "$(dirname "$0")"
gonb=v0.11.4      # the kernel
goimports=v0.52.0 # which it calls
where=(--inplace)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${1:-}" = --check ]; then
	where=(--output-dir "$work/out")
	shift
fi
command -v jupyter >/dev/null || { echo "no jupyter: apt-get install jupyter-nbconvert python3-ipykernel" >&2; exit 1; }

build() { # PACKAGE VERSION NAME
	mkdir -p "$work/$3" && (cd "$work/$3" && go mod init scratch && go get "$1@$2" && go build -o "$work/bin/$3" "$1") >/dev/null 2>&1 ||
		{ echo "cannot build $1@$2" >&2; exit 1; }
}
mkdir -p "$work/bin" "$work/jupyter/kernels/gonb"
build github.com/janpfeifer/gonb "$gonb" gonb
build golang.org/x/tools/cmd/goimports "$goimports" goimports
printf '{"argv": ["%s", "--kernel", "{connection_file}"], "display_name": "Go (gonb)", "language": "go"}\n' \
	"$work/bin/gonb" >"$work/jupyter/kernels/gonb/kernel.json"

export PATH="$work/bin:$PATH" JUPYTER_PATH="$work/jupyter"
for notebook in "${@:-*.ipynb}"; do
	for file in $notebook; do
		echo "$file"
		jupyter nbconvert --to notebook --execute "${where[@]}" --ExecutePreprocessor.timeout=600 \
			--ClearMetadataPreprocessor.enabled=True --ClearMetadataPreprocessor.preserve_nb_metadata_mask='["kernelspec", "language_info"]' \
			"$file" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
	done
done
