// Compiles the file named by BODY once for each instruction set. In that file, VL is the number of floats in a vector, and
// ISA(name) adds the set's suffix to a name. With prfchw, a line that is fetched to be written is taken from other cores at once; processors without it ignore
// the instruction.
#define ISA_JOIN(a, b) a##_##b
#define ISA_NAME(a, b) ISA_JOIN(a, b)
#define ISA(name) ISA_NAME(name, SET)
#define UNROLL _Pragma("GCC unroll 12")

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw,prefer-vector-width=512")
#endif
#define SET avx512
#define SET_AVX512 1
#define VL 16
#include BODY
#undef SET
#undef SET_AVX512
#undef VL
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,prfchw"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,prfchw")
#endif
#define SET avx2
#define SET_AVX2 1
#define VL 8
#include BODY
#undef SET
#undef SET_AVX2
#undef VL
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

#define SET plain
#define VL 4
#include BODY
#undef SET
#undef VL
