// Package kernel holds the computing kernels of the CPU engine: matrix products, convolutions, element-wise programs and
// reductions over float32 slices, and the pool of threads that shares them out.
//
// The kernels are C in vector extensions, compiled three times from one source: AVX-512, AVX2 with FMA, and the plain
// vectors of the target (SSE2 on x86, NEON on arm64). The best that the machine has is chosen when the program starts.
// Products of operands that hold bfloat16 values may use AMX or AVX512_BF16; see Half.
// Nothing is compiled with -ffast-math: NaN and infinity behave as IEEE 754 says.
//
// Every kernel gives bit-identical results from run to run for a fixed number of threads and the same choice of Half.
package kernel
