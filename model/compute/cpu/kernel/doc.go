// Package kernel has the computing kernels of the CPU engine (matrix products, convolutions, element-wise programs and
// reductions over float32 slices) and the pool of threads that runs them.
//
// The kernels are written in C with vector extensions and compiled three times from one source: for AVX-512, for AVX2 with FMA, and for
// the target's baseline vectors (SSE2 on x86, NEON on arm64). The best set that the machine supports is chosen at startup.
// On x86 with AVX2, element-wise programs become machine code (native*.go), except for functions such as exp.
// Products of operands that hold bfloat16 values may use AMX or AVX512_BF16; see HalfChoice. With the build tag amx_emulation, which is
// for tests, the instructions of AMX also run on processors that do not have them (amx_emulation.h).
// Nothing is compiled with -ffast-math: NaN and infinity behave as in IEEE 754.
//
// Every kernel gives bit-identical results from run to run for a fixed number of threads and the same HalfChoice.
package kernel
