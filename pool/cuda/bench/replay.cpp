// Replays a recording on another allocator, under the same limit as replay live, for
// a program under a garbage collector that collects at refusals only: what is dropped
// stays until an allocation is refused, then all of it is freed, which takes no time of
// its own, and the allocation is tried again.
//
//   replay export gnn --to text -o gnn.text
//   g++ -std=c++20 -O2 -I$CUDA/include replay.cpp -o replay-other -lcuda
//   replay-other async gnn.text 47736929400
//
// The allocators are async, a pool of the driver (cuMemAllocFromPoolAsync) of that size
// at most, and, built with -DTORCH, PyTorch's headers and -lc10 -lc10_cuda, torch: its
// caching allocator, to which PYTORCH_CUDA_ALLOC_CONF applies. CUDA 12.2 or later.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#ifdef TORCH
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

using ns = int64_t;

static ns now() {
	return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void must(CUresult r, const char *what) {
	if (r == CUDA_SUCCESS) return;
	const char *name = "?";
	cuGetErrorName(r, &name);
	fprintf(stderr, "%s: %s\n", what, name);
	exit(1);
}

struct Allocator {
	virtual ~Allocator() = default;
	virtual CUdeviceptr get(size_t n) = 0; // 0: refused
	virtual void give(CUdeviceptr p) = 0;
	virtual void settle() {}         // after a collection
	virtual uint64_t reserved() = 0; // bytes, the most so far
};

struct Async : Allocator {
	CUmemoryPool pool = nullptr;
	explicit Async(uint64_t limit) {
		CUmemPoolProps props = {};
		props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
		props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		props.maxSize = limit >> 25 << 25; // the driver wants whole chunks
		must(cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
		uint64_t keep = UINT64_MAX;
		must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "cuMemPoolSetAttribute");
	}
	CUdeviceptr get(size_t n) override {
		CUdeviceptr p = 0;
		CUresult r = cuMemAllocFromPoolAsync(&p, n, pool, nullptr);
		if (r == CUDA_ERROR_OUT_OF_MEMORY) return 0;
		must(r, "cuMemAllocFromPoolAsync");
		return p;
	}
	void give(CUdeviceptr p) override { must(cuMemFreeAsync(p, nullptr), "cuMemFreeAsync"); }
	void settle() override { must(cuStreamSynchronize(nullptr), "cuStreamSynchronize"); }
	uint64_t reserved() override {
		uint64_t n = 0;
		must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &n), "cuMemPoolGetAttribute");
		return n;
	}
};

#ifdef TORCH
namespace torch_alloc = c10::cuda::CUDACachingAllocator;
struct Torch : Allocator {
	explicit Torch(uint64_t limit) {
		size_t free, total;
		c10::cuda::set_device(0);
		torch_alloc::get()->init(c10::cuda::device_count());
		must(cuMemGetInfo(&free, &total), "cuMemGetInfo");
		torch_alloc::setMemoryFraction(double(limit) / double(total), 0);
	}
	CUdeviceptr get(size_t n) override {
		try {
			return (CUdeviceptr)torch_alloc::raw_alloc(n);
		} catch (const c10::OutOfMemoryError &) {
			return 0;
		}
	}
	void give(CUdeviceptr p) override { torch_alloc::raw_delete((void *)p); }
	uint64_t reserved() override { return torch_alloc::getDeviceStats(0).reserved_bytes[0].peak; }
};
#endif

struct Event {
	char kind; // a(lloc), d(rop or free), s(ync)
	ns at;
	uint64_t id;
	int64_t amount; // bytes, or ns of a wait
};

static std::vector<Event> read(const char *file) {
	std::vector<Event> events;
	std::ifstream in(file);
	if (!in) {
		fprintf(stderr, "cannot read %s\n", file);
		exit(1);
	}
	ns first = -1;
	for (std::string line; std::getline(in, line);) {
		std::istringstream words(line);
		Event e = {};
		std::string kind;
		if (!(words >> e.at >> kind)) continue; // the header
		if (kind != "alloc" && kind != "drop" && kind != "free" && kind != "sync") continue;
		e.kind = kind == "alloc" ? 'a' : kind == "sync" ? 's' : 'd';
		for (std::string w; words >> w;) {
			if (w.rfind("id=", 0) == 0) e.id = strtoull(w.c_str() + 3, nullptr, 10);
			if (w.rfind(e.kind == 's' ? "duration=" : "bytes=", 0) == 0) e.amount = strtoll(w.c_str() + w.find('=') + 1, nullptr, 10);
		}
		if (first < 0) first = e.at;
		e.at -= first;
		events.push_back(e);
	}
	return events;
}

static void until(ns t) {
	while (now() < t) {}
}

int main(int argc, char **argv) {
	if (argc != 4) {
		fprintf(stderr, "usage: %s async|torch EVENTS LIMIT_BYTES\n", argv[0]);
		return 2;
	}
	std::string kind = argv[1];
	std::vector<Event> events = read(argv[2]);
	uint64_t limit = strtoull(argv[3], nullptr, 10);
	must(cuInit(0), "cuInit");
	CUdevice device;
	CUcontext ctx;
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	std::unique_ptr<Allocator> a;
	if (kind == "async") a = std::make_unique<Async>(limit);
#ifdef TORCH
	if (kind == "torch") a = std::make_unique<Torch>(limit);
#endif
	if (!a) {
		fprintf(stderr, "unknown allocator %s\n", argv[1]);
		return 2;
	}
	std::unordered_map<uint64_t, CUdeviceptr> held;
	std::vector<CUdeviceptr> garbage;
	int64_t refused = 0, failed = 0;
	ns spent = 0, longest = 0, shift = 0, start = now();
	for (const Event &e : events) {
		until(start + e.at + shift);
		ns begin = now();
		if (e.kind == 'd') {
			if (auto it = held.find(e.id); it != held.end()) {
				garbage.push_back(it->second);
				held.erase(it);
			}
			continue;
		}
		if (e.kind == 's') {
			until(begin + e.amount);
			must(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
			continue;
		}
		size_t n = std::max<int64_t>(e.amount, 1);
		CUdeviceptr p = a->get(n);
		if (p == 0) {
			refused++;
			for (CUdeviceptr g : garbage) a->give(g);
			garbage.clear();
			a->settle();
			p = a->get(n);
			failed += p == 0;
		}
		ns took = now() - begin;
		spent += took;
		longest = std::max(longest, took);
		if (took > 100'000) shift += took; // the program goes on later by that
		if (p == 0) continue;
		held[e.id] = p;
		must(cuMemsetD8Async(p, 1, std::min<size_t>(n, 4096), nullptr), "cuMemsetD8Async");
	}
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	printf("%s %s: %.3f s, %ld refused, %ld failed, %.2f GiB reserved, %.1f ms in the allocator, longest %.2f ms\n", kind.c_str(), argv[2],
	       (now() - start) / 1e9, refused, failed, a->reserved() / double(1 << 30), spent / 1e6, longest / 1e6);
	return 0;
}
