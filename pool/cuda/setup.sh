#!/bin/sh
# Prints the settings with which `go build -tags cuda` finds CUDA:
#
#   eval "$(pool/cuda/setup.sh)"            # a CUDA installation (CUDA_HOME, or the usual places)
#   eval "$(pool/cuda/setup.sh debian DIR)" # no CUDA: fetch Debian's headers and a stub of the driver into DIR
#
# The second needs apt-get, works on amd64 and arm64, fetches 0.8 GB once and keeps
# 1 MB of it. What is built with it runs wherever an NVIDIA driver is installed; here, the stub
# makes programs start and say that there is no GPU.
set -eu
compat=$(cd "$(dirname "$0")" && pwd)/compat

fail() { echo "setup.sh: $*" >&2; exit 1; }

# settings INCLUDE LIBRARIES prints the variables. compat comes first: see compat/cuda.h.
settings() {
	echo "export CGO_ENABLED=1"
	echo "export CGO_CFLAGS='-O2 -g -I$compat -I$1'"
	echo "export CGO_LDFLAGS='-O2 -g -L$2'"
}

# find_cuda looks for an installation with cuda.h and a libcuda to link with.
find_cuda() {
	for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda; do
		for include in "$home/include" "$home"/targets/*/include; do
			[ -n "$home" ] && [ -f "$include/cuda.h" ] || continue
			for lib in "$home"/lib64/stubs "$home"/lib/stubs "$home"/targets/*/lib/stubs /usr/lib/*-linux-gnu; do
				[ -e "$lib/libcuda.so" ] && settings "$include" "$lib" && return
			done
		done
	done
	fail "no cuda.h with a libcuda.so found: set CUDA_HOME, or use: $0 debian DIR"
}

# fetch_debian DIR gets cuda.h and the stub from Debian's package nvidia-cuda-dev, which lies in the
# component non-free. The machine's own list of sources serves, in a copy with that component.
fetch_debian() {
	mkdir -p "$1"
	dir=$(cd "$1" && pwd)
	if [ ! -e "$dir/lib/libcuda.so.1" ]; then
		tmp=$(mktemp -d)
		trap 'rm -rf "$tmp"' EXIT
		mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$dir/include" "$dir/lib"
		sed '/^Components:/s/$/ non-free/' /etc/apt/sources.list.d/debian.sources >"$tmp/list.sources"
		apt="apt-get -qq -oAPT::Sandbox::User=root -oDir::Etc::SourceList=$tmp/list.sources
			-oDir::Etc::SourceParts=/dev/null -oDir::State::Lists=$tmp/lists -oDir::Cache=$tmp/cache"
		$apt update >&2
		(cd "$tmp" && $apt download nvidia-cuda-dev >&2)
		dpkg-deb --fsys-tarfile "$tmp"/nvidia-cuda-dev_*.deb |
			tar -x -C "$tmp" --wildcards ./usr/include/cuda.h './usr/lib/*/stubs/libcuda.so'
		cp "$tmp/usr/include/cuda.h" "$dir/include/"
		cp "$tmp"/usr/lib/*/stubs/libcuda.so "$dir/lib/"
		ln -sf libcuda.so "$dir/lib/libcuda.so.1" # the name that programs look for
	fi
	settings "$dir/include" "$dir/lib"
	echo "export LD_LIBRARY_PATH='$dir/lib'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
}

case "${1:-}" in
"") find_cuda ;;
debian) [ $# = 2 ] || fail "usage: $0 debian DIR"; fetch_debian "$2" ;;
*) fail "usage: $0 [debian DIR]" ;;
esac
