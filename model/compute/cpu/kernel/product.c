#include "product.h"
#include "direct.h"
#include "half.h"
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static int64_t clock_of(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t thread_time(void) { return clock_of(CLOCK_THREAD_CPUTIME_ID); }

// begin and end measure the packing time of a part.
static inline int64_t begin(const part *w) { return w->measure ? clock_of(CLOCK_MONOTONIC) : 0; }
static inline void end(part *w, int64_t began)
{
	if (w->measure)
		w->packing += clock_of(CLOCK_MONOTONIC) - began;
}

typedef struct {
	int rows, cols, vector;
	void (*pack_rows)(const product *, const float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t);
	void (*pack_cols)(const product *, const float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t);
	void (*block_cols)(const product *, part *, const float *, const float *, float *, float *);
	void (*block_rows)(const product *, part *, const float *, const float *, float *, float *);
	void (*axpys)(int64_t, int64_t, int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t, float *,
		int64_t, int64_t);
	void (*dots)(int64_t, int64_t, int64_t, int64_t, const float *, int64_t, const float *, int64_t, float *, int64_t, int64_t,
		int64_t);
	void (*convolve_windows)(const windowed *, const window *, const extent *, const half_tiles *, const float *, const float *, float *, float *);
	void (*pack_panels)(const product *, const float *, float *, int64_t, int64_t);
	void (*half_pack_panels)(const product *, const float *, float *, int64_t, int64_t);
	void (*pack_few)(const product *, const window *, const float *, float *, int64_t);
	void (*correlate)(const correlated *, const correlation_part *, const float *, const float *, float *, float *);
	int64_t (*correlate_floats)(const correlated *, const correlation_part *);
	int (*correlates_in_place)(const correlated *);
	void (*correlate_join)(const correlated *, const float *, int64_t, float *, int64_t, int64_t);
	void (*half_pack_rows)(const product *, const float *, half *, int64_t, int64_t, int64_t, int64_t, int64_t);
	void (*half_pack_cols)(const product *, const float *, half *, int64_t, int64_t, int64_t, int64_t, int64_t);
	void (*half_block_cols)(const product *, part *, const half_tiles *, const float *, const half *, float *, half *);
	void (*half_block_rows)(const product *, part *, const half_tiles *, const half *, const float *, float *, half *);
	void (*correlate_tiled)(const correlated *, const correlation_part *, const half_tiles *, const float *, const float *, float *, float *);
	int64_t (*tiled_floats)(const correlated *, const correlation_part *);
	void (*stage_planes)(const minimal *, const extent *, int64_t, int64_t, const float *, float *, float *);
	void (*convolve_minimal)(const minimal *, const minimal_class *, const extent *, const float *, const float *, float *, float *);
	void (*convolve_few)(const minimal *, const minimal_class *, const extent *, const float *, const float *, float *, int64_t, float *);
	void (*pack_minimal)(const minimal *, const minimal_class *, const product *, const float *, float *, int64_t, int64_t, int64_t, int64_t, float *);
	int64_t (*gradient_floats)(const minimal_gradient *, const gradient_part *);
	void (*minimal_correlate)(const minimal_gradient *, const gradient_part *, const float *, const float *, float *, float *);
	void (*add_copies)(float *, const float *, int64_t, int64_t, int64_t, int64_t);
} kernels;

#define BODY "product_body.h"
#include "isa.h"

int converts;

static const kernels *set = &set_plain;

int best_set(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return 0;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512vl"))
		return 2;
	return 1;
#else
	return 0;
#endif
}

int select_set(int number)
{
	int best = best_set();
	if (number > best)
		number = best;
	set = &set_plain;
#if defined(__x86_64__)
	if (number == 1)
		set = &set_avx2;
	if (number == 2)
		set = &set_avx512;
#endif
	return number;
}

#if defined(__x86_64__)
#include <cpuid.h>

// The kernels of a plan.
static inline const kernels *kernels_of(int64_t eights) { return eights && set == &set_avx512 ? &set_avx2 : set; }

int halves_vectors(void)
{
	unsigned a, b, c, d;
	__builtin_cpu_init();
	if (!__builtin_cpu_is("amd") || !__get_cpuid(1, &a, &b, &c, &d))
		return 0;
	return (a >> 8 & 15) + (a >> 20 & 255) == 25;
}
#else
static inline const kernels *kernels_of(int64_t eights) { return set; }
int halves_vectors(void) { return 0; }
#endif

__attribute__((constructor)) static void choose(void)
{
	select_set(best_set());
	converts = half_missing(HALF_AVX512) == HALF_HERE;
}

int tile_rows(void) { return set->rows; }
int tile_cols(void) { return set->cols; }

void pack_rows(const product *q, const float *a, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	set->pack_rows(q, a, to, p0, p1, panels, k0, k1);
}

void pack_cols(const product *q, const float *b, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	set->pack_cols(q, b, to, p0, p1, panels, k0, k1);
}

void block_cols(const product *q, part *w, const float *a, const float *packed, float *c, float *room)
{
	set->block_cols(q, w, a, packed, c, room);
}

void block_rows(const product *q, part *w, const float *packed, const float *b, float *c, float *room)
{
	set->block_rows(q, w, packed, b, c, room);
}

void axpys(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, int64_t ak, const float *b, int64_t bk,
	float *y, int64_t ym, int64_t accumulate)
{
	set->axpys(m, n0, n1, k, a, am, ak, b, bk, y, ym, accumulate);
}

void dots(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, const float *b, int64_t bn, float *y,
	int64_t ym, int64_t yn, int64_t accumulate)
{
	set->dots(m, n0, n1, k, a, am, b, bn, y, ym, yn, accumulate);
}

int vector_floats(void) { return set->vector; }

int64_t staged_floats(const windowed *q, const extent *e)
{
	if (q->stack.planes)
		return (e->i1 - e->i0) * q->parts * q->stack.words;
	if (q->spread)
		return q->s.columns * (q->ring * q->spread + q->s.c) + 2 * MAX_COLS;
	// After cut lines, the line that is being cut is staged as it is; together with the rest, it has room for what tiles read.
	if (q->cut.words)
		return (e->i1 - e->i0) * (e->l1 - e->l0) * q->pitch + 64 * (q->cut.words + 1) + q->s.columns * q->s.c;
	// After the staged lines, tiles read up to a tile's rows of windows plus one vector, whose values they do not use.
	return ((e->i1 - e->i0) * (e->l1 - e->l0) * q->s.columns + 64) * q->s.c + 64;
}

void convolve_windows(const windowed *q, const window *w, const extent *e, const float *x, const float *b, float *y, float *room)
{
	const half_tiles *t = q->side ? half_tiles_of(q->half) : 0;
	if (t)
		t->begin(q->side, q->steps);
	kernels_of(q->eights)->convolve_windows(q, w, e, t, x, b, y, room);
	if (t)
		t->end();
}

void pack_panels(const product *q, const float *b, float *to, int64_t p0, int64_t p1) { set->pack_panels(q, b, to, p0, p1); }

void half_pack_panels(const product *q, const float *b, float *to, int64_t i, int64_t units)
{
	set->half_pack_panels(q, b, to, i, units);
}

int64_t planes_floats(const minimal *q, const extent *e)
{
	return (e->i1 - e->i0) * (e->l1 - e->l0) * q->w * q->y.n * q->x.n * q->s.c / (q->half ? 2 : 1);
}

void stage_planes(const minimal *q, const extent *e, int64_t i0, int64_t i1, const float *x, float *room, float *line)
{
	set->stage_planes(q, e, i0, i1, x, room, line);
}

int64_t minimal_floats(const minimal *q, const extent *e)
{
	int64_t rows = (e->i1 - e->i0) * (e->l1 - e->l0) * q->w, panels = e->p1 - e->p0;
	const tile_sizes *z = sizes_of(q->tile, set->vector);
	return z->sums * ((rows < z->tall ? rows : z->tall) * set->cols + z->pad) * (panels < z->panels ? panels : z->panels);
}

void convolve_minimal(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y, float *sums)
{
	set->convolve_minimal(q, w, e, planes, b, y, sums);
}

int64_t few_floats(const minimal *q, const extent *e)
{
	return POINTS * (((e->i1 - e->i0) * (e->l1 - e->l0) * q->w / e->parts + 1) * set->cols + FEW_PAD);
}

void convolve_few(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y, int64_t p, float *sums)
{
	set->convolve_few(q, w, e, planes, b, y, p, sums);
}

void pack_minimal(const minimal *q, const minimal_class *w, const product *kernel, const float *b, float *to, int64_t p, int64_t lo, int64_t hi, int64_t streamed,
	float *room)
{
	set->pack_minimal(q, w, kernel, b, to, p, lo, hi, streamed, room);
}

int64_t gradient_floats(const minimal_gradient *q, const gradient_part *p) { return set->gradient_floats(q, p); }

void minimal_correlate(const minimal_gradient *q, const gradient_part *p, const float *x, const float *v, float *y, float *room)
{
	set->minimal_correlate(q, p, x, v, y, room);
}

void transpose_copies(float *y, const float *copies, int64_t n, int64_t size, int64_t rows, int64_t columns)
{
	for (int64_t j = 0; j < columns; j++)
		for (int64_t i = 0; i < rows; i++) {
			float sum = 0;
			for (int64_t p = 0; p < n; p++)
				sum += copies[p * size + i * columns + j];
			*y++ = sum;
		}
}

void add_copies(float *y, const float *copies, int64_t n, int64_t size, int64_t lo, int64_t hi)
{
	set->add_copies(y, copies, n, size, lo, hi);
}

void pack_few(const product *q, const window *w, const float *b, float *to, int64_t column) { set->pack_few(q, w, b, to, column); }

void correlate(const correlated *q, const correlation_part *p, const float *x, const float *v, float *sums, float *room)
{
	if (!q->tiled) {
		kernels_of(q->eights)->correlate(q, p, x, v, sums, room);
		return;
	}
	const half_tiles *t = half_tiles_of(q->half);
	t->begin(16, HALF_PAIRS);
	set->correlate_tiled(q, p, t, x, v, sums, room);
	t->end();
}

int correlates_in_place(const correlated *q) { return kernels_of(q->eights)->correlates_in_place(q); }

int64_t correlate_floats(const correlated *q, const correlation_part *p)
{
	return q->tiled ? set->tiled_floats(q, p) : kernels_of(q->eights)->correlate_floats(q, p);
}

void correlate_join(const correlated *q, const float *part, int64_t parts, float *y, int64_t r0, int64_t r1)
{
	set->correlate_join(q, part, parts, y, r0, r1);
}

void half_pack_rows(const product *q, const float *a, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	set->half_pack_rows(q, a, to, p0, p1, panels, k0, k1);
}

void half_pack_cols(const product *q, const float *b, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	set->half_pack_cols(q, b, to, p0, p1, panels, k0, k1);
}

void half_block_cols(const product *q, part *w, const float *a, const half *packed, float *c, half *room)
{
	const half_tiles *t = half_tiles_of(q->half);
	t->begin(16, HALF_PAIRS);
	set->half_block_cols(q, w, t, a, packed, c, room);
	t->end();
}

void half_block_rows(const product *q, part *w, const half *packed, const float *b, float *c, half *room)
{
	const half_tiles *t = half_tiles_of(q->half);
	t->begin(16, HALF_PAIRS);
	set->half_block_rows(q, w, t, packed, b, c, room);
	t->end();
}
