// Convolutions without packing for one instruction set. Included at the end of product_body.h, whose vectors it uses; see direct.h.

// ---- staging ----

// Finds the positions [lo, hi) of a staged line that lie inside the image; returns 0 if there are none.
static inline int ISA(inside)(const staging *s, int64_t y, int64_t *lo, int64_t *hi)
{
	*lo = s->x0 < 0 ? -s->x0 : 0, *hi = s->w - s->x0;
	*lo = *lo < s->columns ? *lo : s->columns;
	*hi = *hi < s->columns ? *hi : s->columns;
	return y >= 0 && y < s->h && *hi > *lo;
}

static void ISA(stage_line)(const staging *s, const float *x, int64_t y, float *to)
{
	int64_t count = s->columns * s->c, lo, hi;
	if (!ISA(inside)(s, y, &lo, &hi)) {
		memset(to, 0, 4 * count);
		return;
	}
	memset(to, 0, 4 * lo * s->c);
	memset(to + hi * s->c, 0, 4 * (count - hi * s->c));
	const float *from = x + y * s->sy + (s->x0 + lo) * s->sx;
	to += lo * s->c;
	if (s->sc == 1 && s->sx == s->c) {
		memcpy(to, from, 4 * (hi - lo) * s->c);
		return;
	}
	for (int64_t j = lo; j < hi; j++, from += s->sx)
		for (int64_t i = 0; i < s->c; i++)
			*to++ = from[i * s->sc];
}

// Stages lines [l0, l1) of images [i0, i1).
static void ISA(stage)(const staging *s, const float *x, int64_t i0, int64_t i1, int64_t l0, int64_t l1, float *to)
{
	for (int64_t i = i0; i < i1; i++)
		for (int64_t l = l0; l < l1; l++, to += s->columns * s->c)
			ISA(stage_line)(s, x + i * s->batch, s->y0 + l, to);
}

// Stages a line as bfloat16.
static void ISA(stage_halves)(const staging *s, const float *x, int64_t y, half *to)
{
	int64_t count = s->columns * s->c, lo, hi;
	if (!ISA(inside)(s, y, &lo, &hi)) {
		memset(to, 0, count * sizeof *to);
		return;
	}
	memset(to, 0, lo * s->c * sizeof *to);
	memset(to + hi * s->c, 0, (count - hi * s->c) * sizeof *to);
	const float *from = x + y * s->sy + (s->x0 + lo) * s->sx;
	to += lo * s->c;
	if (s->sx == s->c) {
		ISA(narrow)(from, (hi - lo) * s->c, to, 0);
		return;
	}
	for (int64_t j = lo; j < hi; j++, from += s->sx, to += s->c)
		ISA(narrow)(from, s->c, to, 0);
}

// ---- the tile ----

#define GROUP (ROWS / GROUPS)
#define AHEAD 16

// acc[i][j] = sum over runs and t of a[group[i / GROUP] + (i % GROUP) * ar + t * ak] b[t * bk + j*VL..]. Row i of the accumulators is
// stored at c + row[i].
// TARGET is empty or an attribute; V is a vector of b, read by LOAD; TIMES adds the product of the word at x and v to an accumulator.
#define RUNS_TILE(TARGET, name, rows, vectors, V, LOAD, TIMES)                                                                      \
	TARGET static void ISA(name##_##rows##_##vectors)(const run *r, int64_t runs, const float *a, const int64_t *group,         \
		int64_t ar, int64_t ak, const float *b, int64_t bk, float *c, const int64_t *row, int add)                          \
	{                                                                                                                           \
		vf acc[rows][vectors];                                                                                              \
		UNROLL for (int i = 0; i < rows; i++)                                                                               \
			UNROLL for (int j = 0; j < vectors; j++)                                                                    \
				acc[i][j] = (vf){0};                                                                                \
		for (; runs > 0; runs--, r++) {                                                                                     \
			const float *g[(rows + GROUP - 1) / GROUP], *y = b + r->b;                                                  \
			UNROLL for (int i = 0; i < rows; i += GROUP)                                                                \
				g[i / GROUP] = a + group[i / GROUP] + r->a;                                                         \
			for (int64_t k = r->n; k > 0; k--, y += bk) {                                                               \
				V v[vectors];                                                                                       \
				UNROLL for (int j = 0; j < vectors; j++)                                                            \
					v[j] = LOAD(y + j * VL);                                                                    \
				UNROLL for (int j = 0; j < vectors; j++)                                                            \
					__builtin_prefetch(y + AHEAD * bk + j * VL);                                                \
				UNROLL for (int i = 0; i < rows; i++)                                                               \
					UNROLL for (int j = 0; j < vectors; j++)                                                    \
						acc[i][j] = TIMES(acc[i][j], g[i / GROUP] + i % GROUP * ar, v[j]);                  \
				UNROLL for (int i = 0; i < rows; i += GROUP)                                                        \
					g[i / GROUP] += ak;                                                                         \
			}                                                                                                           \
		}                                                                                                                   \
		if (add)                                                                                                            \
			UNROLL for (int i = 0; i < rows; i++)                                                                       \
				UNROLL for (int j = 0; j < vectors; j++)                                                            \
					acc[i][j] += *(vf *)(c + row[i] + j * VL);                                                  \
		UNROLL for (int i = 0; i < rows; i++)                                                                               \
			UNROLL for (int j = 0; j < vectors; j++)                                                                    \
				*(vf *)(c + row[i] + j * VL) = acc[i][j];                                                           \
	}
#define FLOATS(y) (*(const vf *)(y))
#define TIMES_FLOAT(acc, x, v) ((acc) + *(x) * (v))
#define DIRECT(rows, vectors) RUNS_TILE(, direct, rows, vectors, vf, FLOATS, TIMES_FLOAT)
#define DIRECTS(rows) DIRECT(rows, 1) DIRECT(rows, 2)
DIRECTS(1) DIRECTS(2) DIRECTS(3) DIRECTS(4) DIRECTS(5) DIRECTS(6)
#if ROWS == 12
DIRECTS(7) DIRECTS(8) DIRECTS(9) DIRECTS(10) DIRECTS(11) DIRECTS(12)
#endif

typedef void (*ISA(direct_tile))(const run *, int64_t, const float *, const int64_t *, int64_t, int64_t, const float *, int64_t, float *,
	const int64_t *, int);
#define BOTH(rows) {ISA(direct_##rows##_1), ISA(direct_##rows##_2)}
static const ISA(direct_tile) ISA(direct_tiles)[ROWS][2] = {
	BOTH(1), BOTH(2), BOTH(3), BOTH(4), BOTH(5), BOTH(6),
#if ROWS == 12
	BOTH(7), BOTH(8), BOTH(9), BOTH(10), BOTH(11), BOTH(12),
#endif
};

// The same for words in a and b that each hold a pair of bfloat16, in plain C.
static void ISA(halves_tile)(int64_t rows, int64_t vectors, const run *r, int64_t runs, const float *a, const int64_t *group, int64_t ar,
	int64_t ak, const float *b, int64_t bk, float *c, const int64_t *row, int add)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < vectors; j++) {
			vf *to = (vf *)(c + row[i] + j * VL), sum = add ? *to : (vf){0};
			for (int64_t l = 0; l < runs; l++)
				for (int64_t k = 0; k < r[l].n; k++) {
					int32_t pair;
					memcpy(&pair, a + group[i / GROUP] + r[l].a + i % GROUP * ar + k * ak, sizeof pair);
					vi x = (vi){0} + pair, y = *(const vi *)(b + r[l].b + k * bk + j * VL);
					sum += (vf)(x << 16) * (vf)(y << 16) + (vf)(x & -65536) * (vf)(y & -65536);
				}
			*to = sum;
		}
}

#define HALVES_TILE(rows, vectors)                                                                                              \
	static void ISA(halves_##rows##_##vectors)(const run *r, int64_t runs, const float *a, const int64_t *group, int64_t ar, \
		int64_t ak, const float *b, int64_t bk, float *c, const int64_t *row, int add)                                  \
	{                                                                                                                       \
		ISA(halves_tile)(rows, vectors, r, runs, a, group, ar, ak, b, bk, c, row, add);                                 \
	}
#define HALVES(rows) HALVES_TILE(rows, 1) HALVES_TILE(rows, 2)
HALVES(1) HALVES(2) HALVES(3) HALVES(4) HALVES(5) HALVES(6)
#if ROWS == 12
HALVES(7) HALVES(8) HALVES(9) HALVES(10) HALVES(11) HALVES(12)
#endif
#undef BOTH
#define BOTH(rows) {ISA(halves_##rows##_1), ISA(halves_##rows##_2)}
static const ISA(direct_tile) ISA(halves_tiles)[ROWS][2] = {
	BOTH(1), BOTH(2), BOTH(3), BOTH(4), BOTH(5), BOTH(6),
#if ROWS == 12
	BOTH(7), BOTH(8), BOTH(9), BOTH(10), BOTH(11), BOTH(12),
#endif
};

#if defined(SET_AVX512)
#define VDP_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,avx512bf16")))
#define PAIRS_OF(y) ((__m512bh)_mm512_loadu_si512(y))
#define TIMES_PAIR(acc, x, v) ((vf)_mm512_dpbf16_ps((__m512)(acc), v, (__m512bh)_mm512_set1_epi32(*(const pair_word *)(x))))
typedef int32_t pair_word __attribute__((may_alias));
#define VDP_PAIRS(rows, vectors) RUNS_TILE(VDP_TARGET, vdp, rows, vectors, __m512bh, PAIRS_OF, TIMES_PAIR)
#define VDPS(rows) VDP_PAIRS(rows, 1) VDP_PAIRS(rows, 2)
VDPS(1) VDPS(2) VDPS(3) VDPS(4) VDPS(5) VDPS(6) VDPS(7) VDPS(8) VDPS(9) VDPS(10) VDPS(11) VDPS(12)
#undef BOTH
#define BOTH(rows) {ISA(vdp_##rows##_1), ISA(vdp_##rows##_2)}
static const ISA(direct_tile) ISA(vdp_tiles)[ROWS][2] = {
	BOTH(1), BOTH(2), BOTH(3), BOTH(4), BOTH(5), BOTH(6), BOTH(7), BOTH(8), BOTH(9), BOTH(10), BOTH(11), BOTH(12),
};
#endif

// The tile that multiplies for a set; HALF_NONE is float32.
static inline ISA(direct_tile) ISA(tile_of)(int64_t half, int64_t rows, int64_t vectors)
{
#if defined(SET_AVX512)
	if (half == HALF_AVX512)
		return ISA(vdp_tiles)[rows - 1][vectors - 1];
#endif
	return (half ? ISA(halves_tiles) : ISA(direct_tiles))[rows - 1][vectors - 1];
}

#if defined(SET_AVX512)
// The same for pairs of outputs, with one vector of columns: only a run's lanes use the values that it reads, so not even a NaN reaches others.
#define PAIRED(rows)                                                                                                                \
	static void ISA(paired_##rows)(const run *r, int64_t runs, const float *a, const int64_t *group, int64_t ar, int64_t ak,    \
		const float *b, int64_t bk, float *c, const int64_t *row, int add)                                                  \
	{                                                                                                                           \
		__m512 acc[rows];                                                                                                   \
		UNROLL for (int i = 0; i < rows; i++)                                                                               \
			acc[i] = _mm512_setzero_ps();                                                                               \
		for (; runs > 0; runs--, r++) {                                                                                     \
			const float *g[rows / GROUP], *y = b + r->b;                                                                \
			const __mmask16 lanes = (__mmask16)r->lanes;                                                                \
			UNROLL for (int i = 0; i < rows; i += GROUP)                                                                \
				g[i / GROUP] = a + group[i / GROUP] + r->a;                                                         \
			for (int64_t k = r->n; k > 0; k--, y += bk) {                                                               \
				__m512 v = _mm512_loadu_ps(y);                                                                      \
				UNROLL for (int i = 0; i < rows; i++)                                                               \
					acc[i] = _mm512_mask3_fmadd_ps(_mm512_set1_ps(g[i / GROUP][i % GROUP * ar]), v, acc[i], lanes); \
				UNROLL for (int i = 0; i < rows; i += GROUP)                                                        \
					g[i / GROUP] += ak;                                                                         \
			}                                                                                                           \
		}                                                                                                                   \
		UNROLL for (int i = 0; i < rows; i++)                                                                               \
			_mm512_storeu_ps(c + row[i], acc[i]);                                                                       \
	}
PAIRED(4) PAIRED(8) PAIRED(12)
static const ISA(direct_tile) ISA(paired_tiles)[GROUPS] = {ISA(paired_4), ISA(paired_8), ISA(paired_12)};
#define TILE_OF(q, rows, vectors) ((q)->pairs ? ISA(paired_tiles)[(rows) / GROUP - 1] : ISA(tile_of)((q)->half, rows, vectors))
#else
#define TILE_OF(q, rows, vectors) ISA(tile_of)((q)->half, rows, vectors)
#endif

// Stores the first cols floats, up to two vectors, of a tile's row, or adds them to the existing values.
static inline void ISA(store_row)(float *c, const float *row, int64_t cols, int add)
{
	for (; cols > 0; c += VL, row += VL, cols -= VL) {
		int64_t n = cols < VL ? cols : VL;
		vf v = *(const vf *)row;
		if (add)
			v += ISA(load_first)(c, n);
		ISA(store_first)(c, v, n);
	}
}

// ---- windows ----

// A tile that is being filled: up to GROUPS groups of adjacent windows. row is -1 for rows after the end of their line.
typedef struct {
	int64_t groups, whole;
	int64_t group[GROUPS], row[ROWS];
} ISA(gathered);

static const int64_t ISA(flat)[ROWS] = {
	0, COLS, 2 * COLS, 3 * COLS, 4 * COLS, 5 * COLS,
#if ROWS == 12
	6 * COLS, 7 * COLS, 8 * COLS, 9 * COLS, 10 * COLS, 11 * COLS,
#endif
};

static void ISA(window_tile)(const windowed *q, const window *w, ISA(gathered) *t, int64_t cols, const float *a, const float *b, float *c)
{
	int64_t rows = t->groups * GROUP;
	int vectors = cols > VL ? 2 : 1;
	ISA(direct_tile) tile = TILE_OF(q, rows, vectors);
	if (t->whole && q->ochannel == 1 && cols == vectors * VL) {
		tile(w->r, w->runs, a, t->group, w->column, 1, b, w->step, c, t->row, 0);
	} else {
		float copy[ROWS * COLS];
		tile(w->r, w->runs, a, t->group, w->column, 1, b, w->step, copy, ISA(flat), 0);
		for (int64_t i = 0; i < rows; i++) {
			if (t->row[i] >= 0 && q->ochannel == 1)
				ISA(store_row)(c + t->row[i], copy + i * COLS, cols, 0);
			for (int64_t j = 0; j < cols && t->row[i] >= 0 && q->ochannel != 1; j++)
				c[t->row[i] + j * q->ochannel] = copy[i * COLS + j];
		}
	}
	t->groups = 0, t->whole = 1;
}

// Computes one panel of columns of one window's outputs.
static void ISA(window_panel)(const windowed *q, const window *w, const extent *e, int64_t p, const float *b, float *y, const float *room)
{
	int64_t pitch = q->pitch, cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS;
	ISA(gathered) t = {.whole = 1};
	float *c = y + w->out + p * COLS * q->ochannel;
	b += w->b + p * w->panel;
	for (int64_t i = e->i0; i < e->i1; i++) {
		int64_t image = ((i - e->i0) * (e->l1 - e->l0) - e->l0) * pitch + w->first;
		for (int64_t l = w->h * e->j / e->parts; l < w->h * (e->j + 1) / e->parts; l++)
			for (int64_t x = 0; x < w->w; x += GROUP) {
				t.group[t.groups] = image + l * w->line + x * w->column;
				for (int64_t k = 0; k < GROUP; k++) {
					int in = x + k < w->w;
					t.row[t.groups * GROUP + k] = in ? i * q->obatch + l * w->oline + (x + k) * w->ocolumn : -1;
					t.whole &= in;
				}
				if (++t.groups == GROUPS)
					ISA(window_tile)(q, w, &t, cols, room, b, c);
			}
	}
	if (t.groups > 0)
		ISA(window_tile)(q, w, &t, cols, room, b, c);
}

// ---- few columns ----

// The sum of a vector's quarters, of four floats each, or of its halves; the vector itself if it has four floats.
static inline v4 ISA(quarter)(vf x)
{
#if VL == 16
	typedef float half __attribute__((vector_size(32)));
	half h = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
	return __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
#elif VL == 8
	return __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
#else
	return (v4)x;
#endif
}

// The sums of four vectors.
static inline v4 ISA(sums)(const vf *x)
{
	v4 s[4];
	UNROLL for (int i = 0; i < 4; i++)
		s[i] = ISA(quarter)(x[i]);
	v4 a = __builtin_shufflevector(s[0], s[1], 0, 4, 1, 5) + __builtin_shufflevector(s[0], s[1], 2, 6, 3, 7);
	v4 b = __builtin_shufflevector(s[2], s[3], 0, 4, 1, 5) + __builtin_shufflevector(s[2], s[3], 2, 6, 3, 7);
	return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

// Four adjacent windows times up to FEW_COLS columns: b holds the columns one after the other, in runs padded with zeros.
#define FEW(cols)                                                                                                                       \
	static void ISA(few_##cols)(const run *r, int64_t runs, const float *a, int64_t ar, const float *b, int64_t column, v4 *sum)    \
	{                                                                                                                               \
		vf acc[cols][4];                                                                                                        \
		UNROLL for (int j = 0; j < cols; j++)                                                                                   \
			UNROLL for (int i = 0; i < 4; i++)                                                                              \
				acc[j][i] = (vf){0};                                                                                    \
		for (; runs > 0; runs--, r++) {                                                                                         \
			const float *x = a + r->a, *y = b + r->b;                                                                       \
			int64_t k = r->n;                                                                                               \
			for (; k >= VL; k -= VL, x += VL, y += VL) {                                                                    \
				UNROLL for (int i = 0; i < 4; i++) {                                                                    \
					vf v = *(const vf *)(x + i * ar);                                                               \
					UNROLL for (int j = 0; j < cols; j++)                                                           \
						acc[j][i] += v * *(const vf *)(y + j * column);                                         \
				}                                                                                                       \
			}                                                                                                               \
			if (k > 0)                                                                                                      \
				UNROLL for (int i = 0; i < 4; i++) {                                                                    \
					vf v = ISA(load_first)(x + i * ar, k);                                                          \
					UNROLL for (int j = 0; j < cols; j++)                                                           \
						acc[j][i] += v * *(const vf *)(y + j * column);                                         \
				}                                                                                                       \
		}                                                                                                                       \
		UNROLL for (int j = 0; j < cols; j++)                                                                                   \
			sum[j] = ISA(sums)(acc[j]);                                                                                     \
	}
FEW(1) FEW(2) FEW(3) FEW(4)

static void ISA(window_few)(const windowed *q, const window *w, const extent *e, const float *b, float *y, const float *room)
{
	static void (*const few[FEW_COLS])(const run *, int64_t, const float *, int64_t, const float *, int64_t, v4 *) = {
		ISA(few_1), ISA(few_2), ISA(few_3), ISA(few_4)};
	int64_t pitch = q->s.columns * q->s.c;
	y += w->out, b += w->b;
	for (int64_t i = e->i0; i < e->i1; i++) {
		const float *image = room + ((i - e->i0) * (e->l1 - e->l0) - e->l0) * pitch + w->first;
		for (int64_t l = w->h * e->j / e->parts; l < w->h * (e->j + 1) / e->parts; l++)
			for (int64_t x = 0; x < w->w; x += 4) {
				v4 sum[FEW_COLS];
				few[q->n - 1](w->r, w->runs, image + l * w->line + x * w->column, w->column, b, w->panel, sum);
				float *c = y + i * q->obatch + l * w->oline + x * w->ocolumn;
				for (int64_t k = 0; k < 4 && x + k < w->w; k++)
					for (int64_t j = 0; j < q->n; j++)
						c[k * w->ocolumn + j * q->ochannel] = sum[j][k];
			}
	}
}

static void ISA(pack_few)(const product *q, const window *w, const float *b, float *to, int64_t column)
{
	for (int64_t n = 0; n < q->n; n++, to += column) {
		int64_t k = 0;
		for (int64_t i = 0; i < w->runs; i++) {
			const run *r = &w->r[i];
			float *at = to + r->b;
			for (int64_t t = 0; t < r->n; t += BLOCK_K) {
				int64_t len = r->n - t < BLOCK_K ? r->n - t : BLOCK_K;
				ISA(pack)(&q->b, b, n, 1, 1, k, len, at + t);
				k += len;
			}
			for (int64_t t = r->n; t % VL; t++)
				at[t] = 0;
		}
	}
}

static void ISA(convolve_windows)(const windowed *q, const window *w, const extent *e, const float *x, const float *b, float *y, float *room)
{
	if (q->half)
		for (int64_t i = e->i0, at = 0; i < e->i1; i++)
			for (int64_t l = e->l0; l < e->l1; l++, at += q->pitch)
				ISA(stage_halves)(&q->s, x + i * q->s.batch, q->s.y0 + l, (half *)(void *)(room + at));
	else
		ISA(stage)(&q->s, x, e->i0, e->i1, e->l0, e->l1, room);
	for (int64_t i = 0; i < q->windows; i++) {
		if (q->few)
			ISA(window_few)(q, &w[i], e, b, y, room);
		for (int64_t p = e->p0; p < e->p1 && !q->few; p++)
			ISA(window_panel)(q, &w[i], e, p, b, y, room);
	}
}

static void ISA(pack_panels)(const product *q, const float *b, float *to, int64_t p0, int64_t p1)
{
	for (int64_t p = p0; p < p1; p++) {
		int64_t cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS;
		for (int64_t k = 0; k < q->k; k += BLOCK_K) {
			int64_t kc = q->k - k < BLOCK_K ? q->k - k : BLOCK_K;
			ISA(pack)(&q->b, b, p * COLS, cols, COLS, k, kc, to + (p * q->k + k) * COLS);
		}
	}
}

static void ISA(half_pack_panels)(const product *q, const float *b, float *to, int64_t p0, int64_t p1)
{
	float block[BLOCK_K * COLS];
	for (int64_t p = p0; p < p1; p++) {
		int64_t cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS;
		for (int64_t k = 0; k < q->k; k += BLOCK_K) {
			int64_t kc = q->k - k < BLOCK_K ? q->k - k : BLOCK_K;
			ISA(pack)(&q->b, b, p * COLS, cols, COLS, k, kc, block);
			uint32_t *at = (uint32_t *)(void *)(to + (p * q->k + k) / 2 * COLS);
			for (int64_t t = 0; t < kc; t += 2, at += COLS)
				ISA(pair_rows)(block + t * COLS, block + (t + 1) * COLS, COLS, at, 0);
		}
	}
}

// ---- correlations ----

// One tile of a correlation: rows adjacent floats of a times columns of b, into c, whose rows are width floats long.
static void ISA(correlation_tile)(int64_t half, const run *r, int64_t runs, const float *a, int64_t rows, int64_t ak, const float *b, int64_t bk,
	int64_t cols, float *c, int64_t width, int add)
{
	int64_t group[GROUPS] = {0, GROUP, 2 * GROUP}, row[ROWS];
	int vectors = cols > VL ? 2 : 1;
	ISA(direct_tile) tile = ISA(tile_of)(half, rows, vectors);
	if (cols == vectors * VL) {
		for (int64_t i = 0; i < rows; i++)
			row[i] = i * width;
		tile(r, runs, a, group, 1, ak, b, bk, c, row, add);
		return;
	}
	float copy[ROWS * COLS];
	tile(r, runs, a, group, 1, ak, b, bk, copy, ISA(flat), 0);
	for (int64_t i = 0; i < rows; i++)
		ISA(store_row)(c + i * width, copy + i * COLS, cols, add);
}

// Height of panels that are as few as possible and about equally high.
static inline int64_t ISA(height)(int64_t rows)
{
	int64_t panels = (rows + ROWS - 1) / ROWS;
	return (rows + panels - 1) / panels;
}

// The layout of what a part has staged.
typedef struct {
	int64_t lines, step;     // lines of an image, and distance from one line of the image to the next
	int64_t pixel, pitch, image; // floats of a position, a line and an image
	int64_t block, blocks;       // number of adjacent rows, and number of such blocks
	int64_t column, w;       // floats from a column to the next, and number of columns of v, or of pairs of them
	int64_t positions;       // of all images together
	const float *x, *v;
	int64_t vimage, vline, vcolumn, vpanel; // strides of v
} ISA(staged);

// Stages the lines of images [i, i + count) that the part needs. With bfloat16, each word holds a value and that of the next column.
static void ISA(stage_correlated)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const float *x, int64_t i, int64_t count,
	float *to, float *line)
{
	for (int64_t k = 0; k < count; k++)
		for (int64_t l = 0; l < s->lines; l++, to += s->pitch) {
			const float *image = x + (i + k) * q->s.batch;
			int64_t y = q->s.y0 + p->o0 + l * s->step, c = q->s.c;
			if (!q->half && !q->pad) {
				ISA(stage_line)(&q->s, image, y, to);
				continue;
			}
			ISA(stage_line)(&q->s, image, y, line);
			if (!q->pad) {
				ISA(pair_rows)(line, line + q->column, s->pitch - q->column, (uint32_t *)(void *)to, 0);
				ISA(pair_rows)(line + s->pitch - q->column, 0, q->column, (uint32_t *)(void *)(to + s->pitch - q->column), 0);
				continue;
			}
			for (int64_t j = 0; j < q->s.columns; j++) {
				const float *from = line + j * c, *next = (j + 1) * c + q->column <= q->s.columns * c ? from + q->column : 0;
				if (q->half)
					ISA(pair_rows)(from, next, c, (uint32_t *)(void *)(to + j * s->pixel), 0);
				else
					memcpy(to + j * s->pixel, from, c * sizeof *from);
			}
		}
}

// Stages v's channels [n0, n1) of images [i, i + count).
static void ISA(stage_panels)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const float *v, int64_t i, int64_t count, float *to)
{
	int64_t width = q->swapped ? p->n1 - p->n0 : COLS, unit = q->half ? 2 : 1; // of a panel
	for (int64_t k = 0; k < count; k++)
		for (int64_t l = 0; l < q->h; l++)
			for (int64_t c = 0; c < s->w; c++, to += s->vcolumn) {
				const float *from = v + (i + k) * q->vbatch + l * q->vline + unit * c * q->vcolumn;
				for (int64_t n = p->n0; n < p->n1; n += width) {
					int64_t cols = p->n1 - n < width ? p->n1 - n : width;
					float *at = to + (n - p->n0) / width * s->vpanel;
					if (q->half)
						ISA(pair_rows)(from + n, from + q->vcolumn + n, cols, (uint32_t *)(void *)at, 0);
					else
						memcpy(at, from + n, cols * sizeof *at);
				}
			}
}

// Sums over some lines, given as runs, with v's channels as columns. The last columns of v, where vectors would read beyond
// its end, are read through a copy.
static void ISA(correlate_lines)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const run *r, int64_t runs, float *sums,
	int last, int add)
{
	int64_t h = ISA(height)(s->block);
	for (int64_t n = p->n0; n < p->n1; n += COLS) {
		int64_t cols = p->n1 - n < COLS ? p->n1 - n : COLS, count = runs;
		const float *v = q->panels ? s->v + (n - p->n0) / COLS * s->vpanel : s->v + n;
		float copy[2 * COLS] = {0};
		run own[MAX_RUNS + 1];
		memcpy(own, r, runs * sizeof(run));
		int64_t reach = n + (cols > VL ? 2 : 1) * VL, tail = last && !q->panels ? (reach + s->vcolumn - 1) / s->vcolumn - 1 : 0;
		if (tail > 0) {
			run *end = &own[runs - 1];
			end->n -= tail;
			memcpy(copy, v + end->b + end->n * s->vcolumn, 4 * (tail * s->vcolumn - n));
			own[count++] = (run){end->a + end->n * s->column, ((intptr_t)copy - (intptr_t)v) / 4, tail};
		}
		for (int64_t i = p->o0; i < p->o1; i++)
			for (int64_t j = 0; j < s->blocks; j++)
				for (int64_t m = 0; m < s->block; m += h)
					ISA(correlation_tile)(q->half, own, count, s->x + (i - p->o0) * s->pitch + j * s->pixel + m,
						s->block - m < h ? s->block - m : h, s->column, v, s->vcolumn, cols,
						sums + i * q->sline + j * q->sposition + m * q->srow + n, q->srow, add);
	}
}

// The same with v's channels as rows.
static void ISA(correlate_swapped)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const run *r, int64_t runs, float *sums, int add)
{
	run swapped[MAX_RUNS];
	for (int64_t i = 0; i < runs; i++)
		swapped[i] = (run){r[i].b, r[i].a, r[i].n};
	int64_t h = ISA(height)(p->n1 - p->n0);
	const float *v = q->panels ? s->v : s->v + p->n0;
	for (int64_t i = p->o0; i < p->o1; i++)
		for (int64_t j = 0; j < s->blocks; j++)
			for (int64_t m = 0; m < s->block; m += COLS)
				for (int64_t n = 0; n < p->n1 - p->n0; n += h)
					ISA(correlation_tile)(q->half, swapped, runs, v + n, p->n1 - p->n0 - n < h ? p->n1 - p->n0 - n : h, s->vcolumn,
						s->x + (i - p->o0) * s->pitch + j * s->pixel + m, s->column, s->block - m < COLS ? s->block - m : COLS,
						sums + i * q->sline + j * q->sposition + (p->n0 + n) * q->srow + m, q->srow, add);
}

// The layout of what a part stages for count images.
static ISA(staged) ISA(staged_of)(const correlated *q, const correlation_part *p, int64_t count)
{
	int64_t c = q->s.c, apart = q->line / (q->s.columns * c); // lines of the image between those that follow each other in the sum
	ISA(staged) s = {.pixel = c + q->pad, .block = q->pad ? c : q->rows, .blocks = q->pad ? q->rows / c : 1, .step = 1, .w = q->w,
		.vimage = q->vbatch, .vline = q->vline, .vcolumn = q->vcolumn};
	s.pitch = q->s.columns * s.pixel, s.column = q->column / c * s.pixel;
	s.lines = (q->h - 1) * apart + p->o1 - p->o0;
	if (p->o1 - p->o0 == 1)
		s.lines = q->h, s.step = apart;
	s.image = s.lines * s.pitch;
	if (q->half)
		s.w /= 2, s.column *= 2;
	s.positions = count * q->h * s.w;
	if (q->panels) {
		s.vcolumn = q->swapped ? p->n1 - p->n0 + (q->pad ? VL : 0) : COLS;
		s.vline = s.w * s.vcolumn, s.vimage = q->h * s.vline, s.vpanel = s.positions * s.vcolumn;
	}
	return s;
}

// Tiles read up to two vectors after the last row.
static int64_t ISA(correlate_floats)(const correlated *q, const correlation_part *p)
{
	ISA(staged) s = ISA(staged_of)(q, p, q->group);
	int64_t panels = q->swapped ? 1 : (p->n1 - p->n0 + COLS - 1) / COLS;
	return q->group * s.image + s.pitch + (q->panels ? panels * s.vpanel : 0) + 4 * COLS;
}

static void ISA(correlate)(const correlated *q, const correlation_part *p, const float *x, const float *v, float *sums, float *room)
{
	for (int64_t i = p->i0; i < p->i1; i += q->group) {
		int64_t count = p->i1 - i < q->group ? p->i1 - i : q->group;
		ISA(staged) s = ISA(staged_of)(q, p, count);
		float *line = room + count * s.image, *panels = line + s.pitch + 2 * COLS;
		ISA(stage_correlated)(q, p, &s, x, i, count, room, line);
		if (q->panels)
			ISA(stage_panels)(q, p, &s, v, i, count, panels);
		s.x = room, s.v = q->panels ? panels : v + i * q->vbatch;
		int64_t most = POSITIONS / s.w, next = s.step == 1 ? q->line / (q->s.columns * q->s.c) * s.pitch : s.pitch, lines = count * q->h;
		most = most < 1 ? 1 : most > MAX_RUNS ? MAX_RUNS : most;
		for (int64_t l = 0; l < lines; l += most) {
			run r[MAX_RUNS];
			int64_t runs = lines - l < most ? lines - l : most;
			for (int64_t k = 0; k < runs; k++) {
				int64_t image = (l + k) / q->h, at = (l + k) % q->h;
				r[k] = (run){image * s.image + at * next, image * s.vimage + at * s.vline, s.w};
			}
			int add = i > p->i0 || l > 0;
			if (q->swapped)
				ISA(correlate_swapped)(q, p, &s, r, runs, sums, add);
			else
				ISA(correlate_lines)(q, p, &s, r, runs, sums, i + count == q->images && l + runs == lines, add);
		}
	}
}

static void ISA(correlate_join)(const correlated *q, const float *part, int64_t parts, float *y, int64_t r0, int64_t r1)
{
	int64_t size = q->oh * q->rows * q->n;
	int64_t rs = q->swapped ? 1 : q->n, ns = q->swapped ? q->rows : 1;
	for (int64_t r = r0; r < r1; r++) {
		int64_t i = r / q->rows, m = r % q->rows;
		const float *from = part + i * q->rows * q->n + m * rs;
		float *to = y + i * q->oy + m / q->c * q->ox + m % q->c * q->oc;
		for (int64_t n = 0; n < q->n; n++) {
			float sum = from[n * ns];
			for (int64_t p = 1; p < parts; p++)
				sum += from[p * size + n * ns];
			to[n * q->on] = sum;
		}
	}
}

#undef GROUP
#undef RUNS_TILE
#undef FLOATS
#undef TIMES_FLOAT
#undef DIRECT
#undef DIRECTS
#undef HALVES_TILE
#undef HALVES
#undef BOTH
#undef FEW
#undef PAIRED
#undef TILE_OF
