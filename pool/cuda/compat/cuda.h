// Found before the cuda.h of a CUDA installation (setup.sh sees to that), this
// file includes that one and adapts it to gorgonia.org/cu v0.9.6:
//
//   - cu initialises the driver when the program starts and ends the program if
//     that fails. Here the failure is kept from it, so that a program, or a test,
//     can run without a GPU and be told so by cuda.Open.
//   - CUDA 13 gave the unversioned names of some functions to newer variants
//     with other arguments. Here they mean again what CUDA 11 and 12 meant; the
//     driver has kept the old entry points.
#include_next <cuda.h>

#ifndef EAGERGC_COMPAT_CUDA_H
#define EAGERGC_COMPAT_CUDA_H

static inline CUresult eagergc_init(unsigned int flags)
{
	(void)cuInit(flags);
	return CUDA_SUCCESS;
}
#define cuInit eagergc_init

#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#define cuCtxCreate cuCtxCreate_v2
CUresult cuCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev);
CUresult cuMemAdvise(CUdeviceptr p, size_t bytes, CUmem_advise advice, CUdevice dev);
CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t bytes, CUdevice dev, CUstream stream);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n);
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n);
#endif

#endif
