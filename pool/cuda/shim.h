// What gorgonia.org/cu lacks (pinned memory, stream-ordered pools, packed
// kernel arguments), and the calls of the hot path once more: each function
// makes its context current and calls the driver within one call from Go, so
// both happen on the same OS thread and no goroutine has to be locked to one.
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

// Each call of the driver is counted and timed under its name: CALL(f, args).
#define CALLS(X)                                                                                             \
	X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemAllocManaged)                   \
	X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap)  \
	X(cuMemSetAccess) X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolSetAttribute) X(cuMemPoolTrimTo) \
	X(cuMemPoolGetAttribute) X(cuDeviceGetMemPool) X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuCtxSynchronize)            \
	X(cuStreamQuery) X(cuStreamWaitEvent) X(cuStreamBeginCapture)                 \
	X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags) X(cuGraphDestroy) X(cuGraphLaunch)              \
	X(cuGraphExecDestroy) X(cuEventRecord) X(cuEventQuery) X(cuMemcpyAsync) X(cuPointerGetAttributes)    \
	X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyPeerAsync) X(cuMemsetD8Async)                    \
	X(cuMemsetD16Async) X(cuMemsetD32Async) X(cuLaunchKernel) X(cuMemHostRegister) X(cuMemHostUnregister)
#define NUMBER(f) N_##f,
#define NAME(f) #f,
enum { CALLS(NUMBER) N_calls };
static const char *const eg_call_names[] = {CALLS(NAME)};
static struct {
	uint64_t calls, ns;
} eg_calls[N_calls];

static uint64_t eg_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static CUresult eg_counted(int n, uint64_t began, CUresult r) {
	__atomic_fetch_add(&eg_calls[n].ns, eg_now() - began, __ATOMIC_RELAXED);
	__atomic_fetch_add(&eg_calls[n].calls, 1, __ATOMIC_RELAXED);
	return r;
}
static void eg_count(int n, const char **name, uint64_t *calls, uint64_t *ns) {
	*name = eg_call_names[n];
	*calls = __atomic_load_n(&eg_calls[n].calls, __ATOMIC_RELAXED);
	*ns = __atomic_load_n(&eg_calls[n].ns, __ATOMIC_RELAXED);
}
#define CALL(f, ...)                                         \
	({                                                   \
		uint64_t began = eg_now();                   \
		eg_counted(N_##f, began, f(__VA_ARGS__));    \
	})

#define IN(ctx, call)                      \
	CUresult r = cuCtxSetCurrent(ctx); \
	return r != CUDA_SUCCESS ? r : (call)

// compat/cuda.h hides the failure of cuInit from cu; here it must be seen.
#ifdef EAGERGC_COMPAT_CUDA_H
#undef cuInit
#endif
static CUresult eg_init(void) { return cuInit(0); }

typedef uintptr_t handle; // a context, stream, event, pool or function: never Go memory

static CUresult eg_mem_alloc(handle ctx, size_t n, uint64_t *p) {
	IN((CUcontext)ctx, CALL(cuMemAlloc, (CUdeviceptr *)p, n));
}
static CUresult eg_mem_free(handle ctx, uint64_t p) { IN((CUcontext)ctx, CALL(cuMemFree, p)); }

static CUresult eg_synchronize(handle ctx) { IN((CUcontext)ctx, CALL(cuCtxSynchronize)); }

static CUresult eg_host_alloc(handle ctx, size_t n, uint64_t *p) {
	IN((CUcontext)ctx, CALL(cuMemHostAlloc, (void **)p, n, CU_MEMHOSTALLOC_PORTABLE));
}
static CUresult eg_host_free(handle ctx, uint64_t p) { IN((CUcontext)ctx, CALL(cuMemFreeHost, (void *)p)); }
static CUresult eg_host_register(handle ctx, uint64_t p, size_t n) {
	IN((CUcontext)ctx, CALL(cuMemHostRegister, (void *)p, n, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}
static CUresult eg_host_unregister(handle ctx, uint64_t p) {
	IN((CUcontext)ctx, CALL(cuMemHostUnregister, (void *)p));
}

static CUresult eg_managed_alloc(handle ctx, size_t n, uint64_t *p) {
	IN((CUcontext)ctx, CALL(cuMemAllocManaged, (CUdeviceptr *)p, n, CU_MEM_ATTACH_GLOBAL));
}

// Memory behind addresses, in chunks of one size. A handle is the memory of one.
static CUmemAllocationProp eg_on_device(int device) {
	CUmemAllocationProp prop = {0};
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	return prop;
}
static CUresult eg_granule(handle ctx, int device, size_t *n) {
	int can = 0;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS)
		r = cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
	if (r != CUDA_SUCCESS) return r;
	if (!can) return CUDA_ERROR_NOT_SUPPORTED;
	CUmemAllocationProp prop = eg_on_device(device);
	return cuMemGetAllocationGranularity(n, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}
static CUresult eg_addresses(handle ctx, size_t n, uint64_t *p) {
	IN((CUcontext)ctx, CALL(cuMemAddressReserve, (CUdeviceptr *)p, n, 0, 0, 0));
}
static CUresult eg_free_addresses(handle ctx, uint64_t p, size_t n) {
	IN((CUcontext)ctx, CALL(cuMemAddressFree, p, n));
}
static CUresult eg_chunks_release(handle ctx, int n, uint64_t *chunks) {
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	for (int k = 0; r == CUDA_SUCCESS && k < n; k++) r = CALL(cuMemRelease, chunks[k]);
	return r;
}
// All chunks are made, or none.
static CUresult eg_chunks_create(handle ctx, int device, size_t bytes, int n, uint64_t *chunks) {
	CUmemAllocationProp prop = eg_on_device(device);
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	for (int k = 0; r == CUDA_SUCCESS && k < n; k++) {
		r = CALL(cuMemCreate, (CUmemGenericAllocationHandle *)&chunks[k], bytes, &prop, 0);
		if (r != CUDA_SUCCESS) eg_chunks_release(ctx, k, chunks);
	}
	return r;
}
static CUresult eg_unmap(handle ctx, uint64_t p, size_t n) { IN((CUcontext)ctx, CALL(cuMemUnmap, p, n)); }
static CUresult eg_access(handle ctx, uint64_t p, size_t n, int32_t *users, int n_users) {
	CUmemAccessDesc access[64] = {0};
	if (n_users > 64) return CUDA_ERROR_INVALID_VALUE;
	for (int k = 0; k < n_users; k++) {
		access[k].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		access[k].location.id = users[k];
		access[k].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	}
	IN((CUcontext)ctx, CALL(cuMemSetAccess, p, n, access, n_users));
}
// All chunks are mapped side by side, for the devices that are to use them, or none.
static CUresult eg_map(handle ctx, uint64_t p, size_t bytes, int n, uint64_t *chunks, int32_t *users, int n_users) {
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	int done = 0;
	for (; r == CUDA_SUCCESS && done < n; done += r == CUDA_SUCCESS) r = CALL(cuMemMap, p + done * bytes, bytes, 0, chunks[done], 0);
	if (r == CUDA_SUCCESS) r = eg_access(ctx, p, n * bytes, users, n_users);
	if (r != CUDA_SUCCESS && done > 0) CALL(cuMemUnmap, p, done * bytes);
	return r;
}

// Memory pools: n_device is the device that the pool's memory lies on.
static CUresult eg_pool_create(handle ctx, int n_device, uint64_t threshold, handle *pool) {
	CUmemPoolProps props = {0};
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	props.location.id = n_device;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS) r = CALL(cuMemPoolCreate, (CUmemoryPool *)pool, &props);
	if (r == CUDA_SUCCESS)
		r = CALL(cuMemPoolSetAttribute, *(CUmemoryPool *)pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	return r;
}
static CUresult eg_pool_destroy(handle ctx, handle pool) {
	IN((CUcontext)ctx, CALL(cuMemPoolDestroy, (CUmemoryPool)pool));
}
static CUresult eg_pool_threshold(handle ctx, handle pool, uint64_t threshold) {
	IN((CUcontext)ctx, CALL(cuMemPoolSetAttribute, (CUmemoryPool)pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}
static CUresult eg_pool_trim(handle ctx, handle pool, size_t keep) {
	IN((CUcontext)ctx, CALL(cuMemPoolTrimTo, (CUmemoryPool)pool, keep));
}
static CUresult eg_pool_get(handle ctx, handle pool, int attribute, uint64_t *value) {
	IN((CUcontext)ctx, CALL(cuMemPoolGetAttribute, (CUmemoryPool)pool, (CUmemPool_attribute)attribute, value));
}
static CUresult eg_pool_usage(handle ctx, handle pool, uint64_t u[4]) {
	static const CUmemPool_attribute of[] = {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
		CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH};
	CUresult r = CUDA_SUCCESS;
	for (int k = 0; r == CUDA_SUCCESS && k < 4; k++) r = eg_pool_get(ctx, pool, of[k], &u[k]);
	return r;
}
static CUresult eg_pool_current(handle ctx, int device, handle *pool) {
	IN((CUcontext)ctx, CALL(cuDeviceGetMemPool, (CUmemoryPool *)pool, device));
}
static CUresult eg_pool_alloc(handle ctx, handle pool, size_t n, handle stream, uint64_t *p) {
	IN((CUcontext)ctx, CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)p, n, (CUmemoryPool)pool, (CUstream)stream));
}
static CUresult eg_pool_free(handle ctx, uint64_t p, handle stream) {
	IN((CUcontext)ctx, CALL(cuMemFreeAsync, p, (CUstream)stream));
}

static CUresult eg_stream_query(handle ctx, handle s) { IN((CUcontext)ctx, CALL(cuStreamQuery, (CUstream)s)); }
static CUresult eg_stream_wait(handle ctx, handle s, handle e) {
	IN((CUcontext)ctx, CALL(cuStreamWaitEvent, (CUstream)s, (CUevent)e, 0));
}

// Graphs. Relaxed: a pool may ask the driver for memory while work is recorded.
static CUresult eg_capture_begin(handle ctx, handle s) {
	IN((CUcontext)ctx, CALL(cuStreamBeginCapture, (CUstream)s, CU_STREAM_CAPTURE_MODE_RELAXED));
}
static CUresult eg_capture_end(handle ctx, handle s, handle *graph) {
	IN((CUcontext)ctx, CALL(cuStreamEndCapture, (CUstream)s, (CUgraph *)graph));
}
static CUresult eg_graph_instantiate(handle ctx, handle graph, handle *exec) {
	IN((CUcontext)ctx, CALL(cuGraphInstantiateWithFlags, (CUgraphExec *)exec, (CUgraph)graph, 0));
}
static CUresult eg_graph_free(handle ctx, handle graph) {
	IN((CUcontext)ctx, CALL(cuGraphDestroy, (CUgraph)graph));
}
static CUresult eg_graph_launch(handle ctx, handle exec, handle s) {
	IN((CUcontext)ctx, CALL(cuGraphLaunch, (CUgraphExec)exec, (CUstream)s));
}
static CUresult eg_graph_destroy(handle ctx, handle exec) {
	IN((CUcontext)ctx, CALL(cuGraphExecDestroy, (CUgraphExec)exec));
}

static CUresult eg_event_record(handle ctx, handle e, handle s) {
	IN((CUcontext)ctx, CALL(cuEventRecord, (CUevent)e, (CUstream)s));
}
static CUresult eg_event_query(handle ctx, handle e) { IN((CUcontext)ctx, CALL(cuEventQuery, (CUevent)e)); }

static CUresult eg_copy(handle ctx, uint64_t dst, uint64_t src, size_t n, handle s) {
	IN((CUcontext)ctx, CALL(cuMemcpyAsync, dst, src, n, (CUstream)s));
}
static CUresult eg_upload(handle ctx, uint64_t dst, uint8_t *src, size_t n, handle s, int *pinned) {
	CUmemorytype type = 0; // stays 0 for memory that the driver does not know
	CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	void *to = &type;
	CUresult known = CALL(cuPointerGetAttributes, 1, &what, &to, (CUdeviceptr)src);
	*pinned = known == CUDA_SUCCESS && type != 0;
	IN((CUcontext)ctx, CALL(cuMemcpyHtoDAsync, dst, src, n, (CUstream)s));
}
static CUresult eg_download(handle ctx, uint8_t *dst, uint64_t src, size_t n, handle s) {
	IN((CUcontext)ctx, CALL(cuMemcpyDtoHAsync, dst, src, n, (CUstream)s));
}
static CUresult eg_copy_peer(handle ctx, uint64_t dst, handle dctx, uint64_t src, handle sctx, size_t n, handle s) {
	IN((CUcontext)ctx, CALL(cuMemcpyPeerAsync, dst, (CUcontext)dctx, src, (CUcontext)sctx, n, (CUstream)s));
}
static CUresult eg_fill(handle ctx, uint64_t dst, uint32_t v, int width, size_t n, handle s) {
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r != CUDA_SUCCESS) return r;
	switch (width) {
	case 1: return CALL(cuMemsetD8Async, dst, v, n, (CUstream)s);
	case 2: return CALL(cuMemsetD16Async, dst, v, n, (CUstream)s);
	default: return CALL(cuMemsetD32Async, dst, v, n, (CUstream)s);
	}
}

// The arguments lie packed in one buffer, each aligned to its own size.
static CUresult eg_launch(handle ctx, handle fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			  unsigned bz, unsigned shared, handle s, uint8_t *args, size_t n) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};
	if (shared > 48 * 1024) { // more than every kernel may take: it has to be allowed more
		CUresult r = cuCtxSetCurrent((CUcontext)ctx);
		if (r == CUDA_SUCCESS)
			r = cuFuncSetAttribute((CUfunction)fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared);
		if (r != CUDA_SUCCESS)
			return r;
	}
	IN((CUcontext)ctx, CALL(cuLaunchKernel, (CUfunction)fn, gx, gy, gz, bx, by, bz, shared, (CUstream)s, NULL, extra));
}

static const char *eg_error_name(CUresult r) {
	const char *name = NULL;
	return cuGetErrorName(r, &name) == CUDA_SUCCESS ? name : "";
}
