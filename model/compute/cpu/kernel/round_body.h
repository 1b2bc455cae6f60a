// Rounding to bfloat16 for one instruction set: the upper half of a float, ties to even; NaN stays NaN. See isa.h.
typedef uint32_t ISA(vu) __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef half ISA(vh) __attribute__((vector_size(2 * VL), aligned(2), may_alias));

// The nearest bfloat16, as a float.
static inline vf ISA(round_bf16)(vf x)
{
	vi number = x == x, bits = (vi)x & number, up = bits + 0x7fff + (bits >> 16 & 1);
	return (vf)(((number & up) | (~number & ((vi)x | 0x00400000))) & (int32_t)0xffff0000);
}

// Stores the nearest bfloat16 of a vector.
static inline void ISA(store_half)(half *to, vf x) { *(ISA(vh) *)to = __builtin_convertvector((ISA(vu))ISA(round_bf16)(x) >> 16, ISA(vh)); }

// Stores the nearest bfloat16 of n values, or of x - y if y is not null.
static void ISA(store_rounded)(const float *x, const float *y, int64_t n, half *to)
{
	for (int64_t i = 0; i < n; i += VL) {
		int64_t size = (n - i < VL ? n - i : VL) * sizeof(float);
		vf v = {0}, w = {0};
		memcpy(&v, x + i, size);
		if (y) {
			memcpy(&w, y + i, size);
			v -= w;
		}
		ISA(vh) rounded = __builtin_convertvector((ISA(vu))ISA(round_bf16)(v) >> 16, ISA(vh));
		memcpy(to + i, &rounded, size / 2);
	}
}

#if defined(SET_AVX512)
#define BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw,avx512bf16")))

// Stores the processor's conversion of a vector, which treats denormals as zero.
BF16_TARGET static inline void convert_half(half *to, __m512 x) { _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh(x)); }

// store_rounded with the processor's conversion, unless there are denormals.
BF16_TARGET static void store_converted(const float *x, const float *y, int64_t n, half *to)
{
	const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), one = _mm512_set1_epi32(1), largest = _mm512_set1_epi32(0x7ffffe);
	int64_t i = 0;
	for (; i + 32 <= n; i += 32) {
		__m512 v = _mm512_loadu_ps(x + i), w = _mm512_loadu_ps(x + i + 16);
		if (y)
			v = _mm512_sub_ps(v, _mm512_loadu_ps(y + i)), w = _mm512_sub_ps(w, _mm512_loadu_ps(y + i + 16));
		__m512i a = _mm512_sub_epi32(_mm512_and_si512(_mm512_castps_si512(v), magnitude), one);
		__m512i b = _mm512_sub_epi32(_mm512_and_si512(_mm512_castps_si512(w), magnitude), one);
		if (_mm512_cmple_epu32_mask(_mm512_min_epu32(a, b), largest))
			ISA(store_rounded)(x + i, y ? y + i : 0, 32, to + i);
		else
			_mm512_storeu_si512(to + i, (__m512i)_mm512_cvtne2ps_pbh(w, v));
	}
	ISA(store_rounded)(x + i, y ? y + i : 0, n - i, to + i);
}
#endif
