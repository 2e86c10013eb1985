#!/usr/bin/env bash
# gpu.sh pack DIR builds the programs behind the claims about a GPU. DIR/run.sh then makes the figures on a
# machine that needs only an NVIDIA driver.
set -euo pipefail
[[ ${1-} == pack ]] || { echo "usage: gpu.sh pack DIR" >&2; exit 2; }
out=$(mkdir -p "${2:?want a folder}" && cd "$2" && pwd)
cd "$(dirname "$0")/.."
eval "$(pool/cuda/setup.sh debian "${XDG_CACHE_HOME:-$HOME/.cache}/eagergc/cuda")"
go build -trimpath -tags cuda -ldflags='-s -w' -o "$out/" ./cmd/replay
before=$(mktemp -d) # the last commit with the dense model; it is built with the library of that commit
git archive 215a23a | tar -xC "$before"
(cd "$before" && go build -trimpath -buildvcs=false -tags cuda -ldflags='-s -w' -o "$out/" ./cmd/research/dense)
rm -r "$before"
go test -trimpath -tags cuda -ldflags='-s -w' -c -o "$out/cuda.test" ./pool/cuda
git rev-parse HEAD >"$out/COMMIT"
cat >"$out/run.sh" <<'RUN'
#!/usr/bin/env bash
# run.sh prints the figures of ARTEFACT.md that need a GPU.
cd "$(dirname "$0")"
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/nvidia/lib64
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; cat COMMIT
echo "== three numbers on a device, and the tests of package cuda"
./cuda.test -test.run TestExample -test.v; ./cuda.test -test.short -test.timeout 3m
echo "== dense, 256 MiB of Go heap"
./dense --pool cuda --policy never,pacer --ballast 256MiB --runs 3
for policy in never pacer; do
	echo "== gnn under $policy"
	./replay live gnn --policy "$policy" --pool cuda --ballast 16MiB --limit 1.5x --for 5s
done
RUN
chmod +x "$out/run.sh"
du -sh "$out"
