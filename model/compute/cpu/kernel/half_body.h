// Packing of bfloat16 operands and the blocks of their products, for one instruction set and any tiles. See half.h.
#define vu ISA(vu)
#define vh ISA(vh)
typedef uint32_t vu __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef uint16_t vh __attribute__((vector_size(2 * VL), aligned(2), may_alias));

static inline int64_t ISA(whole_steps)(int64_t k) { return (k + HALF_STEP - 1) / HALF_STEP * HALF_STEP; }

static inline void ISA(narrow)(const float *s, int64_t n, half *to)
{
	int64_t i = 0;
	for (; i + VL <= n; i += VL)
		*(vh *)(to + i) = __builtin_convertvector(*(const vu *)(s + i) >> 16, vh);
	for (; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, s + i, 4);
		to[i] = bits >> 16;
	}
}

// Writes n values of one row of a panel of A from position k on; zeros where s is null. step is the distance of steps.
static inline void ISA(narrow_row)(const float *s, int64_t n, half *row, int64_t step, int64_t k)
{
	while (n > 0) {
		int64_t i = k % HALF_STEP, len = HALF_STEP - i < n ? HALF_STEP - i : n;
		half *at = row + k / HALF_STEP * step + i;
		if (!s)
			memset(at, 0, len * sizeof *at);
		else if (len == HALF_STEP)
			ISA(narrow)(s, HALF_STEP, at);
		else
			ISA(narrow)(s, len, at);
		s = s ? s + len : 0, k += len, n -= len;
	}
}

// Writes a run whose k is adjacent in memory, at position k of a panel of A.
static void ISA(narrow_run)(ISA(panel) *p, half *to, int64_t k)
{
	int in = p->o->bounded ? ISA(bounds)(p) : ISA(ALL_IN);
	int64_t step = p->width * HALF_STEP, whole = in == ISA(ALL_IN) && k % HALF_STEP == 0 ? p->run / HALF_STEP : 0;
	for (int64_t r = 0; r < p->rows; r++) {
		half *row = to + r * HALF_STEP;
		const float *s = p->src + p->koff + p->off[r];
		if (in == ISA(ALL_IN)) {
			half *at = row + k / HALF_STEP * step;
			for (int64_t i = 0; i < whole; i++, at += step)
				ISA(narrow)(s + i * HALF_STEP, HALF_STEP, at);
			ISA(narrow_row)(s + whole * HALF_STEP, p->run - whole * HALF_STEP, row, step, k + whole * HALF_STEP);
			continue;
		}
		int64_t lo = in == ISA(SOME_IN) ? p->lo[r] : 0, hi = in == ISA(SOME_IN) ? p->hi[r] : 0;
		ISA(narrow_row)(0, lo, row, step, k);
		if (hi > lo)
			ISA(narrow_row)(s + lo, hi - lo, row, step, k + lo);
		ISA(narrow_row)(0, p->run - hi, row, step, k + hi);
	}
}

// Packs rows of A whose k is adjacent in memory.
static void ISA(half_pack_adjacent)(const operand *o, const float *src, int64_t x0, int64_t rows, int64_t height, int64_t k0, int64_t n,
	half *to)
{
	int64_t at[MAX_DIGITS], k = 0, whole = ISA(whole_steps)(n), step = height * HALF_STEP;
	ISA(panel) p;
	ISA(open_panel)(&p, o, src, x0, rows, height);
	for (ISA(seek)(o, k0, at); k < n; k += p.run) {
		ISA(open_run)(&p, at, n - k);
		ISA(narrow_run)(&p, to, k);
		ISA(close_run)(&p, at);
	}
	for (int64_t r = 0; r < height; r++) {
		int64_t from = r < rows ? n : 0;
		ISA(narrow_row)(0, whole - from, to + r * HALF_STEP, step, from);
	}
}

// Makes pairs of two rows of width values, the first of a pair in the lower half; a second row of null is zeros.
static inline void ISA(pair_rows)(const float *first, const float *second, int64_t width, uint32_t *to)
{
	int64_t j = 0;
	for (; j + VL <= width; j += VL) {
		vu pair = *(const vu *)(first + j) >> 16;
		if (second)
			pair |= *(const vu *)(second + j) & 0xffff0000u;
		*(vu *)(to + j) = pair;
	}
	for (; j < width; j++) {
		uint32_t low, high = 0;
		memcpy(&low, first + j, 4);
		if (second)
			memcpy(&high, second + j, 4);
		to[j] = low >> 16 | (high & 0xffff0000u);
	}
}

// Makes the pairs of one step of rows [k][width], of which k are left: [HALF_PAIRS][width].
static void ISA(pair_step)(const float *s, int64_t k, int64_t width, uint32_t *to)
{
	for (int64_t p = 0; p < HALF_PAIRS; p++, to += width, s += 2 * width) {
		if (2 * p < k)
			ISA(pair_rows)(s, 2 * p + 1 < k ? s + width : 0, width, to);
		else
			memset(to, 0, width * sizeof *to);
	}
}

// Packs one panel of A.
static void ISA(half_pack_a)(const operand *o, const float *src, int64_t x0, int64_t rows, int64_t height, int64_t k0, int64_t n, half *to)
{
	const digit *in = &o->k.d[o->k.digits - 1];
	if (n == 0)
		return;
	if (in->off == 1 && in->n >= VL) {
		ISA(half_pack_adjacent)(o, src, x0, rows, height, k0, n, to);
		return;
	}
	float columns[BLOCK_K * HALF_ROWS], pairs[HALF_PAIRS * HALF_ROWS];
	ISA(pack)(o, src, x0, rows, height, k0, n, columns);
	for (int64_t k = 0; k < n; k += HALF_STEP, to += height * HALF_STEP) {
		ISA(pair_step)(columns + k * height, n - k, height, (uint32_t *)(void *)pairs);
		for (int64_t p = 0; p < HALF_PAIRS; p += 4) {
			const float *row[4] = {pairs + p * height, pairs + (p + 1) * height, pairs + (p + 2) * height, pairs + (p + 3) * height};
			ISA(transpose4)(row, height, (float *)(void *)(to + 2 * p), HALF_PAIRS);
		}
	}
}

// Packs one panel of B.
static void ISA(half_pack_b)(const operand *o, const float *src, int64_t x0, int64_t cols, int64_t k0, int64_t n, half *to)
{
	float rows[BLOCK_K * HALF_COLS];
	ISA(pack)(o, src, x0, cols, HALF_COLS, k0, n, rows);
	for (int64_t k = 0; k < n; k += HALF_STEP, to += HALF_COLS * HALF_STEP)
		ISA(pair_step)(rows + k * HALF_COLS, n - k, HALF_COLS, (uint32_t *)(void *)to);
}

static void ISA(half_pack_rows)(const product *q, const float *a, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	for (int64_t k = k0; k < k1; k += BLOCK_K) {
		int64_t kc = k1 - k < BLOCK_K ? k1 - k : BLOCK_K;
		for (int64_t p = p0; p < p1; p++) {
			int64_t h = q->height, rows = q->m - p * h < h ? q->m - p * h : h;
			ISA(half_pack_a)(&q->a, a, p * h, rows, h, k, kc, to + (k - k0) * panels * h + p * h * ISA(whole_steps)(kc));
		}
	}
}

static void ISA(half_pack_cols)(const product *q, const float *b, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	for (int64_t k = k0; k < k1; k += BLOCK_K) {
		int64_t kc = k1 - k < BLOCK_K ? k1 - k : BLOCK_K;
		for (int64_t p = p0; p < p1; p++) {
			int64_t n = p * HALF_COLS, cols = q->n - n < HALF_COLS ? q->n - n : HALF_COLS;
			ISA(half_pack_b)(&q->b, b, n, cols, k, kc, to + (k - k0) * panels * HALF_COLS + n * ISA(whole_steps)(kc));
		}
	}
}

// Writes a block of sums to C, or adds it.
static void ISA(half_store)(const float *sums, int64_t rows, const ISA(columns) *n, float *c, const int64_t *row, int add)
{
	for (int64_t i = 0; i < rows; i++, sums += HALF_COLS) {
		float *to = c + row[i];
		int64_t j = 0;
		if (n->contiguous)
			for (to += n->off[0]; j + VL <= n->cols; j += VL) {
				vf v = *(const vf *)(sums + j);
				if (add)
					v += *(vf *)(to + j);
				*(vf *)(to + j) = v;
			}
		for (; j < n->cols; j++) {
			float *at = n->contiguous ? to + j : to + n->off[j];
			*at = add ? *at + sums[j] : sums[j];
		}
	}
}

// Sweeps the panels of rows that are packed at a over one panel of columns, for kc values of the contraction.
static void ISA(half_sweep)(const product *q, const half_tiles *t, int64_t m0, int64_t m1, const ISA(columns) *n, int64_t kc, const half *a,
	const half *b, float *c, const int64_t *row, int add)
{
	float sums[HALF_ROWS * HALF_COLS] __attribute__((aligned(64)));
	int64_t h = q->height, whole = ISA(whole_steps)(kc);
	for (int64_t m = m0; m < m1; m += h, a += h * whole, row += h) {
		int64_t rows = m1 - m < h ? m1 - m : h;
		t->tile((kc + 1) / 2, a, h, b, sums, rows, n->cols);
		ISA(half_store)(sums, rows, n, c, row, add);
	}
}

static void ISA(half_block_cols)(const product *q, part *w, const half_tiles *t, const float *a, const half *packed, float *c, half *room)
{
	int64_t panels = (q->n + HALF_COLS - 1) / HALF_COLS, row[PART_ROWS], h = q->height, most = PART_ROWS / h * h;
	c += q->cbase;
	for (int64_t m0 = w->m0; m0 < w->m1; m0 += most) {
		int64_t m1 = w->m1 - m0 < most ? w->m1 : m0 + most;
		ISA(expand)(&q->cm, m0, m1 - m0, row, 0);
		int64_t k = w->k0;
		do {
			int64_t kc = w->k1 - k < BLOCK_K ? w->k1 - k : BLOCK_K, whole = ISA(whole_steps)(kc);
			int64_t began = begin(w);
			for (int64_t m = m0; m < m1; m += h)
				ISA(half_pack_a)(&q->a, a, m, m1 - m < h ? m1 - m : h, h, k, kc, room + (m - m0) * whole);
			end(w, began);
			for (int64_t n = w->n0; n < w->n1; n += HALF_COLS) {
				ISA(columns) cols;
				ISA(place)(q, n, HALF_COLS, &cols);
				const half *at = packed + (k - w->k0) * panels * HALF_COLS + n * whole;
				ISA(half_sweep)(q, t, m0, m1, &cols, kc, room, at, c, row, w->accumulate || k > w->k0);
			}
			k += BLOCK_K;
		} while (k < w->k1);
	}
}

static void ISA(half_block_rows)(const product *q, part *w, const half_tiles *t, const half *packed, const float *b, float *c, half *room)
{
	int64_t h = q->height, width = (q->m + h - 1) / h * h, most = PART_ROWS / h * h, row[PART_ROWS];
	c += q->cbase;
	for (int64_t n = w->n0; n < w->n1; n += HALF_COLS) {
		ISA(columns) cols;
		ISA(place)(q, n, HALF_COLS, &cols);
		int64_t k = w->k0;
		do {
			int64_t kc = w->k1 - k < BLOCK_K ? w->k1 - k : BLOCK_K, whole = ISA(whole_steps)(kc);
			int64_t began = begin(w);
			ISA(half_pack_b)(&q->b, b, n, cols.cols, k, kc, room);
			end(w, began);
			for (int64_t m0 = w->m0; m0 < w->m1; m0 += most) {
				int64_t m1 = w->m1 - m0 < most ? w->m1 : m0 + most;
				ISA(expand)(&q->cm, m0, m1 - m0, row, 0);
				const half *at = packed + (k - w->k0) * width + m0 * whole;
				ISA(half_sweep)(q, t, m0, m1, &cols, kc, at, room, c, row, w->accumulate || k > w->k0);
			}
			k += BLOCK_K;
		} while (k < w->k1);
	}
}

#undef vu
#undef vh
