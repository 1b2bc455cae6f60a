// Convolutions with few output channels whose windows are one position apart, for one instruction set. The channels of an output do not fill a vector, but
// those of all taps do: every position of the input is multiplied with all taps, and an output is the sum of the products of its window. Lines that are stored as
// the words that tiles multiply are read in place. Included by direct_body.h.

// Adds up the products of a line's outputs, of n channels each. at has those of the first output. Outputs that are adjacent are stored as whole vectors if these
// reach no further than the next output, which overwrites the excess; the last output of a line is not.
#define GATHER(name, V)                                                                                                               \
	static inline void ISA(store_##name)(float *to, const V *v, int64_t n, int whole)                                             \
	{                                                                                                                             \
		if (whole)                                                                                                            \
			*(V *)to = *v;                                                                                                \
		else                                                                                                                  \
			UNROLL for (int i = 0; i < (int)sizeof(V) / 4; i++)                                                           \
				if (i < n)                                                                                            \
					to[i] = (*v)[i];                                                                              \
	}                                                                                                                             \
	static void ISA(name)(int64_t n, int64_t count, const float *const *at, int64_t taps, int64_t apart, float *to, int64_t step) \
	{                                                                                                                             \
		const int whole = n == sizeof(V) / 4, over = whole || step == n && 2 * n >= (int)sizeof(V) / 4;                       \
		int64_t j = 0;                                                                                                        \
		for (; j + 4 <= count; j += 4, to += 4 * step) {                                                                      \
			V a = {0}, b = {0}, c = {0}, d = {0};                                                                         \
			for (int64_t k = 0; k < taps; k++) {                                                                          \
				const float *p = at[k] + j * apart;                                                                   \
				a += *(const V *)p, b += *(const V *)(p + apart);                                                     \
				c += *(const V *)(p + 2 * apart), d += *(const V *)(p + 3 * apart);                                   \
			}                                                                                                             \
			int last = whole || over && j + 4 < count;                                                                    \
			ISA(store_##name)(to, &a, n, over), ISA(store_##name)(to + step, &b, n, over);                                \
			ISA(store_##name)(to + 2 * step, &c, n, over), ISA(store_##name)(to + 3 * step, &d, n, last);                 \
		}                                                                                                                     \
		for (; j < count; j++, to += step) {                                                                                  \
			V sum = {0};                                                                                                  \
			for (int64_t k = 0; k < taps; k++)                                                                            \
				sum += *(const V *)(at[k] + j * apart);                                                               \
			ISA(store_##name)(to, &sum, n, whole);                                                                        \
		}                                                                                                                     \
	}
GATHER(gather_4, v4)
typedef float ISA(v8) __attribute__((vector_size(32), aligned(4), may_alias));
GATHER(gather_8, ISA(v8))
#undef GATHER

// Multiplies count positions, step words apart, with the kernel of all taps, in panels.
static void ISA(spread_line)(const windowed *q, const float *x, int64_t step, int64_t count, const float *b, float *to, ISA(fetched) *f)
{
	const run all = {.n = q->s.c / UNIT(q)};
	int64_t group[GROUPS], row[ROWS], height = ISA(height)(count);
	for (int64_t i = 0; i < GROUPS; i++)
		group[i] = i * GROUP * step;
	for (int64_t i = 0; i < ROWS; i++)
		row[i] = i * q->spread;
	for (int64_t p = 0; p < q->spread; p += COLS, b += all.n * COLS)
		for (int64_t i = 0; i < count; i += height) {
			int64_t rows = count - i < height ? count - i : height;
			ISA(fetch)(f);
			ISA(tile_of)(q->half, 0, rows, q->spread - p > VL ? 2 : 1)(&all, 1, x + i * step, group, step, 1, b, COLS, to + i * q->spread + p, row, 0);
		}
}

// Where the outputs are that staged line l of image i completes, or null if the extent has none.
static inline float *ISA(completed)(const windowed *q, const window *w, const extent *e, int64_t i, int64_t l, float *y)
{
	int64_t out = l - w->first - w->r[w->runs - 1].n;
	if (out < w->h * e->j / e->parts || out >= w->h * (e->j + 1) / e->parts)
		return 0;
	return y + w->out + i * q->obatch + out * w->oline;
}

// The memory of the outputs that line l completes.
static ISA(fetched) ISA(outputs_next)(const windowed *q, const window *list, const extent *e, int64_t i, int64_t l, float *y)
{
	const float *lo = 0, *hi = 0;
	for (const window *w = list + e->w0; w < list + e->w1; w++) {
		const float *to = ISA(completed)(q, w, e, i, l, y);
		if (!to)
			continue;
		const float *end = to + w->w * w->ocolumn;
		lo = lo && lo < to ? lo : to, hi = hi > end ? hi : end;
	}
	int64_t tiles = (q->s.columns / ROWS + 1) * ((q->spread + COLS - 1) / COLS);
	return ISA(fetched_by)(tiles, lo, hi);
}

// Computes all windows of an extent. The products of the last q->ring lines are kept.
static void ISA(windows_spread)(const windowed *q, const window *list, const extent *e, const float *x, const float *b, float *y, float *room)
{
	const staging *s = &q->s;
	int64_t size = s->columns * q->spread, lo, hi;
	float *staged = room + q->ring * size + COLS;
	memset(room, 0, 4 * (q->ring * size + COLS)); // positions outside the image stay zero
	for (int64_t i = e->i0; i < e->i1; i++) {
		const float *image = ISA(element)(x, i * s->batch, s->narrow);
		for (int64_t l = e->l0; l < e->l1; l++) {
			if (ISA(inside)(s, s->y0 + l, &lo, &hi)) {
				ISA(fetched) f = ISA(outputs_next)(q, list, e, i, l, y);
				float *to = room + l % q->ring * size + lo * q->spread;
				const float *from = ISA(element)(image, (s->y0 + l) * s->sy + (s->x0 + lo) * s->sx, s->narrow);
				int64_t step = s->sx / UNIT(q);
				if (!s->narrow != !q->half) {
					if (q->half)
						ISA(stage_halves)(s, image, s->y0 + l, (half *)(void *)staged, 0);
					else
						ISA(stage_line)(s, image, s->y0 + l, staged);
					step = s->c / UNIT(q), from = staged + lo * step;
				}
				ISA(spread_line)(q, from, step, hi - lo, b, to, &f);
			}
			for (const window *w = list + e->w0; w < list + e->w1; w++) {
				float *to = ISA(completed)(q, w, e, i, l, y);
				const float *at[MAX_RUNS];
				int64_t taps = 0, first = l - w->r[w->runs - 1].n;
				for (int64_t k = 0; k < w->runs; k++) {
					int64_t from = first + w->r[k].n;
					if (s->y0 + from >= 0 && s->y0 + from < s->h)
						at[taps++] = room + from % q->ring * size + w->r[k].a;
				}
				if (to)
					(q->n > 4 ? ISA(gather_8) : ISA(gather_4))(q->n, w->w, at, taps, q->spread, to, w->ocolumn);
			}
		}
	}
}
