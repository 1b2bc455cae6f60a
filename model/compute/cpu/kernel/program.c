#include "program.h"
#include "half.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef struct {
	void (*run_program)(const program *, const slot *, const instruction *, const stretch *, const loading *, const storing *,
		const reducing *, const uintptr_t *, float *, int64_t, int64_t, int64_t);
	void (*reduce_range)(int64_t, const float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
		int64_t);
	void (*join_parts)(int64_t, const float *, float *, int64_t, int64_t, int64_t, int64_t);
} program_kernels;

// The machine code of a stretch: a function of the slots' addresses, the end of the elements, the address of the sums and the first element. Elements are
// counted in bytes of bfloat16.
typedef void (*native)(float *const *, int64_t, float *, int64_t);

#define BODY "program_body.h"
#include "isa.h"

static const program_kernels *set = &program_set_plain;
static int set_number;

int select_program_set(int number)
{
	int best = best_set();
	if (number > best)
		number = best;
	set = &program_set_plain;
#if defined(__x86_64__)
	if (number == 1)
		set = &program_set_avx2;
	if (number == 2)
		set = &program_set_avx512;
#endif
	return set_number = number;
}

int program_set(void) { return set_number; }

__attribute__((constructor)) static void choose(void) { select_program_set(best_set()); }

void run_program(const program *p, const slot *slots, const instruction *code, const stretch *stretches, const loading *loads,
	const storing *stores, const reducing *reductions, const uintptr_t *pointers, float *scratch, int64_t first, int64_t lo, int64_t hi)
{
	set->run_program(p, slots, code, stretches, loads, stores, reductions, pointers, scratch, first, lo, hi);
}

void reduce_range(int64_t kind, const float *x, float *y, int64_t r, int64_t inner, int64_t o0, int64_t o1, int64_t r0, int64_t r1,
	int64_t c0, int64_t c1, int64_t y_outer)
{
	set->reduce_range(kind, x, y, r, inner, o0, o1, r0, r1, c0, c1, y_outer);
}

void join_parts(int64_t kind, const float *x, float *y, int64_t parts, int64_t inner, int64_t lo, int64_t hi)
{
	set->join_parts(kind, x, y, parts, inner, lo, hi);
}
