"""Cost of allocate + free in PyTorch's caching allocator (called from C++) and in CuPy's pool (called from
Python), printed in Go's benchmark format so that benchstat can set it beside BenchmarkAllocFree of package cuda.

    python3 others.py [RUNS]
"""

import sys
import time

import cupy
import torch
from torch.utils.cpp_extension import load_inline

SIZES = {"512B": 512, "1MiB": 1 << 20, "64MiB": 64 << 20}
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
TIMES = 20_000

# One pair is timed like one iteration of the Go benchmark: the block freed is the next one allocated.
SOURCE = r"""
#include <c10/cuda/CUDACachingAllocator.h>
#include <chrono>
double pair_ns(int64_t bytes, int64_t times) {
  namespace a = c10::cuda::CUDACachingAllocator;
  for (int i = 0; i < 100; i++) a::raw_delete(a::raw_alloc(bytes));
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; i++) a::raw_delete(a::raw_alloc(bytes));
  std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / times;
}
"""


def live_blocks(n, alloc):
    """n blocks of 512 B to 1 MiB, as in the Go benchmark; sizes in a fixed scrambled order."""
    return [alloc(512 * (1 + i * 1103515245 % 2048)) for i in range(n)]


def cupy_pair_ns(alloc, size):
    for _ in range(100):
        alloc(size)
    start = time.perf_counter_ns()
    for _ in range(TIMES):
        alloc(size)  # freed at once: nothing refers to it
    return (time.perf_counter_ns() - start) / TIMES


def report(who, size, live, ns):
    print(f"BenchmarkAllocFree/who={who}/size={size}/live={live} {TIMES} {ns:.1f} ns/op", flush=True)


def main():
    ext = load_inline("pairs", cpp_sources=SOURCE, functions=["pair_ns"], with_cuda=True, verbose=False)
    torch.cuda.init()
    pool = cupy.cuda.MemoryPool()
    print(f"# torch {torch.__version__}, cupy {cupy.__version__}, {torch.cuda.get_device_name(0)}")
    for live in 0, 10_000:
        keep_torch = live_blocks(live, lambda n: torch.empty(n, dtype=torch.uint8, device="cuda"))
        keep_cupy = live_blocks(live, pool.malloc)
        for _ in range(RUNS):
            for name, size in SIZES.items():
                report("torch-c++", name, live, ext.pair_ns(size, TIMES))
                report("cupy", name, live, cupy_pair_ns(pool.malloc, size))
        del keep_torch, keep_cupy


if __name__ == "__main__":
    main()
