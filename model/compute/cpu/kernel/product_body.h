// The product's kernels for one instruction set. See product.h and isa.h.
#include "vector.h"

#if VL == 16 || defined(__aarch64__)
#define ROWS 12
#define EACH_HEIGHT(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#else
#define ROWS 6
#define EACH_HEIGHT(F) F(1) F(2) F(3) F(4) F(5) F(6)
#endif
#define COLS (2 * VL)

// ---- reading operands ----

// Writes offsets and spatial positions of the indices i0 .. i0+n.
static void ISA(expand)(const axes *x, int64_t i0, int64_t n, int64_t *off, int64_t (*pos)[MAX_COLS])
{
	int64_t at[MAX_DIGITS] = {0}, rest = i0;
	for (int64_t j = x->digits - 1; j >= 0; j--) {
		at[j] = rest % x->d[j].n;
		rest /= x->d[j].n;
	}
	for (int64_t r = 0; r < n; r++) {
		int64_t o = 0, p[MAX_DIMS] = {0};
		for (int64_t j = 0; j < x->digits; j++) {
			o += at[j] * x->d[j].off;
			if (x->d[j].dim >= 0)
				p[x->d[j].dim] += at[j] * x->d[j].step;
		}
		off[r] = o;
		if (pos)
			for (int d = 0; d < MAX_DIMS; d++)
				pos[d][r] = p[d];
		for (int64_t j = x->digits - 1; j >= 0 && ++at[j] == x->d[j].n && j > 0; j--)
			at[j] = 0;
	}
}

// The location of an element; x holds bfloat16 if narrow is set.
static inline const float *ISA(element)(const float *x, int64_t at, int64_t narrow)
{
	return (const float *)((const char *)x + at * (int64_t)(narrow ? sizeof(half) : sizeof(float)));
}

// The same for a result.
static inline float *ISA(result)(float *y, int64_t at, int64_t narrow) { return (float *)ISA(element)(y, at, narrow); }

// A panel of an operand that is being packed, and its current run of k: within a run, k moves only along the operand's innermost digit.
typedef struct {
	const operand *o;
	const digit *in; // that digit
	const void *src;
	int64_t rows, width;
	int64_t off[MAX_COLS], pos[MAX_DIMS][MAX_COLS];
	int64_t least[MAX_DIMS], most[MAX_DIMS]; // smallest and largest position of the panel's rows
	int64_t contiguous;                      // the rows are adjacent in memory
	int64_t koff, kpos[MAX_DIMS], at, run;
	int64_t first, last;                // steps of the innermost digit's position at both ends of the run
	int64_t lo[MAX_COLS], hi[MAX_COLS]; // the part of the run inside the bounds, for each row
} ISA(panel);

static inline int64_t ISA(ceil_div)(int64_t a, int64_t b)
{
	if (b == 1)
		return a;
	return a > 0 ? (a + b - 1) / b : -(-a / b);
}

// The values t of the run for which 0 <= p + floor((at+t)/per)*step < size, as [lo, hi).
static inline void ISA(interval)(const ISA(panel) *p, int64_t pos, int64_t size, int64_t *lo, int64_t *hi)
{
	const digit *in = p->in;
	*lo = 0, *hi = p->run;
	if (pos + p->first >= 0 && pos + p->last < size)
		return;
	int64_t a = ISA(ceil_div)(-pos, in->step) * in->per - p->at, b = ISA(ceil_div)(size - pos, in->step) * in->per - p->at;
	*lo = a < 0 ? 0 : a > p->run ? p->run : a;
	*hi = b > p->run ? p->run : b < *lo ? *lo : b;
}

enum { ISA(ALL_IN), ISA(ALL_OUT), ISA(SOME_IN) };

// Finds each row's interval, unless all rows have the whole run or all have none of it.
static int ISA(bounds)(ISA(panel) *p)
{
	const operand *o = p->o;
	int inside = 1;
	for (int d = 0; d < MAX_DIMS; d++) {
		if (o->size[d] < 0)
			continue;
		int64_t least = p->least[d] + p->kpos[d], most = p->most[d] + p->kpos[d];
		if (d == p->in->dim)
			least += p->first, most += p->last;
		if (most < 0 || least >= o->size[d])
			return ISA(ALL_OUT);
		inside &= least >= 0 && most < o->size[d];
	}
	if (inside)
		return ISA(ALL_IN);
	for (int64_t r = 0; r < p->rows; r++)
		p->lo[r] = 0, p->hi[r] = p->run;
	for (int d = 0; d < MAX_DIMS; d++) {
		if (o->size[d] < 0 || d == p->in->dim)
			continue;
		for (int64_t r = 0; r < p->rows; r++)
			p->hi[r] = (uint64_t)(p->pos[d][r] + p->kpos[d]) < (uint64_t)o->size[d] ? p->hi[r] : 0;
	}
	int d = p->in->dim;
	if (d < 0 || o->size[d] < 0)
		return ISA(SOME_IN);
	int64_t lo = 0, hi = 0;
	for (int64_t r = 0; r < p->rows; r++) {
		if (r == 0 || p->pos[d][r] != p->pos[d][r - 1])
			ISA(interval)(p, p->pos[d][r] + p->kpos[d], o->size[d], &lo, &hi);
		p->lo[r] = p->hi[r] ? lo : 0;
		p->hi[r] = p->hi[r] && hi > lo ? hi : p->lo[r];
	}
	return ISA(SOME_IN);
}

static inline void ISA(zero_rows)(float *to, int64_t n, int64_t len, int64_t width)
{
	for (int64_t t = 0; t < n; t++, to += width)
		for (int64_t j = 0; j < len; j++)
			to[j] = 0;
}

static const float ISA(zeros)[BLOCK_K];

#define READ(name) ISA(name)
#define ELEMENT float
#define WHOLE(s) (*(const vf *)(s))
#define FOUR(s) (*(const v4 *)(s))
#define ONE(s) (*(s))
#include "pack_body.h"

#include "round_body.h"

// Elements stored as bfloat16.
#define vu ISA(vu)
#define vh ISA(vh)
typedef uint32_t ISA(vu4) __attribute__((vector_size(16)));
typedef half ISA(vh4) __attribute__((vector_size(8), aligned(2), may_alias));

static inline vf ISA(widened)(const half *s) { return (vf)(__builtin_convertvector(*(const vh *)s, vu) << 16); }

static inline float ISA(widened_one)(const half *s)
{
	union { uint32_t u; float f; } x = {.u = (uint32_t)*s << 16};
	return x.f;
}

#define READ(name) ISA(ISA_JOIN(name, narrow))
#define ELEMENT half
#define WHOLE(s) ISA(widened)(s)
#define FOUR(s) ((v4)(__builtin_convertvector(*(const ISA(vh4) *)(s), ISA(vu4)) << 16))
#define ONE(s) ISA(widened_one)(s)
#include "pack_body.h"

// Records the locations of a panel's rows.
static void ISA(open_panel)(ISA(panel) *p, const operand *o, const float *src, int64_t x0, int64_t rows, int64_t width)
{
	p->o = o, p->src = src, p->rows = rows, p->width = width;
	p->in = &o->k.d[o->k.digits - 1];
	ISA(expand)(&o->x, x0, rows, p->off, o->bounded ? p->pos : 0);
	p->contiguous = rows > 1;
	for (int64_t r = 1; r < rows; r++)
		p->contiguous &= p->off[r] == p->off[r - 1] + 1;
	for (int d = 0; d < MAX_DIMS && o->bounded; d++) {
		p->least[d] = p->most[d] = p->pos[d][0];
		for (int64_t r = 1; r < rows; r++) {
			int64_t at = p->pos[d][r];
			p->least[d] = at < p->least[d] ? at : p->least[d];
			p->most[d] = at > p->most[d] ? at : p->most[d];
		}
	}
}

// Writes k as digits.
static void ISA(seek)(const operand *o, int64_t k, int64_t *at)
{
	for (int64_t j = o->k.digits - 1; j >= 0; j--) {
		at[j] = k % o->k.d[j].n;
		k /= o->k.d[j].n;
	}
}

// Opens the run of at most n values of k that begins at the digits.
static void ISA(open_run)(ISA(panel) *p, const int64_t *at, int64_t n)
{
	const operand *o = p->o;
	int64_t last = o->k.digits - 1;
	p->koff = o->base + at[last] * p->in->off;
	for (int d = 0; d < MAX_DIMS; d++)
		p->kpos[d] = o->pos[d];
	for (int64_t j = 0; j < last; j++) {
		const digit *g = &o->k.d[j];
		p->koff += at[j] * g->off;
		if (g->dim >= 0)
			p->kpos[g->dim] += at[j] * g->step;
	}
	p->at = at[last];
	p->run = p->in->n - at[last];
	p->run = p->run < n ? p->run : n;
	p->first = p->at, p->last = p->at + p->run - 1;
	if (p->in->per > 1)
		p->first /= p->in->per, p->last /= p->in->per;
	p->first *= p->in->step, p->last *= p->in->step;
}

// Moves the digits to the end of the run.
static void ISA(close_run)(const ISA(panel) *p, int64_t *at)
{
	int64_t last = p->o->k.digits - 1;
	at[last] += p->run;
	for (int64_t j = last; j > 0 && at[j] == p->o->k.d[j].n; j--)
		at[j] = 0, at[j - 1]++;
}

// Packs rows [x0, x0+rows) of an operand for k in [k0, k0+n), as n rows of the panel's width.
static void ISA(pack)(const operand *o, const float *src, int64_t x0, int64_t rows, int64_t width, int64_t k0, int64_t n, float *to)
{
	if (n == 0)
		return;
	ISA(panel) p;
	ISA(open_panel)(&p, o, src, x0, rows, width);
	int64_t at[MAX_DIGITS];
	ISA(seek)(o, k0, at);
	for (; n > 0; n -= p.run) {
		ISA(open_run)(&p, at, n);
		if (o->narrow)
			ISA(pack_run_narrow)(&p, to);
		else
			ISA(pack_run)(&p, to);
		to += p.run * width;
		ISA(close_run)(&p, at);
	}
}

static void ISA(pack_rows)(const product *q, const float *a, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	for (int64_t k = k0; k < k1; k += BLOCK_K) {
		int64_t kc = k1 - k < BLOCK_K ? k1 - k : BLOCK_K;
		for (int64_t p = p0; p < p1; p++) {
			int64_t h = q->height, rows = q->m - p * h < h ? q->m - p * h : h;
			ISA(pack)(&q->a, a, p * h, rows, h, k, kc, to + (k - k0) * panels * h + p * h * kc);
		}
	}
}

static void ISA(pack_cols)(const product *q, const float *b, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	for (int64_t k = k0; k < k1; k += BLOCK_K) {
		int64_t kc = k1 - k < BLOCK_K ? k1 - k : BLOCK_K;
		for (int64_t p = p0; p < p1; p++) {
			int64_t cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS;
			ISA(pack)(&q->b, b, p * COLS, cols, COLS, k, kc, to + (k - k0) * panels * COLS + p * COLS * kc);
		}
	}
}

// ---- the tile ----

// A tile is c[row[i] + j] (+)= sum over k of A(i, k) b[k*step + j], for rows x (vectors * VL) elements held in registers. tile reads packed
// rows, A(i, k) = a[k*height + i]; tile_rows reads them where they are, A(i, k) = a[i*height + k].
#define TILE(kind, rows, vectors, A, NEXT, PREFETCH)                                                                                    \
	static void ISA(kind##_##rows##_##vectors)(int64_t k, const float *a, int64_t height, const float *b, int64_t step, float *c,   \
		const int64_t *row, int add)                                                                                            \
	{                                                                                                                               \
		vf acc[rows][vectors];                                                                                                  \
		UNROLL for (int i = 0; i < rows; i++)                                                                                   \
			UNROLL for (int j = 0; j < vectors; j++)                                                                        \
				acc[i][j] = (vf){0};                                                                                    \
		const int64_t whole = k;                                                                                                \
		for (; k > 0; k--, NEXT, b += step) {                                                                                   \
			PREFETCH(rows)                                                                                                  \
			vf y[vectors];                                                                                                  \
			UNROLL for (int j = 0; j < vectors; j++)                                                                        \
				y[j] = *(const vf *)(b + j * VL);                                                                       \
			UNROLL for (int i = 0; i < rows; i++)                                                                           \
				UNROLL for (int j = 0; j < vectors; j++)                                                                \
					acc[i][j] += A * y[j];                                                                          \
		}                                                                                                                       \
		if (add)                                                                                                                \
			UNROLL for (int i = 0; i < rows; i++)                                                                           \
				UNROLL for (int j = 0; j < vectors; j++)                                                                \
					acc[i][j] += *(vf *)(c + row[i] + j * VL);                                                      \
		UNROLL for (int i = 0; i < rows; i++)                                                                                   \
			UNROLL for (int j = 0; j < vectors; j++)                                                                        \
				*(vf *)(c + row[i] + j * VL) = acc[i][j];                                                               \
	}

// Every 16 values, a cache line of each row is prefetched that is read 48 values later; at the end, those that the next tile begins with.
#define PREFETCH_ROWS(rows)                                                             \
	if (k % 16 == 0) {                                                              \
		const float *ahead = a + (k > 48 ? 48 : 48 - whole + rows * height);    \
		UNROLL for (int i = 0; i < rows; i++)                                   \
			__builtin_prefetch(ahead + i * height);                         \
	}
// The columns of a row of B that is read later, perhaps in the next block.
#define PREFETCH_COLUMNS(rows)                                       \
	UNROLL for (int j = 0; j < COLS; j += 16)                    \
		__builtin_prefetch(b + PLACED_AHEAD * step + j, 0, 2);
#define NOTHING(rows)
#define TILES(rows)                                                     \
	TILE(tile, rows, 1, a[i], a += height, NOTHING)                 \
	TILE(tile, rows, 2, a[i], a += height, NOTHING)                 \
	TILE(tile_placed, rows, 1, a[i], a += height, PREFETCH_COLUMNS) \
	TILE(tile_placed, rows, 2, a[i], a += height, PREFETCH_COLUMNS) \
	TILE(tile_rows, rows, 1, a[i * height], a++, PREFETCH_ROWS)     \
	TILE(tile_rows, rows, 2, a[i * height], a++, PREFETCH_ROWS)
EACH_HEIGHT(TILES)

typedef void (*ISA(tile))(int64_t, const float *, int64_t, const float *, int64_t, float *, const int64_t *, int);
#define PAIR(rows) {ISA(tile_##rows##_1), ISA(tile_##rows##_2)},
static const ISA(tile) ISA(tiles)[ROWS][2] = {EACH_HEIGHT(PAIR)};
#undef PAIR
#define PAIR(rows) {ISA(tile_placed_##rows##_1), ISA(tile_placed_##rows##_2)},
static const ISA(tile) ISA(placed_tiles)[ROWS][2] = {EACH_HEIGHT(PAIR)};
#undef PAIR
#define PAIR(rows) {ISA(tile_rows_##rows##_1), ISA(tile_rows_##rows##_2)},
static const ISA(tile) ISA(rows_tiles)[ROWS][2] = {EACH_HEIGHT(PAIR)};

// Location of a panel's columns in C.
typedef struct {
	int64_t cols, contiguous;
	int64_t off[MAX_COLS];
} ISA(columns);

static void ISA(place)(const product *q, int64_t n, int64_t width, ISA(columns) *to)
{
	to->cols = q->n - n < width ? q->n - n : width;
	ISA(expand)(&q->cn, n, to->cols, to->off, 0);
	to->contiguous = 1;
	for (int64_t j = 1; j < to->cols; j++)
		to->contiguous &= to->off[j] == to->off[j - 1] + 1;
}

// Fetches the lines that a tile is going to write.
static inline void ISA(fetch_result)(const float *c, const int64_t *row, int64_t rows, int64_t cols)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j += 16)
			__builtin_prefetch(c + row[i] + j, 1);
}

// Computes one tile into C, through a copy if C's columns are not adjacent or fewer than the vectors hold.
static void ISA(compute)(const ISA(tile) (*tiles)[2], int64_t rows, const ISA(columns) *n, int64_t k, const float *a, int64_t height,
	const float *b, int64_t step, float *c, const int64_t *row, int add)
{
	int vectors = n->cols > VL ? 2 : 1;
	ISA(tile) tile = tiles[rows - 1][vectors - 1];
	if (n->contiguous && n->cols == vectors * VL) {
		ISA(fetch_result)(c + n->off[0], row, rows, n->cols);
		tile(k, a, height, b, step, c + n->off[0], row, add);
		return;
	}
	float copy[ROWS * COLS];
	int64_t flat[ROWS];
	for (int64_t i = 0; i < rows; i++)
		flat[i] = i * COLS;
	tile(k, a, height, b, step, copy, flat, 0);
	for (int64_t i = 0; i < rows; i++) {
		float *to = c + row[i];
		for (int64_t j = 0; j < n->cols; j++)
			to[n->off[j]] = add ? to[n->off[j]] + copy[i * COLS + j] : copy[i * COLS + j];
	}
}

// Multiplies the panels of rows packed at a with the panels of columns packed at b, for k values of the contraction. Tiles of the same rows follow
// each other for as many columns as the L2 cache holds: adjacent tiles write to the same pages.
static void ISA(sweep)(const product *q, int64_t m0, int64_t m1, const ISA(columns) *n, int64_t panels, int64_t k, const float *a, const float *b,
	float *c, const int64_t *row, int add)
{
	int64_t h = q->height, group = GROUP_FLOATS / COLS / (k > 0 ? k : 1);
	if (group < 1)
		group = 1;
	for (int64_t p0 = 0; p0 < panels; p0 += group) {
		int64_t p1 = panels - p0 < group ? panels : p0 + group;
		for (int64_t m = m0; m < m1; m += h)
			for (int64_t p = p0; p < p1; p++)
				ISA(compute)(ISA(tiles), m1 - m < h ? m1 - m : h, &n[p], k, a + (m - m0) * k, h, b + p * k * COLS, COLS, c, row + (m - m0), add);
	}
}

// Whether an operand has no bounds, and one stride each in x and k.
static int ISA(strided)(const operand *o) { return !o->bounded && o->x.digits == 1 && o->k.digits == 1; }

// Whether each block of k of A's rows can be read in place: adjacent, without bounds, with one stride of x.
static int ISA(adjacent)(const operand *a)
{
	const digit *inner = &a->k.d[a->k.digits - 1];
	return !a->bounded && !a->narrow && a->x.digits == 1 && inner->off == 1 && (a->k.digits == 1 || inner->n % BLOCK_K == 0);
}

// Stores rows of sums, [rows][COLS], in C, whose rows are adjacent if the product is a transposed one.
static void ISA(store_sums)(const float *sums, int64_t rows, const ISA(columns) *n, float *c, const int64_t *row, int add)
{
	int64_t i = 0, j = 0, apart = n->cols > 1 ? n->off[1] - n->off[0] : 0;
	int transposed = !add && !n->contiguous;
	for (int64_t r = 1; r < rows; r++)
		transposed &= row[r] == row[r - 1] + 1;
	for (int64_t r = 1; r < n->cols; r++)
		transposed &= n->off[r] == n->off[r - 1] + apart;
	int64_t whole = transposed ? rows / 4 * 4 : 0;
	for (; j < n->cols; j += 4)
		for (i = 0; i < whole; i += 4) {
			const float *s = sums + i * COLS + j, *four[] = {s, s + COLS, s + 2 * COLS, s + 3 * COLS};
			ISA(transpose4)(four, n->cols - j < 4 ? n->cols - j : 4, c + row[i] + n->off[j], apart);
		}
	for (i = whole; i < rows; i++)
		for (j = 0; j < n->cols; j++) {
			float *to = c + row[i] + n->off[j];
			*to = add ? *to + sums[i * COLS + j] : sums[i * COLS + j];
		}
}

// Computes a part with B packed whole and A, whose k is adjacent in each block, in place: packing costs more than it gains if few columns read A. room
// holds sums that are then moved, unless a panel's columns are adjacent in C and fill vectors.
static void ISA(block_few)(const product *q, const part *w, const float *a, const float *packed, float *c, float *room)
{
	int64_t panels = (q->n + COLS - 1) / COLS, h = q->height, most = PART_ROWS / h * h, apart = q->a.x.d[0].off;
	int64_t row[PART_ROWS], flat[PART_ROWS], number = (w->n1 - w->n0 + COLS - 1) / COLS;
	ISA(columns) cols[FEW_PANELS];
	int whole[FEW_PANELS];
	for (int64_t p = 0; p < number; p++) {
		ISA(place)(q, w->n0 + p * COLS, COLS, &cols[p]);
		whole[p] = cols[p].contiguous && cols[p].cols % VL == 0;
	}
	for (int64_t i = 0; i < most; i++)
		flat[i] = i * COLS;
	for (int64_t m0 = w->m0; m0 < w->m1; m0 += most) {
		int64_t m1 = w->m1 - m0 < most ? w->m1 : m0 + most;
		ISA(expand)(&q->cm, m0, m1 - m0, row, 0);
		for (int64_t k = w->k0; k < w->k1; k += BLOCK_K) {
			int64_t kc = w->k1 - k < BLOCK_K ? w->k1 - k : BLOCK_K;
			int64_t from;
			ISA(expand)(&q->a.k, k, 1, &from, 0);
			for (int64_t p = 0; p < number; p++) {
				const float *b = packed + (k - w->k0) * panels * COLS + (w->n0 + p * COLS) * kc;
				float *to = whole[p] ? c + cols[p].off[0] : room + p * PART_ROWS * COLS;
				int add = k > w->k0 || (whole[p] && w->accumulate);
				for (int64_t m = m0; m < m1; m += h)
					ISA(rows_tiles)[(m1 - m < h ? m1 - m : h) - 1][cols[p].cols > VL](kc, a + q->a.base + m * apart + from,
						apart, b, COLS, to, (whole[p] ? row : flat) + m - m0, add);
			}
		}
		for (int64_t p = 0; p < number; p++)
			if (!whole[p])
				ISA(store_sums)(room + p * PART_ROWS * COLS, m1 - m0, &cols[p], c, row, w->accumulate);
	}
}

static void ISA(block_cols)(const product *q, part *w, const float *a, const float *packed, float *c, float *room)
{
	int64_t panels = (q->n + COLS - 1) / COLS, row[PART_ROWS], h = q->height, most = PART_ROWS / h * h;
	c += q->cbase;
	if (ISA(adjacent)(&q->a) && w->n1 - w->n0 <= FEW_PANELS * COLS && w->k1 > w->k0) {
		ISA(block_few)(q, w, a, packed, c, room);
		return;
	}
	for (int64_t m0 = w->m0; m0 < w->m1; m0 += most) {
		int64_t m1 = w->m1 - m0 < most ? w->m1 : m0 + most;
		ISA(expand)(&q->cm, m0, m1 - m0, row, 0);
		int64_t k = w->k0;
		do {
			int64_t kc = w->k1 - k < BLOCK_K ? w->k1 - k : BLOCK_K;
			int64_t began = begin(w);
			for (int64_t m = m0; m < m1; m += h)
				ISA(pack)(&q->a, a, m, m1 - m < h ? m1 - m : h, h, k, kc, room + (m - m0) * kc);
			end(w, began);
			const float *at = packed + (k - w->k0) * panels * COLS;
			for (int64_t n0 = w->n0; n0 < w->n1; n0 += LONG_PANELS * COLS) {
				ISA(columns) cols[LONG_PANELS];
				int64_t number = 0;
				for (int64_t n = n0; n < w->n1 && number < LONG_PANELS; n += COLS)
					ISA(place)(q, n, COLS, &cols[number++]);
				ISA(sweep)(q, m0, m1, cols, number, kc, room, at + n0 * kc, c, row, w->accumulate || k > w->k0);
			}
			k += BLOCK_K;
		} while (k < w->k1);
	}
}

// Whether the columns [n, n+cols) of B can be read in place: adjacent, without bounds, with one stride of k.
static int ISA(direct)(const operand *b, int64_t cols)
{
	int vectors = cols > VL ? 2 : 1;
	return ISA(strided)(b) && !b->narrow && b->x.d[0].off == 1 && cols == vectors * VL;
}

// Computes a block of k for packed panels of columns and all rows of a part.
static void ISA(column_panels)(const product *q, const part *w, const ISA(columns) *cols, int64_t panels, int64_t k, int64_t kc, const float *packed,
	const float *b, float *c)
{
	int64_t h = q->height, most = PART_ROWS / h * h, row[PART_ROWS];
	for (int64_t m0 = w->m0; m0 < w->m1; m0 += most) {
		int64_t m1 = w->m1 - m0 < most ? w->m1 : m0 + most;
		ISA(expand)(&q->cm, m0, m1 - m0, row, 0);
		ISA(sweep)(q, m0, m1, cols, panels, kc, packed + m0 * kc, b, c, row, w->accumulate || k > w->k0);
	}
}

// Packs k rows of B, which are step floats apart, in panels: cols adjacent columns, which fill vectors. Memory is faster in long rows.
static void ISA(pack_wide)(const float *b, int64_t step, int64_t cols, int64_t k, float *to)
{
	int64_t whole = cols / COLS * COLS;
	for (int64_t i = 0; i < k; i++, b += step, to += COLS) {
		for (int64_t j = 0; j < whole; j += COLS) {
			for (int64_t l = j; l < j + COLS; l += 16)
				__builtin_prefetch(b + 32 * step + l, 0, 2);
			*(vf *)(to + j * k) = *(const vf *)(b + j);
			*(vf *)(to + j * k + VL) = *(const vf *)(b + j + VL);
		}
		if (whole < cols)
			*(vf *)(to + whole * k) = *(const vf *)(b + whole);
	}
}

// Packs columns [n0, n1) of B, a whole number of panels except at the end of B.
static void ISA(pack_block)(const product *q, part *w, int64_t n0, int64_t n1, int64_t k, int64_t kc, const float *b, float *to)
{
	int64_t began = begin(w), n = n0;
	if (ISA(direct)(&q->b, COLS)) {
		int64_t step = q->b.k.d[0].off, whole = (n1 - n0) / COLS * COLS;
		ISA(pack_wide)(b + q->b.base + k * step + n, step, whole, kc, to);
		n += whole;
	}
	for (; n < n1; n += COLS)
		ISA(pack)(&q->b, b, n, n1 - n < COLS ? n1 - n : COLS, COLS, k, kc, to + (n - n0) * kc);
	end(w, began);
}

// Whether B is read in place: its columns are adjacent, and few tiles read each, for which packing costs more than it gains. Lines of rows that are a
// multiple of 4 KiB apart lie in one set of the first-level cache, so that each tile reads them from the next level; with vectors of 8 that takes longer.
static int ISA(placed)(const product *q, const part *w)
{
	int64_t most = VL < 16 && q->b.k.d[0].off % 1024 == 0 ? 2 : PLACED_TILES;
	return ISA(direct)(&q->b, COLS) && (w->n1 - w->n0) % COLS == 0 && w->m1 - w->m0 <= most * q->height && w->k1 > w->k0;
}

// Computes a part with A packed whole and B in place. The sums are those of packed panels.
static void ISA(block_placed)(const product *q, const part *w, const float *packed, const float *b, float *c)
{
	int64_t h = q->height, width = (q->m + h - 1) / h * h, step = q->b.k.d[0].off, row[PLACED_TILES * ROWS];
	ISA(expand)(&q->cm, w->m0, w->m1 - w->m0, row, 0);
	for (int64_t n0 = w->n0; n0 < w->n1; n0 += LONG_PANELS * COLS) {
		ISA(columns) cols[LONG_PANELS];
		int64_t number = 0;
		for (int64_t n = n0; n < w->n1 && number < LONG_PANELS; n += COLS)
			ISA(place)(q, n, COLS, &cols[number++]);
		for (int64_t k = w->k0; k < w->k1; k += BLOCK_K) {
			int64_t kc = w->k1 - k < BLOCK_K ? w->k1 - k : BLOCK_K;
			const float *a = packed + (k - w->k0) * width, *at = b + q->b.base + k * step + n0;
			for (int64_t p = 0; p < number; p++)
				for (int64_t m = w->m0; m < w->m1; m += h)
					ISA(compute)(ISA(placed_tiles), w->m1 - m < h ? w->m1 - m : h, &cols[p], kc, a + m * kc, h, at + p * COLS, step,
						c, row + (m - w->m0), w->accumulate || k > w->k0);
		}
	}
}

static void ISA(block_rows)(const product *q, part *w, const float *packed, const float *b, float *c, float *room)
{
	int64_t width = (q->m + q->height - 1) / q->height * q->height, wide = WIDE_PANELS * COLS;
	c += q->cbase;
	if (ISA(placed)(q, w)) {
		ISA(block_placed)(q, w, packed, b, c);
		return;
	}
	for (int64_t n0 = w->n0; n0 < w->n1; n0 += wide) {
		int64_t n1 = w->n1 - n0 < wide ? w->n1 : n0 + wide;
		ISA(columns) cols[WIDE_PANELS];
		for (int64_t n = n0; n < n1; n += COLS)
			ISA(place)(q, n, COLS, &cols[(n - n0) / COLS]);
		int64_t k = w->k0;
		do {
			int64_t kc = w->k1 - k < BLOCK_K ? w->k1 - k : BLOCK_K;
			ISA(pack_block)(q, w, n0, n1, k, kc, b, room);
			int64_t panels = (n1 - n0 + COLS - 1) / COLS;
			ISA(column_panels)(q, w, cols, panels, k, kc, packed + (k - w->k0) * width, room, c);
			k += BLOCK_K;
		} while (k < w->k1);
	}
}

// ---- few rows ----

enum { ISA(STRIP) = 512 };

// One row of y over a strip: four rows of b at a time.
static inline void ISA(axpy)(int64_t n, int64_t k, const float *a, int64_t ak, const float *b, int64_t bk, float *y)
{
	for (; k >= 4; k -= 4, a += 4 * ak, b += 4 * bk) {
		float a0 = a[0], a1 = a[ak], a2 = a[2 * ak], a3 = a[3 * ak];
		int64_t j = 0;
		for (; j + VL <= n; j += VL)
			*(vf *)(y + j) += (a0 * *(const vf *)(b + j) + a1 * *(const vf *)(b + bk + j)) +
					  (a2 * *(const vf *)(b + 2 * bk + j) + a3 * *(const vf *)(b + 3 * bk + j));
		for (; j < n; j++)
			y[j] += (a0 * b[j] + a1 * b[bk + j]) + (a2 * b[2 * bk + j] + a3 * b[3 * bk + j]);
	}
	for (; k > 0; k--, a += ak, b += bk)
		for (int64_t j = 0; j < n; j++)
			y[j] += a[0] * b[j];
}

static void ISA(axpys)(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, int64_t ak, const float *b,
	int64_t bk, float *y, int64_t ym, int64_t accumulate)
{
	for (int64_t n = n0; n < n1; n += ISA(STRIP)) {
		int64_t len = n1 - n < ISA(STRIP) ? n1 - n : ISA(STRIP);
		for (int64_t i = 0; i < m && !accumulate; i++)
			for (int64_t j = 0; j < len; j++)
				y[i * ym + n + j] = 0;
		for (int64_t p = 0; p < k; p += 8)
			for (int64_t i = 0; i < m; i++)
				ISA(axpy)(len, k - p < 8 ? k - p : 8, a + i * am + p * ak, ak, b + p * bk + n, bk, y + i * ym + n);
	}
}

static inline float ISA(hsum)(vf v)
{
	float s[VL];
	*(vf *)s = v;
	for (int h = VL / 2; h > 0; h /= 2)
		for (int i = 0; i < h; i++)
			s[i] += s[i + h];
	return s[0];
}

// The dot products of up to m <= 4 rows of a with one row of b.
#define DOT(m)                                                                                      \
	static void ISA(dot_##m)(int64_t k, const float *a, int64_t am, const float *b, float *sum) \
	{                                                                                           \
		vf s[m][4];                                                                         \
		for (int i = 0; i < m; i++)                                                         \
			for (int u = 0; u < 4; u++)                                                 \
				s[i][u] = (vf){0};                                                  \
		int64_t p = 0;                                                                      \
		for (; p + 4 * VL <= k; p += 4 * VL)                                                \
			_Pragma("GCC unroll 4") for (int u = 0; u < 4; u++)                         \
			{                                                                           \
				vf y = *(const vf *)(b + p + u * VL);                               \
				_Pragma("GCC unroll 4") for (int i = 0; i < m; i++)                 \
					s[i][u] += *(const vf *)(a + i * am + p + u * VL) * y;      \
			}                                                                           \
		for (; p + VL <= k; p += VL)                                                        \
			for (int i = 0; i < m; i++)                                                 \
				s[i][0] += *(const vf *)(a + i * am + p) * *(const vf *)(b + p);    \
		for (int i = 0; i < m; i++) {                                                       \
			sum[i] = ISA(hsum)((s[i][0] + s[i][1]) + (s[i][2] + s[i][3]));              \
			for (int64_t t = p; t < k; t++)                                             \
				sum[i] += a[i * am + t] * b[t];                                     \
		}                                                                                   \
	}
DOT(1) DOT(2) DOT(3) DOT(4)

static void ISA(dots)(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, const float *b, int64_t bn,
	float *y, int64_t ym, int64_t yn, int64_t accumulate)
{
	static void (*const dot[4])(int64_t, const float *, int64_t, const float *, float *) = {
		ISA(dot_1), ISA(dot_2), ISA(dot_3), ISA(dot_4)};
	for (int64_t n = n0; n < n1; n++) {
		float sum[4];
		dot[m - 1](k, a, am, b + n * bn, sum);
		for (int64_t i = 0; i < m; i++)
			y[i * ym + n * yn] = accumulate ? y[i * ym + n * yn] + sum[i] : sum[i];
	}
}

// ---- parts of vectors ----

#if defined(SET_AVX2)
static const int32_t ISA(first)[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#endif

// The first n floats, 1 to VL, of a vector.
static inline vf ISA(load_first)(const float *p, int64_t n)
{
#if defined(SET_AVX512)
	return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined(SET_AVX2)
	return (vf)_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(ISA(first) + 8 - n)));
#else
	vf v = {0};
	for (int64_t i = 0; i < n; i++)
		v[i] = p[i];
	return v;
#endif
}

static inline void ISA(store_first)(float *p, vf v, int64_t n)
{
#if defined(SET_AVX512)
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(SET_AVX2)
	if (n == VL) // the instruction below takes many times as long on Zen 3
		*(vf *)p = v;
	else
		_mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)(ISA(first) + 8 - n)), (__m256)v);
#else
	for (int64_t i = 0; i < n; i++)
		p[i] = v[i];
#endif
}

#include "half_body.h"
#include "direct_body.h"
#include "tiled_body.h"
#include "minimal_body.h"

static const kernels ISA(set) = {
	ROWS, COLS, VL, ISA(pack_rows), ISA(pack_cols), ISA(block_cols), ISA(block_rows), ISA(axpys), ISA(dots), ISA(convolve_windows),
	ISA(pack_panels), ISA(half_pack_panels), ISA(pack_few), ISA(correlate), ISA(correlate_floats), ISA(correlates_in_place), ISA(correlate_join), ISA(half_pack_rows), ISA(half_pack_cols),
	ISA(half_block_cols), ISA(half_block_rows), ISA(correlate_tiled), ISA(tiled_floats),
	ISA(stage_planes), ISA(convolve_minimal), ISA(convolve_few), ISA(pack_minimal), ISA(gradient_floats), ISA(minimal_correlate), ISA(add_copies),
};

#undef ROWS
#undef EACH_HEIGHT
#undef COLS
#undef TILE
#undef PREFETCH_ROWS
#undef NOTHING
#undef TILES
#undef PAIR
#undef DOT
#undef vf
#undef vu
#undef vh
#undef vi
#undef v4
