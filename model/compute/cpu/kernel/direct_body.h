// Convolutions without packing for one instruction set. Included at the end of product_body.h, whose vectors it uses; see direct.h.

// Number of values in a word of an operand.
#define UNIT(q) ((q)->half ? 2 : 1)

// ---- staging ----

// Finds the positions [lo, hi) of a staged line that lie inside the image; returns 0 if there are none.
static inline int ISA(inside)(const staging *s, int64_t y, int64_t *lo, int64_t *hi)
{
	*lo = s->x0 < 0 ? -s->x0 : 0, *hi = s->w - s->x0;
	*lo = *lo < s->columns ? *lo : s->columns;
	*hi = *hi < s->columns ? *hi : s->columns;
	return y >= 0 && y < s->h && *hi > *lo;
}

// Converts n bfloat16 values.
static inline void ISA(widen)(const float *from, int64_t n, float *to)
{
	const half *s = (const half *)(const void *)from;
	int64_t i = 0;
	for (; i + VL <= n; i += VL)
		*(vf *)(to + i) = ISA(widened)(s + i);
	for (; i < n; i++)
		to[i] = ISA(widened_one)(s + i);
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
	const float *from = ISA(element)(x, y * s->sy + (s->x0 + lo) * s->sx, s->narrow);
	to += lo * s->c;
	int64_t together = s->sx == s->c ? hi - lo : 1; // positions that are adjacent
	for (int64_t j = lo; j < hi; j += together, from = ISA(element)(from, s->sx, s->narrow), to += s->c)
		if (s->narrow)
			ISA(widen)(from, together * s->c, to);
		else
			memcpy(to, from, 4 * together * s->c);
}

// Stages lines [l0, l1) of images [i0, i1).
static void ISA(stage)(const staging *s, const float *x, int64_t i0, int64_t i1, int64_t l0, int64_t l1, float *to)
{
	for (int64_t i = i0; i < i1; i++)
		for (int64_t l = l0; l < l1; l++, to += s->columns * s->c)
			ISA(stage_line)(s, ISA(element)(x, i * s->batch, s->narrow), s->y0 + l, to);
}

// Stages a line as bfloat16. Second parts are written if low is not null.
static void ISA(stage_halves)(const staging *s, const float *x, int64_t y, half *to, half *low)
{
	int64_t count = s->columns * s->c, lo, hi;
	int in = ISA(inside)(s, y, &lo, &hi);
	if (!in)
		lo = hi = s->columns;
	for (half *at = to; at; at = at == to ? low : 0) {
		memset(at, 0, lo * s->c * sizeof *at);
		memset(at + hi * s->c, 0, (count - hi * s->c) * sizeof *at);
	}
	int64_t together = s->sx == s->c ? hi - lo : 1;
	for (int64_t j = lo; j < hi; j += together)
		ISA(narrow_of)(ISA(element)(x, y * s->sy + (s->x0 + j) * s->sx, s->narrow), together * s->c, s->narrow, to + j * s->c, low ? low + j * s->c : 0);
}

// Stages a line as the words of each of its windows. line has room for the whole line and, after it, for what copies of whole chunks read. What they write
// after a window is overwritten by the next one.
static void ISA(stage_cut)(const windowed *q, const float *x, int64_t y, half *to, half *line)
{
	typedef half chunk __attribute__((vector_size(2 * CUT_CHUNK), aligned(2), may_alias));
	const cuts *k = &q->cut;
	int64_t last = (k->values - 1) / CUT_CHUNK * CUT_CHUNK;
	chunk keep;
	for (int64_t v = 0; v < CUT_CHUNK; v++)
		keep[v] = last + v < k->values ? 0xffff : 0;
	ISA(stage_halves)(&q->s, x, y, line, 0);
	for (int64_t i = 0; i < k->windows; i++, line += k->move, to += 2 * k->words) {
		for (int64_t v = 0; v < last; v += CUT_CHUNK)
			*(chunk *)(to + v) = *(chunk *)(line + v);
		*(chunk *)(to + last) = *(chunk *)(line + last) & keep;
	}
}

// ---- the tile ----

#define GROUP (ROWS / GROUPS)
#define FAR_AHEAD 16

// acc[i][j] = sum over runs and t of a[group[i / GROUP] + (i % GROUP) * ar + t * ak] b[t * bk + j*VL..]. Row i of the accumulators is
// stored at c + row[i], added to what is there or rounded to bfloat16, as how says.
// TARGET is empty or an attribute; V is a vector of b, read by LOAD; TIMES adds the product of the word at x and v to an accumulator. FETCH
// fetches something in every step. ROUND stores a vector as bfloat16; only tiles of bfloat16 do. The lines of the result are fetched before the sums.
#define RUNS_TILE(TARGET, name, rows, vectors, FETCH, V, LOAD, TIMES, ROUND)                                                        \
	TARGET static void ISA(name##_##rows##_##vectors)(const run *r, int64_t runs, const float *a, const int64_t *group,         \
		int64_t ar, int64_t ak, const float *b, int64_t bk, float *c, const int64_t *row, int how)                          \
	{                                                                                                                           \
		UNROLL for (int i = 0; i < rows; i++)                                                                               \
			UNROLL for (int j = 0; j < vectors; j++)                                                                    \
				__builtin_prefetch(ISA(element)(c, row[i] + j * VL, how == ROUNDED), 1);                            \
		RUNS_SUM(rows, vectors, GROUPED, FETCH, V, LOAD, TIMES)                                                             \
		if (how == ADDED)                                                                                                   \
			UNROLL for (int i = 0; i < rows; i++)                                                                       \
				UNROLL for (int j = 0; j < vectors; j++)                                                            \
					acc[i][j] += *(vf *)(c + row[i] + j * VL);                                                  \
		if (how == ROUNDED)                                                                                                 \
			UNROLL for (int i = 0; i < rows; i++)                                                                       \
				UNROLL for (int j = 0; j < vectors; j++)                                                            \
					ROUND((half *)(void *)c + row[i] + j * VL, acc[i][j]);                                      \
		else                                                                                                                \
			UNROLL for (int i = 0; i < rows; i++)                                                                       \
				UNROLL for (int j = 0; j < vectors; j++)                                                            \
					*(vf *)(c + row[i] + j * VL) = acc[i][j];                                                   \
	}
// The sums acc of a tile, in registers. START(i) is where row i of the current run starts, for the first row of each group.
#define RUNS_SUM(rows, vectors, START, FETCH, V, LOAD, TIMES)                                                               \
	vf acc[rows][vectors];                                                                                              \
	UNROLL for (int i = 0; i < rows; i++)                                                                               \
		UNROLL for (int j = 0; j < vectors; j++)                                                                    \
			acc[i][j] = (vf){0};                                                                                \
	for (; runs > 0; runs--, r++) {                                                                                     \
		const float *g[(rows + GROUP - 1) / GROUP], *y = b + r->b;                                                  \
		UNROLL for (int i = 0; i < rows; i += GROUP)                                                                \
			g[i / GROUP] = START(i);                                                                            \
		for (int64_t k = r->n; k > 0; k--, y += bk) {                                                               \
			V v[vectors];                                                                                       \
			UNROLL for (int j = 0; j < vectors; j++)                                                            \
				v[j] = LOAD(y + j * VL);                                                                    \
			FETCH(vectors)                                                                                      \
			UNROLL for (int i = 0; i < rows; i++)                                                               \
				UNROLL for (int j = 0; j < vectors; j++)                                                    \
					acc[i][j] = TIMES(acc[i][j], g[i / GROUP] + i % GROUP * ar, v[j]);                  \
			UNROLL for (int i = 0; i < rows; i += GROUP)                                                        \
				g[i / GROUP] += ak;                                                                         \
		}                                                                                                           \
	}
#define GROUPED(i) a + group[i / GROUP] + r->a
#define NO_FETCH(vectors)
#define FAR(vectors)                             \
	UNROLL for (int j = 0; j < vectors; j++) \
		__builtin_prefetch(y + FAR_AHEAD * bk + j * VL);
#define NEXT(vectors)                             \
	UNROLL for (int j = 0; j < COLS; j += 16) \
		__builtin_prefetch(r->next + (r->n - k) * r->apart + j, 0, 2);
#define NO_ROUND(to, x) (void)0
#define FLOATS(y) (*(const vf *)(y))
#define TIMES_FLOAT(acc, x, v) ((acc) + *(x) * (v))
#define DIRECT(rows, vectors)                                                           \
	RUNS_TILE(, direct, rows, vectors, NO_FETCH, vf, FLOATS, TIMES_FLOAT, NO_ROUND) \
	RUNS_TILE(, far, rows, vectors, FAR, vf, FLOATS, TIMES_FLOAT, NO_ROUND)         \
	RUNS_TILE(, ahead, rows, vectors, NEXT, vf, FLOATS, TIMES_FLOAT, NO_ROUND)
#define DIRECTS(rows) DIRECT(rows, 1) DIRECT(rows, 2)
EACH_HEIGHT(DIRECTS)

typedef void (*ISA(direct_tile))(const run *, int64_t, const float *, const int64_t *, int64_t, int64_t, const float *, int64_t, float *,
	const int64_t *, int);
#define BOTH(rows) {ISA(direct_##rows##_1), ISA(direct_##rows##_2)},
static const ISA(direct_tile) ISA(direct_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

// The same for LINE rows of one vector.
RUNS_TILE(, line, 8, 1, NO_FETCH, vf, FLOATS, TIMES_FLOAT, NO_ROUND)

// The same for tiles of few rows, which have three vectors so that there are enough sums.
enum { ISA(LOW) = 4, ISA(THREE) = 3 * VL };
#define THREES(rows) RUNS_TILE(, direct, rows, 3, NO_FETCH, vf, FLOATS, TIMES_FLOAT, NO_ROUND)
THREES(1) THREES(2) THREES(3) THREES(4)
static const ISA(direct_tile) ISA(low_tiles)[ISA(LOW)] = {ISA(direct_1_3), ISA(direct_2_3), ISA(direct_3_3), ISA(direct_4_3)};

// The same with b read from memory.
#undef BOTH
#define BOTH(rows) {ISA(far_##rows##_1), ISA(far_##rows##_2)},
static const ISA(direct_tile) ISA(far_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

// The same, fetching what is read next.
#undef BOTH
#define BOTH(rows) {ISA(ahead_##rows##_1), ISA(ahead_##rows##_2)},
static const ISA(direct_tile) ISA(ahead_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

// The same for words in a and b that each hold a pair of bfloat16, in plain C.
static void ISA(halves_tile)(int64_t rows, int64_t vectors, const run *r, int64_t runs, const float *a, const int64_t *group, int64_t ar,
	int64_t ak, const float *b, int64_t bk, float *c, const int64_t *row, int how)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < vectors; j++) {
			int64_t at = row[i] + j * VL;
			vf sum = how == ADDED ? *(vf *)(c + at) : (vf){0};
			for (int64_t l = 0; l < runs; l++)
				for (int64_t k = 0; k < r[l].n; k++) {
					int32_t pair;
					memcpy(&pair, a + group[i / GROUP] + r[l].a + i % GROUP * ar + k * ak, sizeof pair);
					vi x = (vi){0} + pair, y = *(const vi *)(b + r[l].b + k * bk + j * VL);
					sum += (vf)(x << 16) * (vf)(y << 16) + (vf)(x & -65536) * (vf)(y & -65536);
				}
			if (how == ROUNDED)
				ISA(store_half)((half *)(void *)c + at, sum);
			else
				*(vf *)(c + at) = sum;
		}
}

#define HALVES_TILE(rows, vectors)                                                                                              \
	static void ISA(halves_##rows##_##vectors)(const run *r, int64_t runs, const float *a, const int64_t *group, int64_t ar, \
		int64_t ak, const float *b, int64_t bk, float *c, const int64_t *row, int how)                                  \
	{                                                                                                                       \
		ISA(halves_tile)(rows, vectors, r, runs, a, group, ar, ak, b, bk, c, row, how);                                 \
	}
#define HALVES(rows) HALVES_TILE(rows, 1) HALVES_TILE(rows, 2)
EACH_HEIGHT(HALVES)
#undef BOTH
#define BOTH(rows) {ISA(halves_##rows##_1), ISA(halves_##rows##_2)},
static const ISA(direct_tile) ISA(halves_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

#if defined(SET_AVX512)
#define PAIRS_OF(y) ((__m512bh)_mm512_loadu_si512(y))
#define TIMES_PAIR(acc, x, v) ((vf)_mm512_dpbf16_ps((__m512)(acc), v, (__m512bh)_mm512_set1_epi32(*(const pair_word *)(x))))
typedef int32_t pair_word __attribute__((may_alias));
#define VDP_PAIRS(rows, vectors) RUNS_TILE(BF16_TARGET, vdp, rows, vectors, NO_FETCH, __m512bh, PAIRS_OF, TIMES_PAIR, CONVERT)
#define CONVERT(to, x) convert_half(to, (__m512)(x))
#define VDPS(rows) VDP_PAIRS(rows, 1) VDP_PAIRS(rows, 2)
EACH_HEIGHT(VDPS)
#undef BOTH
#define BOTH(rows) {ISA(vdp_##rows##_1), ISA(vdp_##rows##_2)},
static const ISA(direct_tile) ISA(vdp_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};
#endif

// The tile that multiplies for a set; HALF_NONE is float32. far is whether b, of floats, is read from memory.
static inline ISA(direct_tile) ISA(tile_of)(int64_t half, int64_t far, int64_t rows, int64_t vectors)
{
#if defined(SET_AVX512)
	if (half == HALF_AVX512)
		return ISA(vdp_tiles)[rows - 1][vectors - 1];
#endif
	return (half ? ISA(halves_tiles) : far ? ISA(far_tiles) : ISA(direct_tiles))[rows - 1][vectors - 1];
}

#if defined(SET_AVX512)
// The same for pairs of outputs, with one vector of columns: only a run's lanes use the values that it reads, so not even a NaN reaches others.
#define PAIRED(rows)                                                                                                                \
	static void ISA(paired_##rows)(const run *r, int64_t runs, const float *a, const int64_t *group, int64_t ar, int64_t ak,    \
		const float *b, int64_t bk, float *c, const int64_t *row, int how)                                                  \
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
#define TILE_OF(q, rows, vectors) ((q)->pairs ? ISA(paired_tiles)[(rows) / GROUP - 1] : ISA(tile_of)((q)->half, (q)->far, rows, vectors))
#else
#define TILE_OF(q, rows, vectors) ISA(tile_of)((q)->half, (q)->far, rows, vectors)
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
	int64_t groups, whole, tiles; // tiles is the number of tiles before it
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
	ISA(direct_tile) tile = q->ahead && t->tiles == 0 ? ISA(ahead_tiles)[rows - 1][vectors - 1] : TILE_OF(q, rows, vectors);
	if (t->whole && q->ochannel == 1 && cols == vectors * VL) {
		tile(w->r, w->runs, a, t->group, w->column, 1, b, w->step, c, t->row, q->rounds ? ROUNDED : q->add);
	} else {
		float copy[ROWS * COLS];
		tile(w->r, w->runs, a, t->group, w->column, 1, b, w->step, copy, ISA(flat), STORED);
		for (int64_t i = 0; i < rows; i++) {
			if (t->row[i] >= 0 && q->rounds)
				ISA(store_rounded)(copy + i * COLS, 0, cols, (half *)(void *)c + t->row[i]);
			else if (t->row[i] >= 0 && q->ochannel == 1)
				ISA(store_row)(c + t->row[i], copy + i * COLS, cols, q->add);
			for (int64_t j = 0; j < cols && t->row[i] >= 0 && q->ochannel != 1; j++)
				c[t->row[i] + j * q->ochannel] = q->add ? c[t->row[i] + j * q->ochannel] + copy[i * COLS + j] : copy[i * COLS + j];
		}
	}
	t->groups = 0, t->whole = 1, t->tiles++;
}

// Whether outputs are computed line by line, in tiles of LINE adjacent outputs of one vector: as many sums as a core computes multiply-adds at a time.
// With other vectors, tiles have at least as many sums, or outputs of one vector are of few columns.
static inline int ISA(in_lines)(const windowed *q, const window *w)
{
	return VL == 8 && q->n == VL && q->ochannel == 1 && w->w >= LINE && !q->half && !q->far;
}

#if defined(SET_AVX2)
// The same for two LINEs of rows, whose sums need the 32 registers of AVX-512. Row i is at a + i * ar, and stored at c + i * apart.
__attribute__((target("avx512f,avx512vl,avx2,fma,prfchw"))) static void avx2_line_16(const run *r, int64_t runs, const float *a, int64_t ar, const float *b,
	int64_t bk, float *c, int64_t apart)
{
	__m256 acc[4][4];
	UNROLL for (int i = 0; i < 4; i++)
		UNROLL for (int j = 0; j < 4; j++) {
			__builtin_prefetch(c + (4 * i + j) * apart, 1);
			acc[i][j] = _mm256_setzero_ps();
		}
	for (; runs > 0; runs--, r++) {
		const float *g[4], *y = b + r->b;
		UNROLL for (int i = 0; i < 4; i++)
			g[i] = a + r->a + 4 * i * ar;
		for (int64_t k = r->n; k > 0; k--, y += bk) {
			__m256 v = _mm256_loadu_ps(y);
			UNROLL for (int i = 0; i < 4; i++) {
				UNROLL for (int j = 0; j < 4; j++)
					acc[i][j] = _mm256_fmadd_ps(_mm256_set1_ps(g[i][j * ar]), v, acc[i][j]);
				g[i]++;
			}
		}
	}
	UNROLL for (int i = 0; i < 4; i++)
		UNROLL for (int j = 0; j < 4; j++)
			_mm256_storeu_ps(c + (4 * i + j) * apart, acc[i][j]);
}
#endif

// Computes a window's outputs line by line. The last tile of a line overlaps the one before it.
static void ISA(window_lines)(const windowed *q, const window *w, const extent *e, const float *b, float *y, const float *room)
{
	int64_t group[LINE], row[LINE], n = q->eights && w->w >= 2 * LINE ? 2 * LINE : LINE;
	for (int64_t i = 0; i < LINE; i++)
		group[i] = i * GROUP * w->column, row[i] = i * w->ocolumn;
	for (int64_t i = e->i0; i < e->i1; i++) {
		const float *image = room + ((i - e->i0) * (e->l1 - e->l0) - e->l0) * q->pitch + w->first;
		float *c = y + w->out + i * q->obatch;
		for (int64_t l = w->h * e->j / e->parts; l < w->h * (e->j + 1) / e->parts; l++)
			for (int64_t x = 0; x < w->w; x += n) {
				int64_t at = x + n <= w->w ? x : w->w - n;
				const float *from = image + l * w->line + at * w->column;
				float *to = c + l * w->oline + at * w->ocolumn;
#if defined(SET_AVX2)
				if (n > LINE) {
					avx2_line_16(w->r, w->runs, from, w->column, b + w->b, w->step, to, w->ocolumn);
					continue;
				}
#endif
				ISA(line_8_1)(w->r, w->runs, from, group, w->column, 1, b + w->b, w->step, to, row, 0);
			}
	}
}

// Computes one panel of columns of one window's outputs.
static void ISA(window_panel)(const windowed *q, const window *w, const extent *e, int64_t p, const float *b, float *y, const float *room)
{
	int64_t pitch = q->pitch, cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS;
	ISA(gathered) t = {.whole = 1};
	float *c = ISA(result)(y, w->out + p * COLS * q->ochannel, q->rounds);
	b += w->b + p * w->panel;
	for (int64_t i = e->i0; i < e->i1; i++) {
		int64_t image = ((i - e->i0) * (e->l1 - e->l0) - e->l0) * pitch + w->first;
		for (int64_t l = w->h * e->j / e->parts; l < w->h * (e->j + 1) / e->parts; l++)
			for (int64_t x = 0; x < w->w; x += GROUP) {
				int64_t *row = t.row + t.groups * GROUP, at = i * q->obatch + l * w->oline + x * w->ocolumn;
				t.group[t.groups] = image + l * w->line + x * w->column;
				for (int64_t k = 0; k < GROUP; k++)
					row[k] = at + k * w->ocolumn;
				if (x + GROUP > w->w) {
					t.whole = 0;
					for (int64_t k = w->w - x; k < GROUP; k++)
						row[k] = -1;
				}
				if (++t.groups == GROUPS)
					ISA(window_tile)(q, w, &t, cols, room, b, c);
			}
	}
	if (t.groups > 0)
		ISA(window_tile)(q, w, &t, cols, room, b, c);
}

// Computes panels [p0, p1) of columns that several tiles read, a block of a run at a time. While tiles read one block, they fetch the next. In place, the
// rows of a panel are so far apart that each is in another page of memory, and most share a few sets of the caches, so blocks are packed. With vectors of 16
// floats, reading them takes less time than packing.
static void ISA(window_blocks)(const windowed *q, const window *w, const extent *e, int64_t p0, int64_t p1, const float *b, float *y, float *room)
{
	int64_t cols = (q->n < p1 * COLS ? q->n : p1 * COLS) - p0 * COLS;
	windowed block = *q;
	window in = *w;
	block.far = 0, block.add = 0, in.runs = 1, in.r[0].apart = w->step, in.r[0].b = 0;
	b += w->b + p0 * w->panel;
	for (int64_t i = 0; i < w->runs; i++)
		for (int64_t k = 0; k < w->r[i].n; k += BLOCK_K, block.add = 1) {
			int64_t kc = w->r[i].n - k < BLOCK_K ? w->r[i].n - k : BLOCK_K;
			const float *rows = b + w->r[i].b + k * w->step;
#if VL < 16
			ISA(pack_wide)(rows, w->step, cols, kc, room + e->copy);
			rows = room + e->copy, in.step = COLS, in.panel = kc * COLS;
#endif
			in.r[0].a = w->r[i].a + k, in.r[0].n = kc, in.b = -p0 * in.panel;
			int64_t rest = w->r[i].n - k - kc, last = rest == 0 && i + 1 == w->runs;
			const float *next = rest > 0 ? b + w->r[i].b + (k + kc) * w->step : last ? b + w->r[0].b + TOGETHER * w->panel : b + w->r[i + 1].b;
			block.ahead = (!last || p1 + TOGETHER <= e->p1) && cols % COLS == 0 && kc == BLOCK_K;
			for (int64_t p = p0; p < p1; p++, next += COLS) {
				in.r[0].next = next;
				ISA(window_panel)(&block, &in, e, p, rows, y, room);
			}
		}
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

// Stores four outputs of three columns each.
static inline void ISA(store_threes)(float *c, const v4 *sum)
{
	v4 x = __builtin_shufflevector(sum[0], sum[1], 0, 4, 1, 5), y = __builtin_shufflevector(sum[0], sum[1], 2, 6, 3, 7), z = sum[2];
	v4 a = __builtin_shufflevector(x, z, 0, 1, 4, 2), b = __builtin_shufflevector(__builtin_shufflevector(x, z, 3, 5, 3, 5), y, 0, 1, 4, 5);
	v4 d = __builtin_shufflevector(z, y, 2, 6, 7, 3);
	memcpy(c, &a, sizeof a);
	memcpy(c + 4, &b, sizeof b);
	memcpy(c + 8, &d, sizeof d);
}

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
				if (q->n == 3 && q->ochannel == 1 && w->ocolumn == 3 && x + 4 <= w->w) {
					ISA(store_threes)(c, sum);
					continue;
				}
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

// Memory that will be staged next: [at, end) is fetched to the L2 cache while tiles are multiplied, each bytes before a tile.
typedef struct {
	const char *at, *end;
	int64_t each;
} ISA(fetched);

static inline void ISA(fetch)(ISA(fetched) *f)
{
	const char *to = f->end - f->at < f->each ? f->end : f->at + f->each;
	for (; f->at < to; f->at += 64)
		__builtin_prefetch(f->at, 0, 2);
}

// What is fetched before each of so many tiles, in whole cache lines.
static inline ISA(fetched) ISA(fetched_by)(int64_t tiles, const float *from, const float *to)
{
	ISA(fetched) f = {(const char *)from, (const char *)to};
	f.each = ((f.end - f.at) / tiles + 63) / 64 * 64;
	return f;
}

// Height of panels that are as few as possible and about equally high.
static inline int64_t ISA(height)(int64_t rows)
{
	int64_t panels = (rows + ROWS - 1) / ROWS;
	return (rows + panels - 1) / panels;
}

#include "strips_body.h"
#include "spread_body.h"

static void ISA(convolve_windows)(const windowed *q, const window *w, const extent *e, const half_tiles *t, const float *x, const float *b, float *y, float *room)
{
	if (q->spread) {
		ISA(windows_spread)(q, w, e, x, b, y, room);
		return;
	}
	int64_t low = (e->i1 - e->i0) * ISA(image_words)(q, e);
	if (q->stack.planes)
		for (int64_t i = e->i0, at = 0; i < e->i1; i++, at += ISA(image_words)(q, e))
			ISA(stage_stack)(q, ISA(element)(x, i * q->s.batch, q->s.narrow), (half *)(void *)(room + at), q->parts > 1 ? (half *)(void *)(room + low + at) : 0);
	else if (q->cut.words)
		for (int64_t i = e->i0, at = 0; i < e->i1; i++)
			for (int64_t l = e->l0; l < e->l1; l++, at += q->pitch)
				ISA(stage_cut)(q, ISA(element)(x, i * q->s.batch, q->s.narrow), q->s.y0 + l, (half *)(void *)(room + at), (half *)(void *)(room + low + CUT_AFTER));
	else if (q->half)
		for (int64_t i = e->i0, at = 0; i < e->i1; i++)
			for (int64_t l = e->l0; l < e->l1; l++, at += q->pitch)
				ISA(stage_halves)(&q->s, ISA(element)(x, i * q->s.batch, q->s.narrow), q->s.y0 + l, (half *)(void *)(room + at),
					q->parts > 1 ? (half *)(void *)(room + low + at) : 0);
	else
		ISA(stage)(&q->s, x, e->i0, e->i1, e->l0, e->l1, room);
	for (int64_t i = e->w0; i < e->w1; i++) {
		if (q->few)
			ISA(window_few)(q, &w[i], e, b, y, room);
		int blocks = q->blocks && w[i].runs > 0;
		int64_t together = blocks ? TOGETHER : 1;
		for (int64_t p = e->p0; p < e->p1 && !q->few; p += together)
			if (blocks)
				ISA(window_blocks)(q, &w[i], e, p, p + together < e->p1 ? p + together : e->p1, b, y, room);
			else if (q->side)
				ISA(window_strips)(q, &w[i], e, t, p, b, y, room);
			else if (ISA(in_lines)(q, &w[i]))
				ISA(window_lines)(q, &w[i], e, b, y, room);
			else
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

// ---- correlations ----

// One tile of a correlation: rows adjacent floats of a times columns of b, into c, whose rows are width floats long.
static void ISA(correlation_tile)(int64_t half, const run *r, int64_t runs, const float *a, int64_t rows, int64_t ak, const float *b, int64_t bk,
	int64_t cols, float *c, int64_t width, int add)
{
	int64_t group[GROUPS] = {0, GROUP, 2 * GROUP}, row[ROWS];
	int vectors = cols > 2 * VL ? 3 : cols > VL ? 2 : 1;
	ISA(direct_tile) tile = vectors == 3 ? ISA(low_tiles)[rows - 1] : ISA(tile_of)(half, 0, rows, vectors);
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

// Width of panels of so many columns: a vector if that is enough, so that panels take half the room in caches.
static inline int64_t ISA(columns_width)(int64_t n) { return n <= VL ? VL : COLS; }

// The layout of what a part stages at a time: lines of images, and the lines of v that they are multiplied with. Panels of v have as many
// channels as tiles have rows or columns, and those of the images have the others.
typedef struct {
	int64_t images, lines;   // the largest numbers of images and, of each, of v's lines
	int64_t xlines;          // staged lines of an image
	int64_t step, next;      // distance of those lines in the image, and of those that follow each other in the sum
	int64_t block, blocks;   // adjacent rows, and number of such blocks
	int64_t width, vwidth;   // of a tile, in rows or columns
	int64_t pixel, pitch, column; // floats of a position and of a line, and between positions that follow each other in the sum
	int64_t per;             // with panels, positions that are a multiple of the dilation apart follow each other; per of them in a line
	int64_t panel, panels;   // floats from a tile's rows or columns to the next ones, and number of panels
	int64_t w, vpanel, vpanels; // columns of v, or pairs of them; of v's panels
	int64_t vstep;           // floats from a position of v to the next
	int64_t vline, vimage;   // floats from a line of v to the next, and from an image to the next
	int64_t whole, vstaged;  // v is read in place, since it has just one panel's channels or tiles have them as rows; otherwise the floats of its panels
	int64_t widened;         // it would be, but is stored as bfloat16: its lines are staged as floats
} ISA(staged);

// Rounds a number of floats up to whole cache lines.
static inline int64_t ISA(aligned)(int64_t n) { return (n + 15) / 16 * 16; }

static ISA(staged) ISA(staged_of)(const correlated *q, const correlation_part *p)
{
	int64_t one = p->o1 - p->o0 == 1, w = q->half ? q->w / 2 : q->w, c = q->s.c, n = p->n1 - p->n0;
	int64_t runs = w > POSITIONS ? 1 : POSITIONS / w < MAX_RUNS ? POSITIONS / w : MAX_RUNS;
	ISA(staged) s = {.w = w, .images = runs > q->h ? runs / q->h : 1, .lines = runs < q->h ? runs : q->h};
	s.images = s.images < p->i1 - p->i0 ? s.images : p->i1 - p->i0;
	s.step = one ? q->apart : 1, s.next = one ? 1 : q->apart;
	s.xlines = (s.lines - 1) * s.next + p->o1 - p->o0;
	s.block = q->panels ? c : q->rows, s.blocks = q->rows / s.block;
	s.width = q->swapped ? ISA(columns_width)(c) : ISA(height)(s.block);
	s.vwidth = q->swapped ? ISA(height)(n) : ISA(columns_width)(n);
	s.pixel = q->panels ? s.width : c;
	s.per = (q->s.columns + q->dilation - 1) / q->dilation;
	s.pitch = q->panels ? q->dilation * s.per * s.pixel : q->s.columns * c;
	s.column = (q->panels ? 1 : q->dilation) * (q->half ? 2 : 1) * s.pixel;
	s.panels = q->panels ? (c + s.width - 1) / s.width : 1;
	s.panel = q->panels ? ISA(aligned)(s.images * s.xlines * s.pitch + COLS) : s.width;
	s.vpanels = (n + s.vwidth - 1) / s.vwidth;
	// Whether tiles read v's positions as they lie.
	int64_t lies = n == q->n && n == q->vcolumn && !q->half && (q->swapped && !q->panels && n <= 2 * COLS || n == s.vwidth);
	s.whole = lies && !q->vnarrow, s.widened = lies && q->vnarrow;
	s.vstep = lies ? n : s.vwidth;
	s.vline = s.whole ? q->vline : w * s.vstep, s.vimage = s.whole ? q->vbatch : s.lines * s.vline;
	s.vpanel = lies ? s.vwidth : ISA(aligned)(s.images * s.vimage + COLS);
	s.vstaged = s.whole ? 0 : s.widened ? ISA(aligned)(s.images * s.vimage + COLS) : s.vpanels * s.vpanel;
	return s;
}

// The floats of staged images, and those of a line with what tiles and copies read after it.
static int64_t ISA(image_floats)(const correlated *q, const ISA(staged) *s)
{
	return ISA(aligned)(q->panels ? s->panels * s->panel : s->images * s->xlines * s->pitch + 2 * COLS);
}

static int64_t ISA(line_floats)(const correlated *q)
{
	return q->s.columns * q->s.c + 2 * COLS;
}

#include "stacked_body.h"

static int64_t ISA(correlate_floats)(const correlated *q, const correlation_part *p)
{
	if (q->stacked)
		return ISA(stacked_floats)(q);
	ISA(staged) s = ISA(staged_of)(q, p);
	return ISA(image_floats)(q, &s) + s.vstaged + 2 * ISA(line_floats)(q);
}

static int ISA(correlates_in_place)(const correlated *q)
{
	if (q->stacked || q->swapped)
		return 0;
	correlation_part all = {.i1 = q->images, .o1 = q->oh, .n1 = q->n};
	return ISA(staged_of)(q, &all).whole;
}

// Copies n floats in whole vectors, reading no more than n.
static inline void ISA(copy_first)(float *to, const float *from, int64_t n)
{
	for (; n >= VL; n -= VL, to += VL, from += VL)
		*(vf *)to = *(const vf *)from;
	if (n > 0)
		*(vf *)to = ISA(load_first)(from, n);
}

// Distributes a line among the panels. Copies are of whole vectors: what they write after a position is overwritten by the next one.
static void ISA(panel_line)(const correlated *q, const ISA(staged) *s, const float *line, float *to)
{
	for (int64_t m = 0; m < s->panels; m++, to += s->panel)
		for (int64_t d = 0; d < q->dilation; d++) {
			const float *from = line + d * q->s.c + m * s->width;
			float *at = to + d * s->per * s->width;
			for (int64_t j = d; j < q->s.columns; j += q->dilation, from += q->dilation * q->s.c, at += s->width)
				for (int64_t i = 0; i < s->width; i += VL)
					*(vf *)(at + i) = *(const vf *)(from + i);
		}
}

// Stages the lines of count images that lines [l, l + lines) of v are multiplied with. With bfloat16, each word holds a value and the one that
// follows it in the sum.
static void ISA(stage_correlated)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const float *x, int64_t i, int64_t count,
	int64_t l, int64_t lines, float *room, float *line)
{
	int64_t all = q->s.columns * q->s.c, apart = q->dilation * q->s.c, xlines = (lines - 1) * s->next + p->o1 - p->o0;
	float *words = line + ISA(line_floats)(q);
	for (int64_t k = 0; k < count; k++)
		for (int64_t j = 0; j < xlines; j++) {
			float *to = room + (k * s->xlines + j) * s->pitch, *staged = q->half || q->panels ? line : to;
			ISA(stage_line)(&q->s, ISA(element)(x, (i + k) * q->s.batch, q->s.narrow), q->s.y0 + p->o0 + l * q->apart + j * s->step, staged);
			if (q->half) {
				uint32_t *pairs = (uint32_t *)(void *)(q->panels ? words : to);
				ISA(pair_rows)(line, line + apart, all - apart, pairs, 0);
				ISA(pair_rows)(line + all - apart, 0, apart, pairs + all - apart, 0);
			}
			if (q->panels)
				ISA(panel_line)(q, s, q->half ? words : line, to);
		}
}

// Stages lines [l, l + lines) of v's channels [n0, n1), of count images.
static void ISA(stage_v)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const float *v, int64_t i, int64_t count,
	int64_t l, int64_t lines, float *room)
{
	int64_t n = p->n1 - p->n0, unit = q->half ? 2 : 1;
	for (int64_t k = 0; k < count; k++)
		for (int64_t j = 0; j < lines; j++) {
			if (s->widened) {
				ISA(widen)(ISA(element)(v, (i + k) * q->vbatch + (l + j) * q->vline, 1), s->w * n, room + k * s->vimage + j * s->vline);
				continue;
			}
			for (int64_t c = 0; c < s->w; c++) {
				int64_t from = (i + k) * q->vbatch + (l + j) * q->vline + unit * c * q->vcolumn + p->n0;
				float *to = room + k * s->vimage + j * s->vline + c * s->vwidth;
				for (int64_t m = 0; m < n; m += s->vwidth, to += s->vpanel) {
					int64_t width = n - m < s->vwidth ? n - m : s->vwidth;
					float wide[2 * MAX_COLS]; // a panel of v has at most as many rows or columns
					const float *first = ISA(element)(v, from + m, q->vnarrow), *second = ISA(element)(v, from + q->vcolumn + m, q->vnarrow);
					if (q->vnarrow) {
						ISA(widen)(first, width, wide);
						if (q->half)
							ISA(widen)(second, width, wide + MAX_COLS);
						first = wide, second = wide + MAX_COLS;
					}
					if (q->half)
						ISA(pair_rows)(first, second, width, (uint32_t *)(void *)to, 0);
					else
						ISA(copy_first)(to, first, width);
				}
			}
		}
}

// The lines that are staged after those for lines [l, l + lines) of v, of count images from i on: of the same images, or of the next one.
static ISA(fetched) ISA(staged_next)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const float *x, int64_t i, int64_t count,
	int64_t l, int64_t lines)
{
	int64_t oh = p->o1 - p->o0, begin = q->s.y0 + p->o0, first = begin, end = begin + (s->lines - 1) * q->apart + oh;
	int64_t tiles = oh * q->rows * (p->n1 - p->n0) / (ROWS * COLS) + 1;
	if (l + lines < q->h) // only lines that are not staged now
		first = begin + (l + lines - 1) * q->apart + oh, end += (l + lines) * q->apart;
	else
		i += count;
	first = first > 0 ? first : 0, end = end < q->s.h ? end : q->s.h;
	if (i >= p->i1 || first >= end || q->s.narrow)
		return (ISA(fetched)){0};
	const float *image = x + i * q->s.batch;
	return ISA(fetched_by)(tiles, image + first * q->s.sy, image + end * q->s.sy);
}

// Adds the runs' products to the sums. A panel of the operand that tiles read as columns stays in the L1 cache while tiles read near panels of the
// other one, of up to NEAR floats, which stay in the L2 cache.
static void ISA(correlate_runs)(const correlated *q, const correlation_part *p, const ISA(staged) *s, const run *r, int64_t runs, const float *x,
	const float *v, float *sums, int add, ISA(fetched) *f)
{
	int64_t n = p->n1 - p->n0, outer = q->swapped ? s->block : n, inner = q->swapped ? n : s->block, unit = q->swapped ? s->vwidth : s->width;
	int low = q->swapped && unit <= ISA(LOW) && !q->half && !q->panels;
	int64_t panel = q->swapped ? s->vpanel : s->panel, many = panel > 0 ? NEAR / panel : inner, near = (many > 1 ? many : 1) * unit;
	for (int64_t a0 = 0; a0 < inner; a0 += near)
		for (int64_t b = 0, width; b < outer; b += width) {
			width = low && outer - b >= ISA(THREE) ? ISA(THREE) : COLS;
			for (int64_t i = p->o0; i < p->o1; i++)
				for (int64_t j = 0; j < s->blocks; j++) {
					const float *at = x + (i - p->o0) * s->pitch + (j % q->dilation * s->per + j / q->dilation) * s->pixel;
					float *to = sums + i * q->sline + j * q->sposition + b;
					for (int64_t a = a0; a < inner && a < a0 + near; a += unit) {
						int64_t rows = inner - a < unit ? inner - a : unit, cols = outer - b < width ? outer - b : width;
						ISA(fetch)(f);
						if (q->swapped)
							ISA(correlation_tile)(q->half, r, runs, v + a / unit * s->vpanel, rows, s->vstep, q->panels ? at + b / COLS * s->panel : at + b, s->column, cols,
								to + (p->n0 + a) * q->srow, q->srow, add);
						else
							ISA(correlation_tile)(q->half, r, runs, at + a / unit * s->panel, rows, s->column, v + b / COLS * s->vpanel, s->vwidth, cols,
								to + p->n0 + a * q->srow, q->srow, add);
					}
				}
		}
}

static void ISA(correlate)(const correlated *q, const correlation_part *p, const float *x, const float *v, float *sums, float *room)
{
	if (q->stacked) {
		ISA(correlate_stacked)(q, p, x, v, sums, room);
		return;
	}
	ISA(staged) s = ISA(staged_of)(q, p);
	float *panels = room + ISA(image_floats)(q, &s), *line = panels + s.vstaged;
	for (int64_t i = p->i0; i < p->i1; i += s.images)
		for (int64_t l = 0; l < q->h; l += s.lines) {
			int64_t count = p->i1 - i < s.images ? p->i1 - i : s.images, lines = q->h - l < s.lines ? q->h - l : s.lines;
			ISA(stage_correlated)(q, p, &s, x, i, count, l, lines, room, line);
			const float *staged = s.whole ? v + i * q->vbatch + l * q->vline : panels;
			if (!s.whole)
				ISA(stage_v)(q, p, &s, v, i, count, l, lines, panels);
			run r[MAX_RUNS];
			for (int64_t k = 0; k < count * lines; k++) {
				int64_t at = (k / lines * s.xlines + k % lines * s.next) * s.pitch, vat = k / lines * s.vimage + k % lines * s.vline;
				r[k] = q->swapped ? (run){vat, at, s.w} : (run){at, vat, s.w};
			}
			ISA(fetched) next = ISA(staged_next)(q, p, &s, x, i, count, l, lines);
			ISA(correlate_runs)(q, p, &s, r, count * lines, room, staged, sums, i > p->i0 || l > 0, &next);
		}
}

static void ISA(correlate_join)(const correlated *q, const float *part, int64_t parts, float *y, int64_t r0, int64_t r1)
{
	int64_t size = q->oh * q->rows * q->n, line = q->rows * q->n, rs = q->swapped ? 1 : q->n, ns = q->swapped ? q->rows : 1;
	if (q->stacked)
		size = q->n * q->stacked, line = q->rows, rs = 1, ns = q->stacked;
	for (int64_t r = r0; r < r1; r++) {
		int64_t i = r / q->rows, m = r % q->rows;
		const float *from = part + i * line + m * rs;
		float *to = y + i * q->oy + m / q->s.c * q->ox + m % q->s.c * q->oc;
		for (int64_t n = 0; n < q->n; n++) {
			float sum = from[n * ns];
			for (int64_t p = 1; p < parts; p++)
				sum += from[p * size + n * ns];
			to[n * q->on] = sum;
		}
	}
}

#undef FAR_AHEAD
#undef RUNS_TILE
#undef GROUPED
#undef FAR
#undef NEXT
#undef NO_ROUND
#undef CONVERT
#undef DIRECT
#undef DIRECTS
#undef THREES
#undef HALVES_TILE
#undef HALVES
#undef BOTH
#undef FEW
#undef PAIRED
#undef TILE_OF
