// The kernel of the package. The PTX beside this file is made from it by:
// nvcc -ptx -arch=compute_60 kernels.cu
typedef unsigned long long u64;

// spin keeps one thread busy until ns nanoseconds have passed.
extern "C" __global__ void spin(u64 ns) {
	u64 start, now;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - start < ns);
}
