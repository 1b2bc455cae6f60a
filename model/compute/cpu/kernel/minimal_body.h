// Convolutions by minimal filtering for one instruction set; see direct.h.

// ---- operands ----

// to = x - y for n floats.
static inline void ISA(differ)(const float *x, const float *y, int64_t n, float *to)
{
	int64_t i = 0;
	for (; i + VL <= n; i += VL)
		*(vf *)(to + i) = *(const vf *)(x + i) - *(const vf *)(y + i);
	if (i < n)
		ISA(store_first)(to + i, ISA(load_first)(x + i, n - i) - ISA(load_first)(y + i, n - i), n - i);
}

// The words of pairs of values: the nearest bfloat16 of x in the lower halves, those of y in the upper ones.
static inline vu ISA(paired_values)(vf x, vf y) { return (vu)ISA(round_bf16)(x) >> 16 | (vu)ISA(round_bf16)(y); }

#if defined(SET_AVX512)
// The same with the processor's conversion, which treats denormals as zero.
BF16_TARGET static inline vu vdp_paired_values(vf x, vf y)
{
	static const uint16_t order[32] __attribute__((aligned(64))) = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26,
		11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
	return (vu)_mm512_permutexvar_epi16(_mm512_load_si512(order), (__m512i)_mm512_cvtne2ps_pbh((__m512)y, (__m512)x));
}
#endif

// The first n of VL values, which are stored as bfloat16; the others are zero.
static inline vf ISA(widened_first)(const half *x, int64_t n)
{
	half first[VL] = {0};
	memcpy(first, x, n * sizeof *x);
	return ISA(widened)(first);
}

#define WHOLE_FLOATS(x, at) (*(const vf *)(x + at))
#define FIRST_FLOATS(x, at, n) ISA(load_first)(x + at, n)
#define WHOLE_HALVES(x, at) ISA(widened)((const half *)(const void *)(x) + (at))
#define FIRST_HALVES(x, at, n) ISA(widened_first)((const half *)(const void *)(x) + (at), n)

// The factors of five values in one dimension, with tiles of 4 x 4 outputs or positions.
static inline void ISA(factors_5)(const vf *x, vf *f)
{
	f[0] = (x[0] + x[3]) - 1.5f * (x[1] + x[2]), f[1] = (x[1] + x[3]) - 2.5f * x[2], f[2] = x[1] + 0.5f * (x[2] - x[3]);
	f[3] = x[3] + 0.5f * (x[2] - x[1]), f[4] = (x[1] + x[4]) - 1.5f * (x[2] + x[3]);
}

// The factors of a vector of each of five rows of values, of which n are there.
#define VECTOR_FACTORS(name, WHOLE, FIRST)                                                              \
	static inline void ISA(name)(const float *const *x, int64_t i, int64_t n, vf *f)                \
	{                                                                                               \
		vf v[QUAD_FACTORS];                                                                     \
		UNROLL for (int k = 0; k < QUAD_FACTORS; k++)                                           \
			v[k] = n >= VL ? WHOLE(x[k], i) : FIRST(x[k], i, n);                            \
		ISA(factors_5)(v, f);                                                                   \
	}
VECTOR_FACTORS(float_factors_of, WHOLE_FLOATS, FIRST_FLOATS)
VECTOR_FACTORS(narrow_factors_of, WHOLE_HALVES, FIRST_HALVES)

// Functions that write the factors of n values of each of count tiles, whose values are step apart: as floats, from floats or from values that are stored as
// bfloat16, or as bfloat16.
#define WRITE_FLOATS(name, FACTORS_AT)                                                                                           \
	static void ISA(name)(const float *const *x, int64_t step, int64_t n, int64_t count, void *const *to)                    \
	{                                                                                                                        \
		const float *v[] = {x[0], x[1], x[2], x[3], x[4]};                                                               \
		float *w[] = {to[0], to[1], to[2], to[3], to[4]};                                                                \
		vf f[QUAD_FACTORS];                                                                                              \
		for (int64_t t = 0, at = 0, out = 0; t < count; t++, at += step, out += n) {                                     \
			int64_t i = 0;                                                                                           \
			for (; i + VL <= n; i += VL) {                                                                           \
				ISA(FACTORS_AT)(v, at + i, VL, f);                                                               \
				UNROLL for (int u = 0; u < QUAD_FACTORS; u++)                                                    \
					*(vf *)(w[u] + out + i) = f[u];                                                          \
			}                                                                                                        \
			if (i < n) {                                                                                             \
				ISA(FACTORS_AT)(v, at + i, n - i, f);                                                            \
				for (int u = 0; u < QUAD_FACTORS; u++)                                                           \
					ISA(store_first)(w[u] + out + i, f[u], n - i);                                           \
			}                                                                                                        \
		}                                                                                                                \
	}
WRITE_FLOATS(fives_floats, float_factors_of)
WRITE_FLOATS(fives_widened, narrow_factors_of)
#define WRITE_HALVES(TARGET, name, STORE)                                                                                        \
	TARGET static void ISA(name)(const float *const *x, int64_t step, int64_t n, int64_t count, void *const *to)             \
	{                                                                                                                        \
		const float *v[] = {x[0], x[1], x[2], x[3], x[4]};                                                               \
		half *w[] = {to[0], to[1], to[2], to[3], to[4]};                                                                 \
		vf f[QUAD_FACTORS], g[QUAD_FACTORS];                                                                             \
		for (int64_t t = 0, at = 0, out = 0; t < count; t++, at += step, out += n) {                                     \
			int64_t i = 0;                                                                                           \
			for (; i + 2 * VL <= n; i += 2 * VL) {                                                                   \
				ISA(float_factors_of)(v, at + i, VL, f);                                                         \
				ISA(float_factors_of)(v, at + i + VL, VL, g);                                                    \
				UNROLL for (int u = 0; u < QUAD_FACTORS; u++)                                                    \
					STORE(f[u], g[u], w[u] + out + i);                                                       \
			}                                                                                                        \
			for (int64_t m; i < n; i += m) {                                                                         \
				m = n - i < VL ? n - i : VL;                                                                     \
				ISA(float_factors_of)(v, at + i, m, f);                                                          \
				for (int u = 0; u < QUAD_FACTORS; u++)                                                           \
					ISA(store_rounded)((const float *)&f[u], 0, m, w[u] + out + i);                          \
			}                                                                                                        \
		}                                                                                                                \
	}
static inline void ISA(store_pair)(vf x, vf y, half *to)
{
	ISA(store_half)(to, x);
	ISA(store_half)(to + VL, y);
}
WRITE_HALVES(, fives_rounded, ISA(store_pair))
#if defined(SET_AVX512)
// The same with the processor's conversion, which treats denormals as zero, as its products do.
BF16_TARGET static inline void convert_pair(vf x, vf y, half *to) { _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh((__m512)y, (__m512)x)); }
WRITE_HALVES(BF16_TARGET, fives_converted, convert_pair)
#endif

typedef void (*ISA(fives))(const float *const *, int64_t, int64_t, int64_t, void *const *);

static ISA(fives) ISA(fives_of)(int64_t half)
{
#if defined(SET_AVX512)
	if (half == HALF_AVX512)
		return ISA(fives_converted);
#endif
	return half ? ISA(fives_rounded) : ISA(fives_floats);
}

// Stages the factors of five lines of an image from y on, each in a line of its own; a sixth one has zeros.
static void ISA(factor_lines)(const minimal *q, const float *x, int64_t y, float *line)
{
	const staging *s = &q->s;
	int64_t lo, hi, all = s->columns * s->c;
	const float *zeros = line + QUAD_FACTORS * all, *lines[QUAD_FACTORS];
	void *to[QUAD_FACTORS];
	ISA(inside)(s, y, &lo, &hi);
	hi = hi < lo ? lo : hi; // no column is inside
	for (int64_t k = 0; k < QUAD_FACTORS; k++) {
		int64_t at = y + k * q->ymove;
		lines[k] = at >= 0 && at < s->h ? ISA(element)(x, at * s->sy + (s->x0 + lo) * s->c, s->narrow) : zeros;
		float *row = line + k * all;
		memset(row, 0, 4 * lo * s->c);
		memset(row + hi * s->c, 0, 4 * (all - hi * s->c));
		to[k] = row + lo * s->c;
	}
	(s->narrow ? ISA(fives_widened) : ISA(fives_floats))(lines, 0, (hi - lo) * s->c, 1, to);
}

// Stages the planes of the extent's tiles of 4 x 4 outputs.
static void ISA(stage_fives)(const minimal *q, const extent *e, int64_t i0, int64_t i1, const float *x, float *room, float *line)
{
	int64_t c = q->s.c, all = q->s.columns * c, lines = e->l1 - e->l0, words = c / UNIT(q), size = (e->i1 - e->i0) * lines * q->w * words;
	ISA(fives) write = ISA(fives_of)(q->half);
	memset(line + QUAD_FACTORS * all, 0, 4 * all);
	for (int64_t i = i0; i < i1; i++)
		for (int64_t l = e->l0 + lines * e->j / e->parts; l < e->l0 + lines * (e->j + 1) / e->parts; l++)
			for (const five *y = q->y.five; y < q->y.five + q->y.fives; y++) {
				ISA(factor_lines)(q, ISA(element)(x, i * q->s.batch, q->s.narrow), y->first + q->tile * q->ymove * l, line);
				float *row = room + ((i - e->i0) * lines + l - e->l0) * q->w * words;
				for (int64_t u = 0; u < QUAD_FACTORS; u++)
					for (const five *z = q->x.five; y->of[u] >= y->known && z < q->x.five + q->x.fives; z++) {
						const float *from[QUAD_FACTORS];
						void *to[QUAD_FACTORS];
						for (int64_t k = 0; k < QUAD_FACTORS; k++) {
							from[k] = line + u * all + (z->first - q->s.x0 + k * q->xmove) * c;
							to[k] = row + (y->of[u] * q->x.n + z->of[k]) * size;
						}
						write(from, q->tile * q->xmove * c, c, q->w, to);
					}
			}
}

// Stages a line of an image, or its difference from the next one that tiles read. line has room for two lines.
static void ISA(plane_line)(const minimal *q, const float *x, int64_t y, int64_t form, float *line)
{
	const staging *s = &q->s;
	int64_t lo, hi, all = s->columns * s->c;
	float *wide = line + all;
	ISA(stage_line)(s, x, y, line);
	if (form == VALUE || !ISA(inside)(s, y + q->ymove, &lo, &hi))
		return;
	const float *other = ISA(element)(x, (y + q->ymove) * s->sy + (s->x0 + lo) * s->c, s->narrow);
	float *to = line + lo * s->c;
	if (s->narrow) {
		ISA(widen)(other, (hi - lo) * s->c, wide);
		other = wide;
	}
	ISA(differ)(to, other, (hi - lo) * s->c, to);
}

// Stages the planes of the extent's tiles of 2 x 2 outputs: for each plane and block of channels, a row for each tile. What all planes read of a line stays in
// a cache.
static void ISA(stage_pairs)(const minimal *q, const extent *e, int64_t i0, int64_t i1, const float *x, float *room, float *line)
{
	int64_t c = q->s.c, lines = e->l1 - e->l0, block = q->block / UNIT(q), size = (e->i1 - e->i0) * lines * q->w * c / UNIT(q), apart = q->xmove * c;
	void (*store)(const float *, const float *, int64_t, half *) = ISA(store_rounded);
#if defined(SET_AVX512)
	if (q->half == HALF_AVX512)
		store = store_converted;
#endif
	for (int64_t i = i0; i < i1; i++)
		for (int64_t a = 0; a < q->y.n; a++)
			for (int64_t l = e->l0 + lines * e->j / e->parts; l < e->l0 + lines * (e->j + 1) / e->parts; l++) {
				float *row = room + a * q->x.n * size + ((i - e->i0) * lines + l - e->l0) * q->w * block;
				ISA(plane_line)(q, ISA(element)(x, i * q->s.batch, q->s.narrow), q->y.all[a].first + q->tile * q->ymove * l, q->y.all[a].form, line);
				for (int64_t j = 0; j < q->w; j++, row += block)
					for (int64_t k = 0; k < c; k += q->block)
						for (int64_t b = 0; b < q->x.n; b++) {
							const float *from = line + (q->x.all[b].first - q->s.x0 + j * q->tile * q->xmove) * c + k;
							float *to = row + b * size + size / c * k;
							int64_t differs = q->x.all[b].form == DIFFERENCE;
							if (q->half)
								store(from, differs ? from + apart : 0, q->block, (half *)(void *)to);
							else if (differs)
								ISA(differ)(from, from + apart, q->block, to);
							else
								memcpy(to, from, 4 * q->block);
						}
			}
}

static void ISA(stage_planes)(const minimal *q, const extent *e, int64_t i0, int64_t i1, const float *x, float *room, float *line)
{
	(q->tile == 4 ? ISA(stage_fives) : ISA(stage_pairs))(q, e, i0, i1, x, room, line);
}

// ---- tiles ----

// acc[i][j] = sum over runs and t of a[i * ar + r->a + t] b[r->b + t * COLS + j*VL..], plus more and also, which have a tile's layout, where they are
// not null. Added in registers, they cost 2 to 5% less time than with direct tiles that store their sums. Each step fetches a little of the following
// rows of a.
#define ADJACENT(i) a + i * ar + r->a
#define ROWS_OF(acc) ((int64_t)(sizeof(acc) / sizeof *(acc)))
#define FOLLOWING(vectors) __builtin_prefetch(a + r->a + ROWS_OF(acc) * ar + (r->n - k) * ROWS_OF(acc));
#define ADD(rows, vectors, f)                                    \
	if (f)                                                   \
		UNROLL for (int i = 0; i < rows; i++)            \
			UNROLL for (int j = 0; j < vectors; j++) \
				acc[i][j] += *(const vf *)(f + i * COLS + j * VL);
#define MINIMAL_TILE(TARGET, name, rows, vectors, V, LOAD, TIMES)                                                                 \
	TARGET static void ISA(name##_##rows##_##vectors)(const run *r, int64_t runs, const float *a, int64_t ar, const float *b, \
		const float *more, const float *also, float *c, const int64_t *row)                                               \
	{                                                                                                                         \
		const int64_t ak = 1, bk = COLS;                                                                                  \
		RUNS_SUM(rows, vectors, ADJACENT, FOLLOWING, V, LOAD, TIMES)                                                      \
		ADD(rows, vectors, more)                                                                                          \
		ADD(rows, vectors, also)                                                                                          \
		UNROLL for (int i = 0; i < rows; i++)                                                                             \
			UNROLL for (int j = 0; j < vectors; j++)                                                                  \
				*(vf *)(c + row[i] + j * VL) = acc[i][j];                                                         \
	}
#define MINIMALS(rows) MINIMAL_TILE(, minimal, rows, 1, vf, FLOATS, TIMES_FLOAT) MINIMAL_TILE(, minimal, rows, 2, vf, FLOATS, TIMES_FLOAT)
EACH_HEIGHT(MINIMALS)

typedef void (*ISA(minimal_tile))(const run *, int64_t, const float *, int64_t, const float *, const float *, const float *, float *, const int64_t *);
#define BOTH(rows) {ISA(minimal_##rows##_1), ISA(minimal_##rows##_2)},
static const ISA(minimal_tile) ISA(minimal_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

// The same for pairs of bfloat16, in plain C.
#define TIMES_HALVES(acc, x, v) ISA(times_halves)(acc, x, v)
#define WORDS_OF(y) (*(const vi *)(y))
static inline vf ISA(times_halves)(vf acc, const float *x, vi v)
{
	int32_t pair;
	memcpy(&pair, x, sizeof pair);
	vi words = (vi){0} + pair;
	return acc + ((vf)(words << 16) * (vf)(v << 16) + (vf)(words & -65536) * (vf)(v & -65536));
}
#define MINIMAL_HALVES(rows) MINIMAL_TILE(, minimal_halves, rows, 1, vi, WORDS_OF, TIMES_HALVES) MINIMAL_TILE(, minimal_halves, rows, 2, vi, WORDS_OF, TIMES_HALVES)
EACH_HEIGHT(MINIMAL_HALVES)
#undef BOTH
#define BOTH(rows) {ISA(minimal_halves_##rows##_1), ISA(minimal_halves_##rows##_2)},
static const ISA(minimal_tile) ISA(minimal_halves_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

#if defined(SET_AVX512)
#define MINIMAL_VDPS(rows)                                                             \
	MINIMAL_TILE(BF16_TARGET, minimal_vdp, rows, 1, __m512bh, PAIRS_OF, TIMES_PAIR) \
	MINIMAL_TILE(BF16_TARGET, minimal_vdp, rows, 2, __m512bh, PAIRS_OF, TIMES_PAIR)
EACH_HEIGHT(MINIMAL_VDPS)
#undef BOTH
#define BOTH(rows) {ISA(minimal_vdp_##rows##_1), ISA(minimal_vdp_##rows##_2)},
static const ISA(minimal_tile) ISA(minimal_vdp_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};
#endif

static inline ISA(minimal_tile) ISA(minimal_tile_of)(int64_t half, int64_t rows, int64_t vectors)
{
#if defined(SET_AVX512)
	if (half == HALF_AVX512)
		return ISA(minimal_vdp_tiles)[rows - 1][vectors - 1];
#endif
	return (half ? ISA(minimal_halves_tiles) : ISA(minimal_tiles))[rows - 1][vectors - 1];
}

// The products of points in the order in which outputs are summed: each adds the sums more and also, counted from 1, and is stored in sum to, or, if that is
// 0, in output at of a tile.
typedef struct {
	int8_t point, more, also, to, at;
} ISA(step);
static const ISA(step) ISA(pair_steps)[POINTS] = {
	{MIDDLE * FACTORS + MIDDLE, 0, 0, 1, 0},
	{LOW_TAP * FACTORS + MIDDLE, 1, 0, 2, 0}, {HIGH_TAP * FACTORS + MIDDLE, 1, 0, 3, 0},
	{MIDDLE * FACTORS + LOW_TAP, 0, 0, 4, 0}, {MIDDLE * FACTORS + HIGH_TAP, 0, 0, 5, 0},
	{LOW_TAP * FACTORS + LOW_TAP, 2, 4, 0, 0}, {LOW_TAP * FACTORS + HIGH_TAP, 2, 5, 0, 1},
	{HIGH_TAP * FACTORS + LOW_TAP, 3, 4, 0, 2}, {HIGH_TAP * FACTORS + HIGH_TAP, 3, 5, 0, 3},
};

// The four outputs of five sums in one dimension.
static inline void ISA(quad)(const vf *m, int64_t apart, vf *to)
{
	vf minus = m[apart], half = m[2 * apart], two = m[3 * apart];
	to[0] = (m[0] + minus) + (two + 8 * half), to[1] = (2 * two - minus) + 4 * half, to[2] = (2 * half + minus) + 4 * two;
	to[3] = (m[4 * apart] - minus) + (half + 8 * two);
}

// Functions that write the outputs of rows of tiles from their sums, which are size floats apart. STORE stores a vector of them at y + at.
#define QUAD_OUTPUTS(TARGET, name, STORE)                                                                                                                    \
	TARGET static void ISA(name)(const minimal *q, const float *sums, int64_t size, int64_t rows, int64_t vectors, float *y, const int64_t *row)         \
	{                                                                                                                                                    \
		for (int64_t i = 0; i < rows; i++)                                                                                                           \
			for (int64_t j = 0; j < vectors; j++) {                                                                                              \
				const float *s = sums + i * COLS + j * VL;                                                                                   \
				vf m[QUAD_POINTS], lines[QUAD_FACTORS][4];                                                                                   \
				int64_t at = row[i] + j * VL;                                                                                                \
				UNROLL for (int u = 0; u < QUAD_POINTS; u++)                                                                                 \
					m[u] = *(const vf *)(s + u * size);                                                                                  \
				UNROLL for (int x = 0; x < QUAD_FACTORS; x++)                                                                                \
					ISA(quad)(m + x, QUAD_FACTORS, lines[x]);                                                                            \
				UNROLL for (int l = 0; l < 4; l++) {                                                                                         \
					vf out[4];                                                                                                           \
					ISA(quad)(&lines[0][l], 4, out);                                                                                     \
					UNROLL for (int k = 0; k < 4; k++)                                                                                   \
						STORE(y, at + l * q->oline + k * q->ocolumn, out[k]);                                                        \
				}                                                                                                                            \
			}                                                                                                                                    \
	}
#define AS_FLOATS(y, at, x) *(vf *)((y) + (at)) = (x)
#define AS_HALVES(y, at, x) ISA(store_half)((half *)(void *)(y) + (at), x)
QUAD_OUTPUTS(, quad_floats, AS_FLOATS)
QUAD_OUTPUTS(, quad_rounded, AS_HALVES)
#if defined(SET_AVX512)
#define AS_CONVERTED(y, at, x) convert_half((half *)(void *)(y) + (at), (__m512)(x))
QUAD_OUTPUTS(BF16_TARGET, quad_converted, AS_CONVERTED)
#endif

static void ISA(quad_outputs)(const minimal *q, const float *sums, int64_t size, int64_t rows, int64_t vectors, float *y, const int64_t *row)
{
#if defined(SET_AVX512)
	if (q->rounds && q->half == HALF_AVX512) {
		ISA(quad_converted)(q, sums, size, rows, vectors, y, row);
		return;
	}
#endif
	(q->rounds ? ISA(quad_rounded) : ISA(quad_floats))(q, sums, size, rows, vectors, y, row);
}

// Computes the outputs of tiles [i0, i1) of all rows, and of panels [p0, p1) of a class. A point's products of all of them follow each other, so that its
// operands stay in caches. at has the offsets of the tiles' outputs; sums has room for the sums of each.
static void ISA(minimal_panels)(const minimal *q, const minimal_class *w, int64_t rows, int64_t i0, int64_t i1, int64_t p0, int64_t p1,
	const float *planes, const float *b, float *y, const int64_t *at, float *sums)
{
	const tile_sizes *z = sizes_of(q->tile, VL);
	int64_t quads = q->tile == 4, c = q->s.c / UNIT(q), runs = q->ypairs * q->xpairs, size = (i1 - i0) * COLS + z->pad, all = z->sums * size;
	for (int s = 0; s < z->points; s++) {
		int64_t fetched = quads ? s - (QUAD_POINTS - 16) : -1; // the output of each tile that is fetched, once the first sums are ready
		ISA(step) t = quads ? (ISA(step)){s, 0, 0, s + 1, 0} : ISA(pair_steps)[s];
		run r[MAX_PAIRS * MAX_PAIRS];
		for (int64_t ty = 0; ty < q->ypairs; ty++)
			for (int64_t tx = 0; tx < q->xpairs; tx++) {
				int64_t pair = ty * q->xpairs + tx, plane = w->y[t.point / z->factors][ty] * q->x.n + w->x[t.point % z->factors][tx];
				r[pair] = (run){.a = plane * rows * c, .b = t.point * q->apart + pair * c * COLS, .n = c};
			}
		for (int64_t p = p0; p < p1; p++) {
			int64_t vectors = q->n - p * COLS > VL ? 2 : 1, groups = (i1 - i0 + ROWS - 1) / ROWS;
			float *sum = sums + (p - p0) * all - size, *out = ISA(result)(y, p * COLS + t.at / 2 * q->oline + t.at % 2 * q->ocolumn, q->rounds), copy[ROWS * COLS];
			for (int64_t i = i0, height; i < i1; i += height, sum += height * COLS) {
				height = (i1 - i + groups - 1) / groups--;
				for (int64_t k = i - i0; fetched >= 0 && k < i - i0 + height; k++)
					for (int64_t m = 0; m < COLS; m += 16)
						__builtin_prefetch(ISA(element)(y, p * COLS + at[k] + fetched / 4 * q->oline + fetched % 4 * q->ocolumn + m, q->rounds), 1, 2);
				ISA(minimal_tile_of)(q->half, height, vectors)(r, runs, planes + i * c, c, b + (w->b + p * w->panel), t.more ? sum + t.more * size : 0,
					t.also ? sum + t.also * size : 0, t.to ? sum + t.to * size : q->rounds ? copy : out, t.to || q->rounds ? ISA(flat) : at + i - i0);
				for (int64_t k = 0; k < height && !t.to && q->rounds; k++)
					ISA(store_rounded)(copy + k * COLS, 0, vectors * VL, (half *)(void *)out + at[i - i0 + k]);
			}
		}
	}
	for (int64_t p = p0; quads && p < p1; p++)
		ISA(quad_outputs)(q, sums + (p - p0) * all, size, i1 - i0, q->n - p * COLS > VL ? 2 : 1, ISA(result)(y, p * COLS, q->rounds), at);
}

// Finds the offsets of the outputs of the extent's tiles [lo, hi).
static void ISA(tile_outputs)(const minimal *q, const extent *e, int64_t lo, int64_t hi, int64_t *at)
{
	int64_t lines = e->l1 - e->l0;
	for (int64_t i = lo; i < hi; i++) {
		int64_t line = i / q->w, column = i % q->w;
		at[i - lo] = (e->i0 + line / lines) * q->obatch + q->tile * ((e->l0 + line % lines) * q->oline + column * q->ocolumn);
	}
}

static void ISA(convolve_minimal)(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y, float *sums)
{
	int64_t rows = (e->i1 - e->i0) * (e->l1 - e->l0) * q->w, at[TALL];
	const tile_sizes *z = sizes_of(q->tile, VL);
	int64_t last = rows * (e->j + 1) / e->parts;
	for (int64_t i = rows * e->j / e->parts; i < last; i += z->tall) {
		int64_t end = last - i < z->tall ? last : i + z->tall;
		ISA(tile_outputs)(q, e, i, end, at);
		for (int64_t v = e->w0; v < e->w1; v++)
			for (int64_t p = e->p0; p < e->p1; p += z->panels)
				ISA(minimal_panels)(q, &w[v], rows, i, end, p, e->p1 - p < z->panels ? e->p1 : p + z->panels, planes, b, ISA(result)(y, w[v].out, q->rounds), at, sums);
	}
}

// ---- kernels ----

// The factors of each point, from a vector of each of four taps.
static inline void ISA(factors_of)(const vf *g, vf *f)
{
	f[0] = (g[0] + g[1]) + (g[2] + g[3]), f[1] = g[0] + g[2], f[2] = -(g[1] + g[3]);
	f[3] = g[0] + g[1], f[4] = g[0], f[5] = -g[1];
	f[6] = -(g[2] + g[3]), f[7] = -g[2], f[8] = g[3];
}

// The same for tiles of 4 x 4 outputs: in one dimension of taps that are apart vectors apart, and in two.
static inline void ISA(tap_factors)(const vf *g, int64_t apart, vf *f)
{
	vf low = g[0], high = g[apart];
	f[0] = low, f[1] = (high - low) * (2 / 9.0f), f[2] = (2 * low + high) * (1 / 9.0f), f[3] = (low + 2 * high) * (1 / 9.0f), f[4] = high;
}
static inline void ISA(quad_factors_of)(const vf *g, vf *f)
{
	vf lines[2][QUAD_FACTORS];
	ISA(tap_factors)(g, 1, lines[0]);
	ISA(tap_factors)(g + 2, 1, lines[1]);
	UNROLL for (int x = 0; x < QUAD_FACTORS; x++) {
		vf column[QUAD_FACTORS];
		ISA(tap_factors)(&lines[0][x], QUAD_FACTORS, column);
		UNROLL for (int y = 0; y < QUAD_FACTORS; y++)
			f[y * QUAD_FACTORS + x] = column[y];
	}
}

// Reads a vector of each of four taps.
static inline void ISA(read_taps)(const float *const *taps, int64_t at, vf *g)
{
	UNROLL for (int j = 0; j < 4; j++)
		g[j] = *(const vf *)(taps[j] + at);
}

// Stores a vector of packed factors in the caches, or past them.
#define KEPT(to, v) *(__typeof__(v) *)(to) = v
#if defined(SET_AVX512)
#define STREAMED(to, v) _mm512_stream_ps(to, (__m512)(v))
#endif

// Writes the factors of n rows of taps, which are step floats apart, to panels that are all floats apart.
#define WRITE_FACTORS(name, points, FACTORS_FROM, STORE)                                                 \
	static void ISA(name)(const float *const *taps, int64_t step, int64_t n, float *to, int64_t all) \
	{                                                                                                \
		for (int64_t k = 0; k < n; k++)                                                          \
			for (int64_t i = 0; i < COLS; i += VL, to += VL) {                               \
				vf g[4], f[points];                                                      \
				ISA(read_taps)(taps, k * step + i, g);                                   \
				ISA(FACTORS_FROM)(g, f);                                                 \
				UNROLL for (int u = 0; u < points; u++)                                  \
					STORE(to + u * all, f[u]);                                       \
			}                                                                                \
	}
WRITE_FACTORS(float_factors, POINTS, factors_of, KEPT)
WRITE_FACTORS(quad_factors, QUAD_POINTS, quad_factors_of, KEPT)
#if defined(SET_AVX512)
WRITE_FACTORS(streamed_factors, POINTS, factors_of, STREAMED)
WRITE_FACTORS(streamed_quad_factors, QUAD_POINTS, quad_factors_of, STREAMED)
#endif

// The same as pairs of rows.
#define HALF_FACTORS(TARGET, name, points, FACTORS_FROM, PAIR, STORE)                                           \
	TARGET static void ISA(name)(const float *const *taps, int64_t step, int64_t n, float *to, int64_t all) \
	{                                                                                                       \
		for (int64_t k = 0; k < n; k += 2)                                                              \
			for (int64_t i = 0; i < COLS; i += VL, to += VL) {                                      \
				vf g[4], f[points], h[points];                                                  \
				ISA(read_taps)(taps, k * step + i, g);                                          \
				ISA(FACTORS_FROM)(g, f);                                                        \
				ISA(read_taps)(taps, (k + 1) * step + i, g);                                    \
				ISA(FACTORS_FROM)(g, h);                                                        \
				UNROLL for (int u = 0; u < points; u++)                                         \
					STORE(to + u * all, PAIR(f[u], h[u]));                                  \
			}                                                                                       \
	}
HALF_FACTORS(, half_factors, POINTS, factors_of, ISA(paired_values), KEPT)
HALF_FACTORS(, half_quad_factors, QUAD_POINTS, quad_factors_of, ISA(paired_values), KEPT)
#if defined(SET_AVX512)
HALF_FACTORS(BF16_TARGET, vdp_factors, POINTS, factors_of, vdp_paired_values, KEPT)
HALF_FACTORS(BF16_TARGET, vdp_quad_factors, QUAD_POINTS, quad_factors_of, vdp_paired_values, KEPT)
HALF_FACTORS(BF16_TARGET, vdp_streamed_factors, POINTS, factors_of, vdp_paired_values, STREAMED)
HALF_FACTORS(BF16_TARGET, vdp_streamed_quad_factors, QUAD_POINTS, quad_factors_of, vdp_paired_values, STREAMED)
#endif

typedef void (*ISA(write_factors))(const float *const *, int64_t, int64_t, float *, int64_t);

static ISA(write_factors) ISA(factors_for)(const minimal *q, int64_t streamed)
{
	int quads = q->tile == 4;
#if defined(SET_AVX512)
	if (q->half == HALF_AVX512 && streamed)
		return quads ? ISA(vdp_streamed_quad_factors) : ISA(vdp_streamed_factors);
	if (q->half == HALF_AVX512)
		return quads ? ISA(vdp_quad_factors) : ISA(vdp_factors);
	if (!q->half && streamed)
		return quads ? ISA(streamed_quad_factors) : ISA(streamed_factors);
#endif
	if (q->half)
		return quads ? ISA(half_quad_factors) : ISA(half_factors);
	return quads ? ISA(quad_factors) : ISA(float_factors);
}

// Packs rows [lo, hi) of a panel of the factors of each point, a block of channels of a pair of taps at a time. Taps that are not in place are packed in room first.
static void ISA(pack_minimal)(const minimal *q, const minimal_class *w, const product *kernel, const float *b, float *to, int64_t p, int64_t lo, int64_t hi,
	int64_t streamed, float *room)
{
	int64_t c = q->s.c, cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS, xtaps = 2 * q->xpairs, kc;
	ISA(write_factors) write = ISA(factors_for)(q, streamed);
	for (int64_t row = lo; row < hi; row += kc) {
		int64_t t = row / c, k = row % c, end = hi < (t + 1) * c ? hi : (t + 1) * c;
		kc = end - row < FACTOR_K ? end - row : FACTOR_K;
		const float *taps[4];
		for (int64_t j = 0; j < 4; j++) {
			int64_t tap = (t / q->xpairs + j / 2 * q->ypairs) * xtaps + t % q->xpairs + j % 2 * q->xpairs;
			taps[j] = q->kstep ? b + w->taps[tap] + p * COLS + k * q->kstep : room + j * kc * COLS;
			if (!q->kstep)
				ISA(pack)(&kernel->b, b, p * COLS, cols, COLS, tap * c + k, kc, room + j * kc * COLS);
		}
		write(taps, q->kstep ? q->kstep : COLS, kc, to + row / UNIT(q) * COLS, q->apart);
	}
#if defined(SET_AVX512)
	if (streamed)
		_mm_sfence();
#endif
}

// ---- few tiles ----

// If few tiles read a panel, tiles that add up the taps of a point's factor as they read them take less time than writing the factors, which are larger than
// the kernel. A tile has two vectors; the taps are d[1], d[2] and d[3] floats from the first one.
#define TAPS_1(y) FLOATS(y)
#define TAPS_2(y) (FLOATS(y) + FLOATS(y + d[1]))
#define TAPS_4(y) ((FLOATS(y) + FLOATS(y + d[1])) + (FLOATS(y + d[2]) + FLOATS(y + d[3])))
#define TAPS_TILE(rows, taps)                                                                                                              \
	static void ISA(taps_##taps##_##rows)(const run *r, const float *a, int64_t ar, const float *b, int64_t bk, const int64_t *d,      \
		const float *more, float *c)                                                                                               \
	{                                                                                                                                  \
		const int64_t ak = 1;                                                                                                      \
		int64_t runs = 1;                                                                                                          \
		RUNS_SUM(rows, 2, ADJACENT, FOLLOWING, vf, TAPS_##taps, TIMES_FLOAT)                                                       \
		ADD(rows, 2, more)                                                                                                         \
		UNROLL for (int i = 0; i < rows; i++)                                                                                      \
			UNROLL for (int j = 0; j < 2; j++)                                                                                 \
				*(vf *)(c + i * COLS + j * VL) = acc[i][j];                                                                \
	}
#define TAPS_TILES(rows) TAPS_TILE(rows, 1) TAPS_TILE(rows, 2) TAPS_TILE(rows, 4)
EACH_HEIGHT(TAPS_TILES)
typedef void (*ISA(taps_tile))(const run *, const float *, int64_t, const float *, int64_t, const int64_t *, const float *, float *);
#define EACH_TAPS(rows) {[1] = ISA(taps_1_##rows), [2] = ISA(taps_2_##rows), [4] = ISA(taps_4_##rows)},
static const ISA(taps_tile) ISA(taps_tiles)[ROWS][5] = {EACH_HEIGHT(EACH_TAPS)};

// The taps of each point's factor. Those of one HIGH_TAP are the factor's negative; see factors_of.
static const struct {
	int8_t n, of[4];
} ISA(point_taps)[POINTS] = {{4, {0, 1, 2, 3}}, {2, {0, 2}}, {2, {1, 3}}, {2, {0, 1}}, {1, {0}}, {1, {1}}, {2, {2, 3}}, {1, {2}}, {1, {3}}};

// Writes the outputs of rows of tiles from their sums, which are size floats apart.
static void ISA(pair_outputs)(const minimal *q, const float *sums, int64_t size, int64_t rows, float *y, const int64_t *at)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < COLS; j += VL) {
			const float *s = sums + i * COLS + j;
			float *to = y + at[i] + j;
			vf m[FACTORS][2];
			UNROLL for (int u = 0; u < FACTORS; u++) {
				vf middle = *(const vf *)(s + (u * FACTORS + MIDDLE) * size);
				m[u][0] = middle + *(const vf *)(s + (u * FACTORS + LOW_TAP) * size);
				m[u][1] = middle - *(const vf *)(s + (u * FACTORS + HIGH_TAP) * size);
			}
			UNROLL for (int x = 0; x < 2; x++) {
				*(vf *)(to + x * q->ocolumn) = m[MIDDLE][x] + m[LOW_TAP][x];
				*(vf *)(to + q->oline + x * q->ocolumn) = m[MIDDLE][x] - m[HIGH_TAP][x];
			}
		}
}

// Adds the products of channels [k, k + q->block) of a pair of taps, of tiles [lo, hi) of all rows, to their sums, or begins with these products.
static void ISA(few_products)(const minimal *q, const minimal_class *w, int64_t rows, int64_t lo, int64_t hi, int64_t ty, int64_t tx, int64_t k,
	const float *planes, const float *b, float *sums, int64_t size)
{
	int64_t xtaps = 2 * q->xpairs;
	const int64_t *t = w->taps + ty * xtaps + tx, taps[4] = {t[0], t[q->xpairs], t[q->ypairs * xtaps], t[q->ypairs * xtaps + q->xpairs]};
	for (int64_t u = 0; u < POINTS; u++, sums += size) {
		const int8_t *of = ISA(point_taps)[u].of;
		int64_t plane = w->y[u / FACTORS][ty] * q->x.n + w->x[u % FACTORS][tx], groups = (hi - lo + ROWS - 1) / ROWS;
		const int64_t first = taps[of[0]], d[4] = {0, taps[of[1]] - first, taps[of[2]] - first, taps[of[3]] - first};
		const run r = {.a = (plane * q->s.c + k) * rows, .n = q->block};
		float *sum = sums;
		for (int64_t i = lo, height; i < hi; i += height, sum += height * COLS) {
			height = (hi - i + groups - 1) / groups--;
			ISA(taps_tiles)[height - 1][ISA(point_taps)[u].n](&r, planes + i * q->block, q->block, b + first + k * q->kstep, q->kstep, d,
				ty + tx + k > 0 ? sum : 0, sum);
		}
	}
}

// Computes panel p of a class for a part of the tiles of all lines. A block of all points' taps, which are read again and again, stays in a cache.
static void ISA(convolve_few)(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y, int64_t p, float *sums)
{
	int64_t rows = (e->i1 - e->i0) * (e->l1 - e->l0) * q->w, lo = rows * e->j / e->parts, hi = rows * (e->j + 1) / e->parts, at[TALL];
	int64_t size = (hi - lo) * COLS + FEW_PAD;
	for (int64_t ty = 0; ty < q->ypairs; ty++)
		for (int64_t tx = 0; tx < q->xpairs; tx++)
			for (int64_t k = 0; k < q->s.c; k += q->block)
				ISA(few_products)(q, w, rows, lo, hi, ty, tx, k, planes, b + p * COLS, sums, size);
	ISA(tile_outputs)(q, e, lo, hi, at);
	ISA(pair_outputs)(q, sums, size, hi - lo, y + w->out + p * COLS, at);
}

// ---- gradients for kernels ----

// The values of an operand's channels at the positions of a tile, line by line.
typedef struct {
	const float *at[QUAD_POINTS];
} ISA(positions);

// The factors of positions in one dimension: with tiles of 2 positions of v, of those, or of three positions of x; with tiles of 4, of 4 and of 5.
static inline void ISA(factors_2)(const vf *v, vf *f) { f[MIDDLE] = v[0] + v[1], f[LOW_TAP] = v[0], f[HIGH_TAP] = v[1]; }
static inline void ISA(factors_3)(const vf *x, vf *f) { f[MIDDLE] = x[1], f[LOW_TAP] = x[0] - x[1], f[HIGH_TAP] = x[2] - x[1]; }
static inline void ISA(factors_4)(const vf *v, vf *f)
{
	f[0] = v[0], f[1] = (v[1] - v[0]) + (v[3] - v[2]), f[2] = (2 * v[2] + v[3]) + 4 * (2 * v[0] + v[1]);
	f[3] = (v[0] + 2 * v[1]) + 4 * (v[2] + 2 * v[3]), f[4] = v[3];
}
#define FACTORS_FOR(taps) (taps > 3 ? QUAD_FACTORS : FACTORS)

// The factors of a vector of channels, from channel i of n on.
#define POINTS_OF(name, taps, WHOLE, FIRST)                                                                                  \
	static inline void ISA(name##_##taps)(const ISA(positions) *t, int64_t i, int64_t n, vf *f)                          \
	{                                                                                                                    \
		enum { factors = FACTORS_FOR(taps) };                                                                        \
		vf v[taps][factors];                                                                                         \
		UNROLL for (int y = 0; y < taps; y++) {                                                                      \
			vf w[taps];                                                                                          \
			UNROLL for (int x = 0; x < taps; x++)                                                                \
				w[x] = n - i >= VL ? WHOLE(t->at[y * taps + x], i) : FIRST(t->at[y * taps + x], i, n - i);   \
			ISA(factors_##taps)(w, v[y]);                                                                        \
		}                                                                                                            \
		UNROLL for (int x = 0; x < factors; x++) {                                                                   \
			vf column[taps], w[factors];                                                                         \
			UNROLL for (int y = 0; y < taps; y++)                                                                \
				column[y] = v[y][x];                                                                         \
			ISA(factors_##taps)(column, w);                                                                      \
			UNROLL for (int y = 0; y < factors; y++)                                                             \
				f[y * factors + x] = w[y];                                                                   \
		}                                                                                                            \
	}
POINTS_OF(points, 2, WHOLE_FLOATS, FIRST_FLOATS)
POINTS_OF(points, 3, WHOLE_FLOATS, FIRST_FLOATS)
POINTS_OF(points, 4, WHOLE_FLOATS, FIRST_FLOATS)
POINTS_OF(points, 5, WHOLE_FLOATS, FIRST_FLOATS)
POINTS_OF(narrow_points, 2, WHOLE_HALVES, FIRST_HALVES)
POINTS_OF(narrow_points, 3, WHOLE_HALVES, FIRST_HALVES)
POINTS_OF(narrow_points, 4, WHOLE_HALVES, FIRST_HALVES)
POINTS_OF(narrow_points, 5, WHOLE_HALVES, FIRST_HALVES)

// Writes the factors of n channels, which are all floats apart, to panels of width channels, panel words apart, in whole vectors.
#define FACTOR_ROW(taps)                                                                                                                      \
	static void ISA(factor_row_##taps)(const ISA(positions) *t, int64_t n, int64_t width, int64_t panel, float *to, int64_t all) \
	{                                                                                                                                     \
		for (int64_t m = 0; m < n; m += width, to += panel)                                                                           \
			for (int64_t i = 0; i < width && m + i < n; i += VL) {                                                                \
				enum { points = FACTORS_FOR(taps) * FACTORS_FOR(taps) };                                                      \
				vf f[points];                                                                                                 \
				ISA(points_##taps)(t, m + i, n, f);                                                                           \
				UNROLL for (int u = 0; u < points; u++)                                                                       \
					*(vf *)(to + u * all + i) = f[u];                                                                     \
			}                                                                                                                     \
	}
// The same for two tiles, as pairs of bfloat16.
#define FACTOR_PAIRS(TARGET, name, taps, POINTS_AT, PAIR)                                                                                        \
	TARGET static void ISA(name##_##taps)(const ISA(positions) *t, int64_t n, int64_t width, int64_t panel, float *to, int64_t all) \
	{                                                                                                                                        \
		for (int64_t m = 0; m < n; m += width, to += panel)                                                                              \
			for (int64_t i = 0; i < width && m + i < n; i += VL) {                                                                   \
				enum { points = FACTORS_FOR(taps) * FACTORS_FOR(taps) };                                                         \
				vf f[points], g[points];                                                                                         \
				ISA(POINTS_AT##_##taps)(t, m + i, n, f);                                                                         \
				ISA(POINTS_AT##_##taps)(t + 1, m + i, n, g);                                                                     \
				UNROLL for (int u = 0; u < points; u++)                                                                          \
					*(vu *)(to + u * all + i) = PAIR(f[u], g[u]);                                                            \
			}                                                                                                                        \
	}
#define FACTOR_ROWS(taps)                                                     \
	FACTOR_ROW(taps)                                                      \
	FACTOR_PAIRS(, factor_pairs, taps, points, ISA(paired_values))        \
	FACTOR_PAIRS(, factor_narrow, taps, narrow_points, ISA(paired_values))
FACTOR_ROWS(2)
FACTOR_ROWS(3)
FACTOR_ROWS(4)
FACTOR_ROWS(5)
typedef void (*ISA(factor_row))(const ISA(positions) *, int64_t, int64_t, int64_t, float *, int64_t);
#define EACH(name) {ISA(name##_2), ISA(name##_3), ISA(name##_4), ISA(name##_5)}
#if defined(SET_AVX512)
#define VDP_FACTORS(taps)                                                            \
	FACTOR_PAIRS(BF16_TARGET, vdp_pairs, taps, points, vdp_paired_values)        \
	FACTOR_PAIRS(BF16_TARGET, vdp_narrow, taps, narrow_points, vdp_paired_values)
VDP_FACTORS(2)
VDP_FACTORS(3)
VDP_FACTORS(4)
VDP_FACTORS(5)
#endif

// The function that writes factors of so many taps.
static inline ISA(factor_row) ISA(factor_row_of)(int64_t half, int64_t narrow, int64_t taps)
{
	static const ISA(factor_row) rows[3][4] = {EACH(factor_row), EACH(factor_pairs), EACH(factor_narrow)};
#if defined(SET_AVX512)
	static const ISA(factor_row) vdps[2][4] = {EACH(vdp_pairs), EACH(vdp_narrow)};
	if (half == HALF_AVX512)
		return vdps[narrow][taps - 2];
#endif
	return rows[half ? 1 + narrow : 0][taps - 2];
}

// What is staged at a time: the factors of some tiles. They are the rows of the result's tiles, in panels whose pitch spreads them over the sets of a cache,
// or their columns. The points are no multiple of 4 KiB apart, since those of a vector would be in one set.
typedef struct {
	int64_t n, width, pitch, panel, all; // channels, those of a panel; distances of words, panels and points
} ISA(factors);

static ISA(factors) ISA(factors_in)(const minimal_gradient *q, int64_t n, int64_t words, int64_t rows)
{
	ISA(factors) f = {.n = n, .width = COLS, .pitch = COLS, .panel = words * COLS};
	if (rows) {
		const tile_sizes *z = sizes_of(q->tile, VL);
		int64_t panels = (n + z->rows - 1) / z->rows;
		f.width = (n + panels - 1) / panels, f.pitch = (f.width + VL - 1) / VL * VL + z->gap, f.panel = ISA(aligned)(words * f.pitch + VL);
	}
	f.all = (n + f.width - 1) / f.width * f.panel + 64;
	return f;
}

// Stages the factors of tiles [t0, t1) and channels from n0 on. zeros holds as many zeros as there are channels.
static void ISA(stage_factors)(const minimal_gradient *q, const factored *o, const float *x, int64_t t0, int64_t t1, int64_t n0, const int64_t *pair,
	const ISA(factors) *f, const float *zeros, float *to)
{
	int64_t ready = 0, unit = UNIT(q), taps = o->taps, ahead = (f->n < AHEAD ? f->n : AHEAD) >> o->narrow; // floats
	ISA(factor_row) write = ISA(factor_row_of)(q->half, o->narrow, taps);
	ISA(positions) tile[4];
	for (int64_t t = t0; t < t1;) {
		int64_t l = t / q->w, j = t % q->w, end = t1 - t < q->w - j ? j + t1 - t : q->w, y = o->first[0][pair[0]] + l % q->h * o->step[0];
		const float *image = ISA(element)(x, l / q->h * o->batch + n0, o->narrow);
		for (t += end - j; j < end; j++) {
			int64_t z = o->first[1][pair[1]] + j * o->step[1];
			for (int64_t i = 0; i < taps; i++)
				for (int64_t k = 0; k < taps; k++) {
					int64_t line = y + i * o->apart[0], at = z + k * o->apart[1];
					int in = line >= 0 && line < o->extent[0] && at >= 0 && at < o->extent[1];
					const float *from = in ? ISA(element)(image, line * o->stride[0] + at * o->stride[1], o->narrow) : zeros;
					for (int64_t m = 0; m < ahead; m += 16)
						__builtin_prefetch(from + m);
					tile[ready].at[i * taps + k] = from;
				}
			if (++ready == 2 * unit) {
				write(tile, f->n, f->width, f->panel, to, f->all);
				to += f->pitch, ready = unit;
				memcpy(tile, tile + unit, unit * sizeof *tile);
			}
		}
	}
	for (; ready > 0; ready -= unit, to += f->pitch) {
		if (ready < unit)
			for (int i = 0; i < taps * taps; i++)
				tile[1].at[i] = zeros;
		write(tile, f->n, f->width, f->panel, to, f->all);
		memcpy(tile, tile + unit, unit * sizeof *tile);
	}
}

// The sizes of what a part stages.
typedef struct {
	int64_t words, channels; // words of tiles, or of pairs of them; channels of x
	int64_t zeros, v, x;     // floats
} ISA(gradient_layout);

static ISA(gradient_layout) ISA(gradient_layout_of)(const minimal_gradient *q, const gradient_part *p)
{
	int64_t i = p->i1 - p->i0, j = p->j1 - p->j0, words = (p->t1 - p->t0 + UNIT(q) - 1) / UNIT(q);
	const tile_sizes *z = sizes_of(q->tile, VL);
	ISA(gradient_layout) l = {.words = words < z->words ? words : z->words, .channels = i < STAGED ? i : STAGED};
	l.zeros = ISA(aligned)(i > j ? i : j);
	l.v = z->points * ISA(factors_in)(q, j, l.words, q->swapped).all, l.x = z->points * ISA(factors_in)(q, l.channels, l.words, !q->swapped).all;
	return l;
}

static int64_t ISA(gradient_floats)(const minimal_gradient *q, const gradient_part *p)
{
	ISA(gradient_layout) l = ISA(gradient_layout_of)(q, p);
	const tile_sizes *z = sizes_of(q->tile, VL);
	return l.zeros + l.v + l.x + z->points * z->high * COLS;
}

// Writes the four taps of a pair from a vector of sums of each point, which are all floats apart, line by line.
static inline void ISA(taps_of_pairs)(const float *s, int64_t all, vf *taps)
{
#define SUM(u, w) *(const vf *)(s + ((u) * FACTORS + (w)) * all)
	UNROLL for (int dy = 0; dy < 2; dy++)
		UNROLL for (int dx = 0; dx < 2; dx++)
			taps[dy * 2 + dx] = (SUM(MIDDLE, MIDDLE) + SUM(MIDDLE, LOW_TAP + dx)) + (SUM(LOW_TAP + dy, MIDDLE) + SUM(LOW_TAP + dy, LOW_TAP + dx));
#undef SUM
}
static inline void ISA(two_taps)(const vf *m, vf *taps)
{
	vf minus = m[1] * (2 / 9.0f), half = m[2] * (1 / 9.0f), two = m[3] * (1 / 9.0f);
	taps[0] = (m[0] + minus) + (2 * half + two), taps[1] = (m[4] - minus) + (half + 2 * two);
}
static inline void ISA(taps_of_quads)(const float *s, int64_t all, vf *taps)
{
	vf lines[2][QUAD_FACTORS];
	UNROLL for (int x = 0; x < QUAD_FACTORS; x++) {
		vf m[QUAD_FACTORS], t[2];
		UNROLL for (int y = 0; y < QUAD_FACTORS; y++)
			m[y] = *(const vf *)(s + (y * QUAD_FACTORS + x) * all);
		ISA(two_taps)(m, t);
		lines[0][x] = t[0], lines[1][x] = t[1];
	}
	ISA(two_taps)(lines[0], taps);
	ISA(two_taps)(lines[1], taps + 2);
}

// Adds the products of n staged rows and of width columns of a panel to the four taps of a pair, some tiles at a time.
static void ISA(gradient_panel)(const minimal_gradient *q, int64_t words, const ISA(factors) *a, const float *rows, int64_t n, const ISA(factors) *b,
	const float *cols, int64_t width, float *y, int add, float *sums)
{
	const run r = {0, 0, words, 0, 0, 0};
	const tile_sizes *z = sizes_of(q->tile, VL);
	int64_t quads = q->tile == 4, points = z->points, all = z->high * COLS;
	for (int64_t i = 0, height; i < n; i += height, y += height * q->srow) {
		height = n - i < z->high ? n - i : z->high;
		for (int64_t u = 0; u < points; u++) {
			for (int64_t k = u; k < height; k += points)
				for (int64_t d = 0; d < 4; d++)
					for (int64_t m = 0; m < COLS; m += 16)
						__builtin_prefetch(y + d / 2 * q->apart[0] + d % 2 * q->apart[1] + k * q->srow + m, 1);
			for (int64_t k = 0, groups = (height + ROWS - 1) / ROWS, high; k < height; k += high) {
				high = (height - k + groups - 1) / groups--;
				ISA(correlation_tile)(q->half, &r, 1, rows + u * a->all + i + k, high, a->pitch, cols + u * b->all, COLS, COLS, sums + u * all + k * COLS,
					COLS, 0);
			}
		}
		for (int64_t k = 0; k < height; k++)
			for (int64_t m = 0; m < width; m += VL) {
				vf taps[4];
				if (quads)
					ISA(taps_of_quads)(sums + k * COLS + m, all, taps);
				else
					ISA(taps_of_pairs)(sums + k * COLS + m, all, taps);
				UNROLL for (int d = 0; d < 4; d++)
					ISA(store_row)(y + d / 2 * q->apart[0] + d % 2 * q->apart[1] + k * q->srow + m, (const float *)&taps[d],
						width - m < VL ? width - m : VL, add);
			}
	}
}

// Adds the products of all staged rows and columns.
static void ISA(gradient_products)(const minimal_gradient *q, int64_t words, const ISA(factors) *a, const float *rows, const ISA(factors) *b,
	const float *cols, float *y, int add, float *sums)
{
	for (int64_t from = 0; from < a->n; from += a->width, rows += a->panel)
		for (int64_t j = 0; j < b->n; j += COLS)
			ISA(gradient_panel)(q, words, a, rows, a->n - from < a->width ? a->n - from : a->width, b, cols + j / COLS * b->panel,
				b->n - j < COLS ? b->n - j : COLS, y + from * q->srow + j, add, sums);
}

static void ISA(minimal_correlate)(const minimal_gradient *q, const gradient_part *p, const float *x, const float *v, float *y, float *room)
{
	ISA(gradient_layout) l = ISA(gradient_layout_of)(q, p);
	float *vs = room + l.zeros, *xs = vs + l.v, *sums = xs + l.x;
	ISA(factors) fv = ISA(factors_in)(q, p->j1 - p->j0, l.words, q->swapped);
	int64_t block = UNIT(q) * sizes_of(q->tile, VL)->words;
	memset(room, 0, 4 * l.zeros);
	for (int64_t t = p->t0; t < p->t1; t += block) {
		int64_t end = p->t1 - t < block ? p->t1 : t + block, words = (end - t + UNIT(q) - 1) / UNIT(q);
		ISA(stage_factors)(q, &q->v, v, t, end, p->j0, (const int64_t[2]){0}, &fv, room, vs);
		for (int64_t k = p->pair0; k < p->pair1; k++) {
			const int64_t pair[2] = {k / q->pairs[1], k % q->pairs[1]};
			for (int64_t i = p->i0; i < p->i1; i += STAGED) {
				ISA(factors) fx = ISA(factors_in)(q, p->i1 - i < STAGED ? p->i1 - i : STAGED, l.words, !q->swapped);
				float *to = y + pair[0] * q->tap[0] + pair[1] * q->tap[1] + (q->swapped ? p->j0 * q->srow + i : i * q->srow + p->j0);
				ISA(stage_factors)(q, &q->x, x, t, end, i, pair, &fx, room, xs);
				if (q->swapped)
					ISA(gradient_products)(q, words, &fv, vs, &fx, xs, to, t > p->t0, sums);
				else
					ISA(gradient_products)(q, words, &fx, xs, &fv, vs, to, t > p->t0, sums);
			}
		}
	}
}

static void ISA(add_copies)(float *y, const float *copies, int64_t n, int64_t size, int64_t lo, int64_t hi)
{
	int64_t i = lo;
	for (; i + 4 * VL <= hi; i += 4 * VL) {
		vf sum[4];
		UNROLL for (int u = 0; u < 4; u++)
			sum[u] = FLOATS(y + i + u * VL);
		for (const float *from = copies + i; from < copies + n * size; from += size)
			UNROLL for (int u = 0; u < 4; u++)
				sum[u] += FLOATS(from + u * VL);
		UNROLL for (int u = 0; u < 4; u++)
			*(vf *)(y + i + u * VL) = sum[u];
	}
	for (; i < hi; i++)
		for (int64_t p = 0; p < n; p++)
			y[i] += copies[p * size + i];
}

#undef POINTS_OF
#undef FACTORS_FOR
#undef GROUP
#undef RUNS_SUM
#undef NO_FETCH
#undef FLOATS
#undef TIMES_FLOAT
#undef PAIRS_OF
#undef TIMES_PAIR
#undef UNIT
#undef VECTOR_FACTORS
#undef WRITE_FLOATS
#undef WRITE_HALVES
#undef ADJACENT
#undef ROWS_OF
#undef FOLLOWING
#undef ADD
#undef MINIMAL_TILE
#undef QUAD_OUTPUTS
#undef AS_FLOATS
#undef AS_HALVES
#undef AS_CONVERTED
#undef MINIMALS
#undef TIMES_HALVES
#undef WORDS_OF
#undef MINIMAL_HALVES
#undef MINIMAL_VDPS
#undef BOTH
#undef KEPT
#undef STREAMED
#undef WRITE_FACTORS
#undef HALF_FACTORS
#undef TAPS_1
#undef TAPS_2
#undef TAPS_4
#undef TAPS_TILE
#undef TAPS_TILES
#undef EACH_TAPS
#undef FACTOR_ROW
#undef FACTOR_PAIRS
#undef WHOLE_FLOATS
#undef FIRST_FLOATS
#undef WHOLE_HALVES
#undef FIRST_HALVES
#undef FACTOR_ROWS
#undef EACH
#undef VDP_FACTORS
