// Kernels of the dense model, one per operation of an array library. The PTX
// beside this file is made from it by: nvcc -ptx -arch=compute_60 kernels.cu
typedef unsigned long long u64;
typedef unsigned int u32;

static __device__ u64 index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// uniform is the float in [0, 1) that belongs to number i: splitmix64's mixer.
static __device__ float uniform(u64 i) {
	u64 z = (i + 1) * 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return (float)(z >> 40) * (1.0f / 16777216.0f);
}

extern "C" __global__ void fill_uniform(float *out, u64 n, u64 first) {
	u64 stride = (u64)gridDim.x * blockDim.x;
	for (u64 i = index(); i < n; i += stride) out[i] = uniform(first + i);
}

extern "C" __global__ void fill(float *out, u64 n, float v) {
	u64 i = index();
	if (i < n) out[i] = v;
}

extern "C" __global__ void axpby(float *out, u64 n, const float *x, const float *y, float a, float b) {
	u64 i = index();
	if (i < n) out[i] = a * x[i] + b * y[i];
}

extern "C" __global__ void multiply(float *out, u64 n, const float *x, const float *y) {
	u64 i = index();
	if (i < n) out[i] = x[i] * y[i];
}

extern "C" __global__ void divide(float *out, u64 n, const float *x, const float *y) {
	u64 i = index();
	if (i < n) out[i] = x[i] / y[i];
}

extern "C" __global__ void sqrt_plus(float *out, u64 n, const float *x, float eps) {
	u64 i = index();
	if (i < n) out[i] = sqrtf(x[i]) + eps;
}

extern "C" __global__ void add_scalar(float *out, u64 n, const float *x, const float *s) {
	u64 i = index();
	if (i < n) out[i] = x[i] + *s;
}

// sum: out[0] = scale * (x[0] + ...), by one block of 1024 threads.
extern "C" __global__ void sum(float *out, u64 n, const float *x, float scale) {
	__shared__ float part[1024];
	float s = 0;
	for (u64 i = threadIdx.x; i < n; i += 1024) s += x[i];
	part[threadIdx.x] = s;
	__syncthreads();
	for (u32 half = 512; half > 0; half /= 2) {
		if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0) *out = scale * part[0];
}

// matvec: out[i] = x[i, :] . w, one warp per row, rows of cols floats.
extern "C" __global__ void matvec(float *out, u64 rows, u64 cols, const float *x, const float *w) {
	u64 row = index() / 32;
	u32 lane = threadIdx.x % 32;
	if (row >= rows) return;
	float s = 0;
	for (u64 k = lane; k < cols; k += 32) s += x[row * cols + k] * w[k];
	for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
	if (lane == 0) out[row] = s;
}

// tmatvec_part: part[j, k] = sum over the rows i of slice j of g[i] * x[i, k].
extern "C" __global__ void tmatvec_part(float *part, u64 rows, u64 cols, const float *x, const float *g) {
	u64 k = index();
	if (k >= cols) return;
	u64 slice = (rows + gridDim.y - 1) / gridDim.y;
	u64 from = blockIdx.y * slice, to = from + slice < rows ? from + slice : rows;
	float s = 0;
	for (u64 i = from; i < to; i++) s += g[i] * x[i * cols + k];
	part[blockIdx.y * cols + k] = s;
}

// tmatvec_sum: out[k] = part[0, k] + part[1, k] + ...
extern "C" __global__ void tmatvec_sum(float *out, u64 cols, const float *part, u32 slices) {
	u64 k = index();
	if (k >= cols) return;
	float s = 0;
	for (u32 j = 0; j < slices; j++) s += part[j * cols + k];
	out[k] = s;
}
