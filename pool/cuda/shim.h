// What gorgonia.org/cu lacks (pinned memory, stream-ordered pools, packed
// kernel arguments), and the calls of the hot path once more: each function
// makes its context current and calls the driver within one call from Go, so
// both happen on the same OS thread and no goroutine has to be locked to one.
#include <cuda.h>
#include <stdint.h>

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
	IN((CUcontext)ctx, cuMemAlloc((CUdeviceptr *)p, n));
}
static CUresult eg_mem_free(handle ctx, uint64_t p) { IN((CUcontext)ctx, cuMemFree(p)); }

static CUresult eg_host_alloc(handle ctx, size_t n, uint64_t *p) {
	IN((CUcontext)ctx, cuMemHostAlloc((void **)p, n, CU_MEMHOSTALLOC_PORTABLE));
}
static CUresult eg_host_free(handle ctx, uint64_t p) { IN((CUcontext)ctx, cuMemFreeHost((void *)p)); }

static CUresult eg_managed_alloc(handle ctx, size_t n, uint64_t *p) {
	IN((CUcontext)ctx, cuMemAllocManaged((CUdeviceptr *)p, n, CU_MEM_ATTACH_GLOBAL));
}

// Memory behind addresses, chunk by chunk. A chunk lives as long as it is mapped.
static CUresult eg_unmap(handle ctx, uint64_t p, size_t n, size_t chunk) {
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS) r = cuCtxSynchronize();
	for (size_t at = 0; r == CUDA_SUCCESS && at < n; at += chunk)
		r = cuMemUnmap(p + at, n - at < chunk ? n - at : chunk);
	return r;
}
static CUresult eg_unmap_addresses(handle ctx, uint64_t p, size_t n) {
	IN((CUcontext)ctx, cuMemAddressFree(p, n));
}
static CUresult eg_map_chunks(CUdeviceptr base, size_t n, size_t chunk, const CUmemAllocationProp *prop, size_t *done) {
	for (*done = 0; *done < n; *done += chunk) {
		size_t bytes = n - *done < chunk ? n - *done : chunk;
		CUmemGenericAllocationHandle h;
		CUresult r = cuMemCreate(&h, bytes, prop, 0);
		if (r != CUDA_SUCCESS) return r;
		r = cuMemMap(base + *done, bytes, 0, h, 0);
		cuMemRelease(h);
		if (r != CUDA_SUCCESS) return r;
	}
	*done = n;
	return CUDA_SUCCESS;
}
static CUmemAllocationProp eg_on_device(int device) {
	CUmemAllocationProp prop = {0};
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	return prop;
}
static CUresult eg_map_granule(handle ctx, int device, size_t *n) {
	int can = 0;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS)
		r = cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
	if (r != CUDA_SUCCESS) return r;
	if (!can) return CUDA_ERROR_NOT_SUPPORTED;
	CUmemAllocationProp prop = eg_on_device(device);
	return cuMemGetAllocationGranularity(n, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}
// users are the devices that may use the memory, the one it lies on first.
static CUresult eg_map(handle ctx, size_t n, size_t chunk, int32_t *users, int n_users, uint64_t *p) {
	CUmemAllocationProp prop = eg_on_device(users[0]);
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr base = 0;
	size_t done = 0;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS) r = cuMemAddressReserve(&base, n, 0, 0, 0);
	if (r != CUDA_SUCCESS) return r;
	r = eg_map_chunks(base, n, chunk, &prop, &done);
	for (int k = 0; r == CUDA_SUCCESS && k < n_users; k++) {
		access.location.id = users[k];
		r = cuMemSetAccess(base, n, &access, 1);
	}
	if (r != CUDA_SUCCESS) {
		for (size_t at = 0; at < done; at += chunk) cuMemUnmap(base + at, n - at < chunk ? n - at : chunk);
		cuMemAddressFree(base, n);
	}
	*p = base;
	return r;
}

// Memory pools: n_device is the device that the pool's memory lies on.
static CUresult eg_pool_create(handle ctx, int n_device, uint64_t threshold, handle *pool) {
	CUmemPoolProps props = {0};
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	props.location.id = n_device;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS) r = cuMemPoolCreate((CUmemoryPool *)pool, &props);
	if (r == CUDA_SUCCESS)
		r = cuMemPoolSetAttribute(*(CUmemoryPool *)pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	return r;
}
static CUresult eg_pool_destroy(handle ctx, handle pool) {
	IN((CUcontext)ctx, cuMemPoolDestroy((CUmemoryPool)pool));
}
static CUresult eg_pool_threshold(handle ctx, handle pool, uint64_t threshold) {
	IN((CUcontext)ctx, cuMemPoolSetAttribute((CUmemoryPool)pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}
static CUresult eg_pool_trim(handle ctx, handle pool, size_t keep) {
	IN((CUcontext)ctx, cuMemPoolTrimTo((CUmemoryPool)pool, keep));
}
static CUresult eg_pool_get(handle ctx, handle pool, int attribute, uint64_t *value) {
	IN((CUcontext)ctx, cuMemPoolGetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute, value));
}
static CUresult eg_pool_usage(handle ctx, handle pool, uint64_t u[4]) {
	static const CUmemPool_attribute of[] = {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
		CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH};
	CUresult r = CUDA_SUCCESS;
	for (int k = 0; r == CUDA_SUCCESS && k < 4; k++) r = eg_pool_get(ctx, pool, of[k], &u[k]);
	return r;
}
static CUresult eg_pool_access(handle ctx, handle pool, int device) {
	CUmemAccessDesc access = {0};
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.id = device;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	IN((CUcontext)ctx, cuMemPoolSetAccess((CUmemoryPool)pool, &access, 1));
}
static CUresult eg_pool_current(handle ctx, int device, handle *pool) {
	IN((CUcontext)ctx, cuDeviceGetMemPool((CUmemoryPool *)pool, device));
}
static CUresult eg_pool_alloc(handle ctx, handle pool, size_t n, handle stream, uint64_t *p) {
	IN((CUcontext)ctx, cuMemAllocFromPoolAsync((CUdeviceptr *)p, n, (CUmemoryPool)pool, (CUstream)stream));
}
static CUresult eg_pool_free(handle ctx, uint64_t p, handle stream) {
	IN((CUcontext)ctx, cuMemFreeAsync(p, (CUstream)stream));
}

static CUresult eg_stream_query(handle ctx, handle s) { IN((CUcontext)ctx, cuStreamQuery((CUstream)s)); }
static CUresult eg_stream_wait(handle ctx, handle s, handle e) {
	IN((CUcontext)ctx, cuStreamWaitEvent((CUstream)s, (CUevent)e, 0));
}
static CUresult eg_stream_capturing(handle ctx, handle s, int *yes) {
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS) r = cuStreamIsCapturing((CUstream)s, &status);
	*yes = status != CU_STREAM_CAPTURE_STATUS_NONE;
	return r;
}

// Graphs. Relaxed: a pool may ask the driver for memory while work is recorded.
static CUresult eg_capture_begin(handle ctx, handle s) {
	IN((CUcontext)ctx, cuStreamBeginCapture((CUstream)s, CU_STREAM_CAPTURE_MODE_RELAXED));
}
static CUresult eg_capture_end(handle ctx, handle s, handle *exec) {
	CUgraph graph = NULL;
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r == CUDA_SUCCESS) r = cuStreamEndCapture((CUstream)s, &graph);
	if (r == CUDA_SUCCESS) r = cuGraphInstantiateWithFlags((CUgraphExec *)exec, graph, 0);
	if (graph != NULL) cuGraphDestroy(graph);
	return r;
}
static CUresult eg_graph_launch(handle ctx, handle exec, handle s) {
	IN((CUcontext)ctx, cuGraphLaunch((CUgraphExec)exec, (CUstream)s));
}
static CUresult eg_graph_destroy(handle ctx, handle exec) {
	IN((CUcontext)ctx, cuGraphExecDestroy((CUgraphExec)exec));
}

static CUresult eg_event_record(handle ctx, handle e, handle s) {
	IN((CUcontext)ctx, cuEventRecord((CUevent)e, (CUstream)s));
}
static CUresult eg_event_query(handle ctx, handle e) { IN((CUcontext)ctx, cuEventQuery((CUevent)e)); }

static CUresult eg_copy(handle ctx, uint64_t dst, uint64_t src, size_t n, handle s) {
	IN((CUcontext)ctx, cuMemcpyAsync(dst, src, n, (CUstream)s));
}
static CUresult eg_upload(handle ctx, uint64_t dst, uint8_t *src, size_t n, handle s, int *pinned) {
	CUmemorytype type = 0; // stays 0 for memory that the driver does not know
	CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	void *to = &type;
	CUresult known = cuPointerGetAttributes(1, &what, &to, (CUdeviceptr)src);
	*pinned = known == CUDA_SUCCESS && type != 0;
	IN((CUcontext)ctx, cuMemcpyHtoDAsync(dst, src, n, (CUstream)s));
}
static CUresult eg_download(handle ctx, uint8_t *dst, uint64_t src, size_t n, handle s) {
	IN((CUcontext)ctx, cuMemcpyDtoHAsync(dst, src, n, (CUstream)s));
}
static CUresult eg_copy_peer(handle ctx, uint64_t dst, handle dctx, uint64_t src, handle sctx, size_t n, handle s) {
	IN((CUcontext)ctx, cuMemcpyPeerAsync(dst, (CUcontext)dctx, src, (CUcontext)sctx, n, (CUstream)s));
}
static CUresult eg_fill(handle ctx, uint64_t dst, uint32_t v, int width, size_t n, handle s) {
	CUresult r = cuCtxSetCurrent((CUcontext)ctx);
	if (r != CUDA_SUCCESS) return r;
	switch (width) {
	case 1: return cuMemsetD8Async(dst, v, n, (CUstream)s);
	case 2: return cuMemsetD16Async(dst, v, n, (CUstream)s);
	default: return cuMemsetD32Async(dst, v, n, (CUstream)s);
	}
}

// The arguments lie packed in one buffer, each aligned to its own size.
static CUresult eg_launch(handle ctx, handle fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			  unsigned bz, unsigned shared, handle s, uint8_t *args, size_t n) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};
	IN((CUcontext)ctx, cuLaunchKernel((CUfunction)fn, gx, gy, gz, bx, by, bz, shared, (CUstream)s, NULL, extra));
}

static const char *eg_error_name(CUresult r) {
	const char *name = NULL;
	return cuGetErrorName(r, &name) == CUDA_SUCCESS ? name : "";
}
