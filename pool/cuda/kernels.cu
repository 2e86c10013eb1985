// Small kernels of the package. The PTX beside this file is made from it by:
// nvcc -ptx -arch=compute_60 kernels.cu
typedef unsigned long long u64;
typedef unsigned int u32;

// spin keeps one thread busy until ns nanoseconds have passed.
extern "C" __global__ void spin(u64 ns) {
	u64 start, now;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - start < ns);
}

static __device__ u32 word(u64 i, u32 seed) {
	u32 z = (u32)i * 0x9e3779b9u ^ seed;
	z = (z ^ (z >> 16)) * 0x85ebca6bu;
	return z ^ (z >> 13);
}

// stamp writes n words that follow from seed; verify counts those that differ.
extern "C" __global__ void stamp(u32 *p, u64 n, u32 seed) {
	u64 stride = (u64)gridDim.x * blockDim.x;
	for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) p[i] = word(i, seed);
}

extern "C" __global__ void verify(const u32 *p, u64 n, u32 seed, u64 *wrong) {
	u64 stride = (u64)gridDim.x * blockDim.x, bad = 0;
	for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) bad += p[i] != word(i, seed);
	if (bad) atomicAdd(wrong, bad);
}
