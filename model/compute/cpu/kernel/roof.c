#include "roof.h"
#include "product.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct {
	float (*products)(int64_t);
	void (*copy)(const float *, float *, int64_t);
	int64_t operations; // per round
} roof_kernels;

#define BODY "roof_body.h"
#include "isa.h"

static const roof_kernels *best(void)
{
#if defined(__x86_64__)
	switch (best_set()) {
	case 2: return &roof_avx512;
	case 1: return &roof_avx2;
	}
#endif
	return &roof_plain;
}

int64_t roof_products(int64_t rounds, float *sum)
{
	*sum = best()->products(rounds);
	return rounds * best()->operations;
}

void roof_copy(const float *x, float *y, int64_t n) { best()->copy(x, y, n); }
