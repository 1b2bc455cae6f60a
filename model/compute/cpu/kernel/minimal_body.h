// Convolutions by minimal filtering for one instruction set; see direct.h.

// acc[i][j] = sum over runs and t of a[i * ar + r->a + t] b[r->b + t * COLS + j*VL..], plus more and also, which have a tile's layout, where they are
// not null. Added in registers, they cost 2 to 5% less time than with direct tiles that store their sums.
#define ADJACENT(i) a + i * ar + r->a
#define ADD(rows, vectors, f)                                                         \
	if (f)                                                                        \
		UNROLL for (int i = 0; i < rows; i++)                                 \
			UNROLL for (int j = 0; j < vectors; j++)                      \
				acc[i][j] += *(const vf *)(f + i * COLS + j * VL);
#define MINIMAL_TILE(rows, vectors)                                                                                       \
	static void ISA(minimal_##rows##_##vectors)(const run *r, int64_t runs, const float *a, int64_t ar, const float *b, \
		const float *more, const float *also, float *c, const int64_t *row)                                             \
	{                                                                                                                   \
		const int64_t ak = 1, bk = COLS;                                                                            \
		RUNS_SUM(rows, vectors, ADJACENT, NO_FETCH, vf, FLOATS, TIMES_FLOAT)                                        \
		ADD(rows, vectors, more)                                                                                    \
		ADD(rows, vectors, also)                                                                                       \
		UNROLL for (int i = 0; i < rows; i++)                                                                       \
			UNROLL for (int j = 0; j < vectors; j++)                                                            \
				*(vf *)(c + row[i] + j * VL) = acc[i][j];                                                   \
	}
#define MINIMALS(rows) MINIMAL_TILE(rows, 1) MINIMAL_TILE(rows, 2)
EACH_HEIGHT(MINIMALS)

typedef void (*ISA(minimal_tile))(const run *, int64_t, const float *, int64_t, const float *, const float *, const float *, float *, const int64_t *);
#define BOTH(rows) {ISA(minimal_##rows##_1), ISA(minimal_##rows##_2)},
static const ISA(minimal_tile) ISA(minimal_tiles)[ROWS][2] = {EACH_HEIGHT(BOTH)};

// to = x - y for n floats.
static inline void ISA(differ)(const float *x, const float *y, int64_t n, float *to)
{
	int64_t i = 0;
	for (; i + VL <= n; i += VL)
		*(vf *)(to + i) = *(const vf *)(x + i) - *(const vf *)(y + i);
	if (i < n)
		ISA(store_first)(to + i, ISA(load_first)(x + i, n - i) - ISA(load_first)(y + i, n - i), n - i);
}

// Stages line y of an image, or its differences from line y + ymove.
static void ISA(plane_line)(const minimal *q, const float *x, int64_t y, int64_t differs, float *to)
{
	const staging *s = &q->s;
	ISA(stage_line)(s, x, y, to);
	int64_t lo, hi;
	if (!differs || !ISA(inside)(s, y + q->ymove, &lo, &hi))
		return;
	const float *other = x + (y + q->ymove) * s->sy + (s->x0 + lo) * s->c;
	ISA(differ)(to + lo * s->c, other, (hi - lo) * s->c, to + lo * s->c);
}

// Stages the planes of the extent's tiles: for each plane, a row of channels for each tile.
static void ISA(stage_planes)(const minimal *q, const extent *e, int64_t i0, int64_t i1, const float *x, float *room, float *line)
{
	int64_t c = q->s.c, lines = e->l1 - e->l0, size = (e->i1 - e->i0) * lines * q->w * c;
	for (int64_t i = i0; i < i1; i++)
		for (int64_t a = 0; a < q->yplanes; a++)
			for (int64_t l = e->l0; l < e->l1; l++) {
				ISA(plane_line)(q, x + i * q->s.batch, q->y[a].first + 2 * q->ymove * l, q->y[a].differs, line);
				for (int64_t b = 0; b < q->xplanes; b++) {
					float *to = room + (a * q->xplanes + b) * size + ((i - e->i0) * lines + l - e->l0) * q->w * c;
					const float *from = line + (q->x[b].first - q->s.x0) * c;
					for (int64_t j = 0; j < q->w; j++, to += c, from += 2 * q->xmove * c)
						if (q->x[b].differs)
							ISA(differ)(from, from + q->xmove * c, c, to);
						else
							memcpy(to, from, 4 * c);
				}
			}
}

// Computes one panel of columns of a class.
static void ISA(minimal_panel)(const minimal *q, const minimal_class *w, const extent *e, int64_t p, const float *b, float *y, const float *room)
{
	int64_t c = q->s.c, lines = e->l1 - e->l0, rows = (e->i1 - e->i0) * lines * q->w;
	int64_t cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS, at[ROWS], runs = q->ypairs * q->xpairs;
	run r[POINTS][MAX_PAIRS * MAX_PAIRS];
	for (int64_t u = 0; u < POINTS; u++)
		for (int64_t ty = 0; ty < q->ypairs; ty++)
			for (int64_t tx = 0; tx < q->xpairs; tx++) {
				int64_t t = ty * q->xpairs + tx, z = w->y[u / FACTORS][ty] * q->xplanes + w->x[u % FACTORS][tx];
				r[u][t] = (run){.a = z * rows * c, .b = (u * runs + t) * c * COLS, .n = c};
			}
	b += w->b + p * w->panel;
	y += w->out + p * COLS;
	for (int64_t i = 0; i < rows; i += ROWS) {
		int64_t height = rows - i < ROWS ? rows - i : ROWS;
		for (int64_t j = 0; j < height; j++) {
			int64_t line = (i + j) / q->w, column = (i + j) % q->w;
			at[j] = (e->i0 + line / lines) * q->obatch + 2 * (e->l0 + line % lines) * q->oline + 2 * column * q->ocolumn;
		}
		ISA(minimal_tile) tile = ISA(minimal_tiles)[height - 1][cols > VL];
		const float *x = room + i * c;
		float __attribute__((aligned(64))) middle[ROWS * COLS], line[2][ROWS * COLS], column[2][ROWS * COLS];
		tile(r[0], runs, x, c, b, 0, 0, middle, ISA(flat));
		for (int64_t k = 0; k < 2; k++) {
			tile(r[(LOW_TAP + k) * FACTORS], runs, x, c, b, middle, 0, line[k], ISA(flat));
			tile(r[LOW_TAP + k], runs, x, c, b, 0, 0, column[k], ISA(flat));
		}
		for (int64_t k = 0; k < 4; k++)
			tile(r[(LOW_TAP + k / 2) * FACTORS + LOW_TAP + k % 2], runs, x, c, b, line[k / 2], column[k % 2],
				y + k / 2 * q->oline + k % 2 * q->ocolumn, at);
	}
}

static void ISA(convolve_minimal)(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y)
{
	for (int64_t i = e->w0; i < e->w1; i++)
		for (int64_t p = e->p0; p < e->p1; p++)
			ISA(minimal_panel)(q, &w[i], e, p, b, y, planes);
}

// Packs a panel of the factors of each point, a block of channels of a pair of taps at a time, whose four taps are packed in room.
static void ISA(pack_minimal)(const minimal *q, const product *kernel, const float *b, float *to, int64_t p, float *room)
{
	int64_t c = q->s.c, all = q->k * COLS, cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS, xtaps = 2 * q->xpairs;
	for (int64_t t = 0; t < q->ypairs * q->xpairs; t++)
		for (int64_t k = 0; k < c; k += BLOCK_K) {
			int64_t kc = c - k < BLOCK_K ? c - k : BLOCK_K, size = kc * COLS;
			for (int64_t j = 0; j < 4; j++) {
				int64_t tap = (t / q->xpairs + j / 2 * q->ypairs) * xtaps + t % q->xpairs + j % 2 * q->xpairs;
				ISA(pack)(&kernel->b, b, p * COLS, cols, COLS, tap * c + k, kc, room + j * size);
			}
			float *o = to + (t * c + k) * COLS;
			for (int64_t i = 0; i < size; i += VL, o += VL) {
				vf s = *(const vf *)(room + i), v = *(const vf *)(room + size + i);
				vf u = *(const vf *)(room + 2 * size + i), w = *(const vf *)(room + 3 * size + i);
				*(vf *)o = (s + v) + (u + w), *(vf *)(o + all) = s + u, *(vf *)(o + 2 * all) = -(v + w);
				*(vf *)(o + 3 * all) = s + v, *(vf *)(o + 4 * all) = s, *(vf *)(o + 5 * all) = -v;
				*(vf *)(o + 6 * all) = -(u + w), *(vf *)(o + 7 * all) = -u, *(vf *)(o + 8 * all) = w;
			}
		}
}

// ---- gradients for kernels ----

// Writes n channels of a factor, which is at so many corners, to panels of width channels, panel floats apart, in whole vectors.
#define FACTOR_ROW(corners, SUM)                                                                                                      \
	static void ISA(factor_row_##corners)(const float *const *corner, float sign, int64_t n, int64_t width, int64_t panel, float *to) \
	{                                                                                                                             \
		for (int64_t m = 0; m < n; m += width, to += panel)                                                                   \
			for (int64_t i = 0; i < width && m + i < n; i += VL) {                                                        \
				vf v[corners];                                                                                        \
				UNROLL for (int j = 0; j < corners; j++)                                                              \
					v[j] = n - m - i >= VL ? *(const vf *)(corner[j] + m + i) : ISA(load_first)(corner[j] + m + i, n - m - i); \
				*(vf *)(to + i) = SUM;                                                                                \
			}                                                                                                             \
	}
FACTOR_ROW(1, v[0])
FACTOR_ROW(2, v[0] + sign * v[1])
FACTOR_ROW(4, (v[0] + sign * v[1]) + sign * (v[2] + sign * v[3]))

// Stages a factor of tiles [t0, t1) and channels [n0, n1) in panels, whose tiles are pitch floats apart. zeros holds as many zeros as there are channels.
static void ISA(stage_factor)(const minimal_gradient *q, const factored *o, const float *x, int64_t t0, int64_t t1, int64_t n0, int64_t n1,
	const int64_t *factor, const int64_t *pair, int64_t width, int64_t pitch, int64_t panel, const float *zeros, float *to)
{
	// A factor's corners are those of one line or two, and of one position of each or two.
	int64_t dy = o->other[0][factor[0]], dx = o->other[1][factor[1]], lines = dy ? 2 : 1, positions = dx ? 2 : 1;
	for (int64_t t = t0; t < t1;) {
		int64_t l = t / q->w, j = t % q->w, end = t1 - t < q->w - j ? j + t1 - t : q->w, y = o->first[0][factor[0]][pair[0]] + l % q->h * o->step[0];
		const float *image = x + l / q->h * o->batch + n0;
		for (t += end - j; j < end; j++, to += pitch) {
			int64_t z = o->first[1][factor[1]][pair[1]] + j * o->step[1], corners = 0;
			const float *corner[4];
			for (int64_t i = 0; i < lines; i++)
				for (int64_t k = 0; k < positions; k++) {
					int64_t line = y + i * dy, at = z + k * dx;
					int in = line >= 0 && line < o->extent[0] && at >= 0 && at < o->extent[1];
					corner[corners++] = in ? image + line * o->stride[0] + at * o->stride[1] : zeros;
				}
			(corners == 4 ? ISA(factor_row_4) : corners == 2 ? ISA(factor_row_2) : ISA(factor_row_1))(corner, o->sign, n1 - n0, width, panel, to);
		}
	}
}

// The layout of what a part stages: the operand with the rows of tiles of the result as one panel, whose pitch spreads it over the sets of a cache, and
// the one with their columns in panels.
typedef struct {
	int64_t rows, cols, height, tiles, pitch, cpanel, zeros;
} ISA(gradient_layout);

static ISA(gradient_layout) ISA(gradient_layout_of)(const minimal_gradient *q, const gradient_part *p)
{
	int64_t i = p->i1 - p->i0, j = p->j1 - p->j0, tiles = p->t1 - p->t0 < TILES ? p->t1 - p->t0 : TILES;
	ISA(gradient_layout) l = {.rows = q->swapped ? j : i, .cols = q->swapped ? i : j, .tiles = tiles};
	l.height = ISA(height)(l.rows);
	l.pitch = ISA(aligned)(l.rows) + 4, l.cpanel = tiles * COLS, l.zeros = ISA(aligned)(i > j ? i : j);
	return l;
}

static int64_t ISA(gradient_floats)(const minimal_gradient *q, const gradient_part *p)
{
	ISA(gradient_layout) l = ISA(gradient_layout_of)(q, p);
	return l.zeros + ISA(aligned)(l.tiles * l.pitch + VL) + (l.cols + COLS - 1) / COLS * l.cpanel;
}

// Adds the products of staged factors to the taps that contain them.
static void ISA(gradient_products)(const minimal_gradient *q, const ISA(gradient_layout) *l, int64_t tiles, const int64_t *factor, float *y, int add,
	const float *rows, const float *cols)
{
	const run r = {0, 0, tiles, 0, 0, 0};
	for (int64_t j = 0; j < l->cols; j += COLS)
		for (int64_t i = 0; i < l->rows; i += l->height) {
			int64_t height = l->rows - i < l->height ? l->rows - i : l->height, width = l->cols - j < COLS ? l->cols - j : COLS;
			const float *a = rows + i, *b = cols + j / COLS * l->cpanel;
			float __attribute__((aligned(64))) sum[ROWS * COLS];
			ISA(correlation_tile)(0, &r, 1, a, height, l->pitch, b, COLS, COLS, sum, COLS, 0);
			for (int64_t dy = factor[0] == HIGH_TAP; dy <= (factor[0] != LOW_TAP); dy++)
				for (int64_t dx = factor[1] == HIGH_TAP; dx <= (factor[1] != LOW_TAP); dx++) {
					float *to = y + dy * q->apart[0] + dx * q->apart[1] + i * q->srow + j;
					for (int64_t k = 0; k < height; k++)
						ISA(store_row)(to + k * q->srow, sum + k * COLS, width, add);
				}
		}
}

static void ISA(minimal_correlate)(const minimal_gradient *q, const gradient_part *p, const float *x, const float *v, float *y, float *room)
{
	ISA(gradient_layout) l = ISA(gradient_layout_of)(q, p);
	float *rows = room + l.zeros, *cols = rows + ISA(aligned)(l.tiles * l.pitch + VL);
	memset(room, 0, 4 * l.zeros);
	y += q->swapped ? p->j0 * q->srow + p->i0 : p->i0 * q->srow + p->j0;
	for (int64_t t = p->t0; t < p->t1; t += TILES) {
		int64_t end = t + TILES < p->t1 ? t + TILES : p->t1;
		for (int64_t u = 0; u < POINTS; u++) {
			const int64_t factor[2] = {u / FACTORS, u % FACTORS}, none[2] = {0, 0};
			ISA(stage_factor)(q, &q->v, v, t, end, p->j0, p->j1, factor, none, q->swapped ? l.rows : COLS, q->swapped ? l.pitch : COLS, l.cpanel,
				room, q->swapped ? rows : cols);
			for (int64_t ty = 0; ty < q->pairs[0]; ty++)
				for (int64_t tx = 0; tx < q->pairs[1]; tx++) {
					const int64_t pair[2] = {ty, tx};
					ISA(stage_factor)(q, &q->x, x, t, end, p->i0, p->i1, factor, pair, q->swapped ? COLS : l.rows, q->swapped ? COLS : l.pitch, l.cpanel,
						room, q->swapped ? cols : rows);
					ISA(gradient_products)(q, &l, end - t, factor, y + ty * q->tap[0] + tx * q->tap[1], t > p->t0 || u > 0, rows, cols);
				}
		}
	}
}

#undef GROUP
#undef RUNS_SUM
#undef NO_FETCH
#undef FLOATS
#undef TIMES_FLOAT
#undef ADJACENT
#undef ADD
#undef MINIMAL_TILE
#undef MINIMALS
#undef BOTH
#undef FACTOR_ROW
