// Packing of runs of one type of elements, ELEMENT, which become floats: WHOLE reads a vector of them, FOUR reads four, ONE reads one. READ(name)
// adds the type's suffix to a name. Included by product_body.h.

// The start of a row's run.
static inline const ELEMENT *READ(run_of)(const ISA(panel) *p, int64_t r) { return (const ELEMENT *)p->src + p->koff + p->off[r]; }

#define COPY_ROWS(LEN)                                                                       \
	for (int64_t t = 0; t < n; t++, s += step, to += width)                              \
		for (int j = 0; j < (LEN); j += 4)                                           \
			*(v4 *)(to + j) = FOUR(s + j);

// Copies len adjacent elements for each of n values of k.
static inline void READ(copy_rows)(float *to, const ELEMENT *s, int64_t step, int64_t n, int64_t len, int64_t width)
{
	if (len == COLS) {
		for (int64_t t = 0; t < n; t++, s += step, to += width) {
			*(vf *)to = WHOLE(s);
			*(vf *)(to + VL) = WHOLE(s + VL);
		}
		return;
	}
	switch (len) {
	case 4: COPY_ROWS(4) return;
	case 8: COPY_ROWS(8) return;
	case 12: COPY_ROWS(12) return;
	}
	for (int64_t t = 0; t < n; t++, s += step, to += width) {
		int64_t j = 0;
		for (; j + 4 <= len; j += 4)
			*(v4 *)(to + j) = FOUR(s + j);
		for (; j < len; j++)
			to[j] = ONE(s + j);
	}
}

// Writes a run in segments of rows that are adjacent in memory and share their interval.
static void READ(pack_segments)(ISA(panel) *p, float *to)
{
	int64_t step = p->o->k.d[p->o->k.digits - 1].off, w = p->width;
	for (int64_t r = 0; r < p->rows;) {
		int64_t e = r + 1;
		while (e < p->rows && p->off[e] == p->off[e - 1] + 1 && p->lo[e] == p->lo[r] && p->hi[e] == p->hi[r])
			e++;
		int64_t lo = p->lo[r], hi = p->hi[r];
		ISA(zero_rows)(to + r, lo, e - r, w);
		if (hi > lo)
			READ(copy_rows)(to + lo * w + r, READ(run_of)(p, r) + lo * step, step, hi - lo, e - r, w);
		ISA(zero_rows)(to + hi * w + r, p->run - hi, e - r, w);
		r = e;
	}
	if (p->rows < w)
		ISA(zero_rows)(to + p->rows, p->run, w - p->rows, w);
}

// Transposes 4 rows of n elements into columns of width w.
static inline void READ(transpose4)(const ELEMENT *const *row, int64_t n, float *to, int64_t w)
{
	const ELEMENT *a = row[0], *b = row[1], *c = row[2], *d = row[3];
	int64_t t = 0;
	for (; t + 4 <= n; t += 4) {
		v4 A = FOUR(a + t), B = FOUR(b + t), C = FOUR(c + t), D = FOUR(d + t);
		v4 e = __builtin_shufflevector(A, B, 0, 4, 1, 5), f = __builtin_shufflevector(C, D, 0, 4, 1, 5);
		v4 g = __builtin_shufflevector(A, B, 2, 6, 3, 7), h = __builtin_shufflevector(C, D, 2, 6, 3, 7);
		float *at = to + t * w;
		*(v4 *)at = __builtin_shufflevector(e, f, 0, 1, 4, 5);
		*(v4 *)(at + w) = __builtin_shufflevector(e, f, 2, 3, 6, 7);
		*(v4 *)(at + 2 * w) = __builtin_shufflevector(g, h, 0, 1, 4, 5);
		*(v4 *)(at + 3 * w) = __builtin_shufflevector(g, h, 2, 3, 6, 7);
	}
	for (; t < n; t++) {
		float *at = to + t * w;
		at[0] = ONE(a + t), at[1] = ONE(b + t), at[2] = ONE(c + t), at[3] = ONE(d + t);
	}
}

// Writes a run whose k is adjacent in memory: four rows at a time, with zeros for rows outside the bounds.
static void READ(pack_transposed)(ISA(panel) *p, float *to)
{
	int64_t w = p->width, n = p->run;
	for (int64_t r = 0; r < w; r += 4) {
		const ELEMENT *row[4];
		int64_t in = w - r < 4 ? w - r : 4;
		for (int64_t i = 0; i < 4; i++) {
			int64_t q = r + i;
			int whole = q < p->rows && p->lo[q] == 0 && p->hi[q] == n;
			row[i] = whole ? READ(run_of)(p, q) : (const ELEMENT *)ISA(zeros);
		}
		if (in == 4)
			READ(transpose4)(row, n, to + r, w);
		else
			for (int64_t i = 0; i < in; i++)
				for (int64_t t = 0; t < n; t++)
					to[t * w + r + i] = ONE(row[i] + t);
	}
	for (int64_t r = 0; r < p->rows; r++) {
		if (p->hi[r] == p->lo[r] || (p->lo[r] == 0 && p->hi[r] == n))
			continue;
		const ELEMENT *s = READ(run_of)(p, r);
		for (int64_t t = p->lo[r]; t < p->hi[r]; t++)
			to[t * w + r] = ONE(s + t);
	}
}

static inline void READ(pack_run)(ISA(panel) *p, float *to)
{
	int in = p->o->bounded ? ISA(bounds)(p) : ISA(ALL_IN);
	if (in == ISA(ALL_OUT)) {
		ISA(zero_rows)(to, 1, p->run * p->width, 0);
		return;
	}
	if (in == ISA(ALL_IN) && p->contiguous && p->rows == p->width) {
		READ(copy_rows)(to, READ(run_of)(p, 0), p->in->off, p->run, p->width, p->width);
		return;
	}
	if (in == ISA(ALL_IN))
		for (int64_t r = 0; r < p->rows; r++)
			p->lo[r] = 0, p->hi[r] = p->run;
	if (p->in->off == 1 && !p->contiguous)
		READ(pack_transposed)(p, to);
	else
		READ(pack_segments)(p, to);
}

#undef READ
#undef ELEMENT
#undef WHOLE
#undef FOUR
#undef ONE
#undef COPY_ROWS
