// Correlations in tiles of 16 x 16 sums, for one instruction set. Included after direct_body.h; see correlated in direct.h.
//
// Both operands are staged for some positions at a time: one as the rows of tiles, [panel of 16][step][16 rows][16 pairs of positions], the
// other one as their columns, [panel of 32][pair of positions][32 columns]. Positions that follow each other in the sum are those of a line of v in each of
// some images, then those of its next line. Those of x are staged for each tap; taps that are a multiple of apart lines from each other read the same ones, some
// lines further on, so that these are staged once if a line of each of these images fills whole steps.

enum { ISA(STAGED) = 1024 };

// The part of the images that is staged at a time, and where.
typedef struct {
	int64_t images, lines, steps; // lines of each image
	int64_t together;             // taps whose positions are staged once, at most
	int64_t rows, cols;           // channels that are rows and columns of tiles
	int64_t row, col;             // words of a panel of rows and of columns
	int64_t a, b;                 // words of all panels, of one part
	int64_t zeros;                // words of a position outside an image
} ISA(tiled);

static ISA(tiled) ISA(tiled_of)(const correlated *q, const correlation_part *p)
{
	int64_t n = p->n1 - p->n0;
	ISA(tiled) t = {.rows = q->swapped ? n : q->s.c, .cols = q->swapped ? q->s.c : n, .zeros = q->s.c > n ? q->s.c : n};
	t.lines = q->h * q->w <= ISA(STAGED) ? q->h : ISA(STAGED) / q->w;
	t.images = t.lines == q->h ? ISA(STAGED) / (q->h * q->w) : 1;
	t.images = t.images < p->i1 - p->i0 ? t.images : p->i1 - p->i0;
	t.steps = (t.images * t.lines * q->w + HALF_STEP - 1) / HALF_STEP;
	int64_t together = (q->oh + q->apart - 1) / q->apart, fit = 1 + ISA(STAGED) / (t.images * q->w);
	t.together = t.images * q->w % HALF_STEP ? 1 : together < fit ? together : fit;
	int64_t x = t.steps + (t.together - 1) * t.images * q->w / HALF_STEP;
	t.row = (q->swapped ? t.steps : x) * ISA(BLOCK);
	t.col = (q->swapped ? x : t.steps) * HALF_PAIRS * ISA(WIDE) + 16; // so that panels do not share sets of the L1 cache
	t.a = (t.rows + ISA(SIDE) - 1) / ISA(SIDE) * t.row;
	t.b = (t.cols + ISA(WIDE) - 1) / ISA(WIDE) * t.col;
	return t;
}

static int64_t ISA(tiled_floats)(const correlated *q, const correlation_part *p)
{
	ISA(tiled) t = ISA(tiled_of)(q, p);
	return q->parts * (t.a + t.b) + t.zeros;
}

// The output line of tap u, and how many taps from it on read its lines of x: taps are in the order of the lines of x that they have in common.
static int64_t ISA(tap_line)(const correlated *q, int64_t u, int64_t *n)
{
	for (int64_t o = 0;; o++) {
		*n = (q->oh - o + q->apart - 1) / q->apart;
		if (u < *n) {
			*n -= u;
			return o + u * q->apart;
		}
		u -= *n;
	}
}

// Appends zeros to n positions. Returns their steps.
static int64_t ISA(whole_steps)(const float **at, int64_t n, const float *zeros)
{
	for (; n % HALF_STEP; n++)
		at[n] = zeros;
	return n / HALF_STEP;
}

// The positions of lines [l, l + lines) of v in count images from i on. Returns their number.
static int64_t ISA(positions_of_v)(const correlated *q, const correlation_part *p, const float *v, int64_t i, int64_t count, int64_t l, int64_t lines,
	const float **at)
{
	int64_t n = 0;
	for (int64_t j = l; j < l + lines; j++)
		for (int64_t k = i; k < i + count; k++)
			for (int64_t x = 0; x < q->w; x++)
				at[n++] = ISA(element)(v, k * q->vbatch + j * q->vline + x * q->vcolumn + p->n0, q->vnarrow);
	return n;
}

// The positions that they are multiplied with for the tap of the output at line o and position d; zeros outside of the images. Returns their number.
static int64_t ISA(positions_of_x)(const correlated *q, const float *x, int64_t i, int64_t count, int64_t l, int64_t lines, int64_t o, int64_t d,
	const float *zeros, const float **at)
{
	const staging *s = &q->s;
	int64_t n = 0;
	for (int64_t j = l; j < l + lines; j++)
		for (int64_t k = i; k < i + count; k++) {
			int64_t line = s->y0 + o + j * q->apart, column = s->x0 + d;
			int64_t start = k * s->batch + line * s->sy;
			for (int64_t c = 0; c < q->w; c++, column += q->dilation) {
				int in = line >= 0 && line < s->h && column >= 0 && column < s->w;
				at[n++] = in ? ISA(element)(x, start + column * s->sx, s->narrow) : zeros;
			}
		}
	return n;
}

// Stages width channels from c on of steps of positions as a panel of columns.
static inline void ISA(stage_panel)(int64_t steps, const float *const *at, int64_t c, int64_t width, int64_t narrow, int64_t part, float *to)
{
	for (int64_t k = 0; k < steps * HALF_PAIRS; k++, at += 2, to += ISA(WIDE))
		ISA(pair_positions)(at[0], at[1], c, width, narrow, (uint32_t *)(void *)to, part ? (uint32_t *)(void *)(to + part) : 0);
}

// Stages the channels of steps of positions as columns. part is the distance of the second parts, 0 if there are none.
static void ISA(stage_columns)(const ISA(tiled) *t, int64_t steps, const float *const *at, int64_t narrow, int64_t part, float *to)
{
	for (int64_t c = 0; c < t->cols; c += ISA(WIDE), to += t->col)
		if (t->cols - c < ISA(WIDE))
			ISA(stage_panel)(steps, at, c, ISA(SIDE), narrow, part, to);
		else if (narrow && !part)
			ISA(stage_panel)(steps, at, c, ISA(WIDE), 1, 0, to);
		else
			ISA(stage_panel)(steps, at, c, ISA(WIDE), narrow, part, to);
}

// Stages the channels of steps of positions as rows.
static void ISA(stage_rows)(const ISA(tiled) *t, int64_t steps, const float *const *at, int64_t narrow, int64_t part, float *to)
{
	for (int64_t k = 0; k < steps; k++, at += HALF_STEP, to += ISA(BLOCK))
		for (int64_t c = 0; c < t->rows; c += ISA(SIDE)) {
			float words[2][ISA(BLOCK)] __attribute__((aligned(64))), *panel = to + c / ISA(SIDE) * t->row;
			for (int64_t j = 0; j < HALF_PAIRS; j++)
				ISA(pair_positions)(at[2 * j], at[2 * j + 1], c, ISA(SIDE), narrow, (uint32_t *)(void *)words[0] + j * ISA(SIDE),
					part ? (uint32_t *)(void *)words[1] + j * ISA(SIDE) : 0);
			ISA(transpose_block)(words[0], panel, HALF_PAIRS);
			if (part)
				ISA(transpose_block)(words[1], panel + part, HALF_PAIRS);
		}
}

// Adds the products of steps of staged rows and columns to the sums, or overwrites them. A panel of columns stays in the L1 cache.
static void ISA(multiply_staged)(const correlated *q, const ISA(tiled) *t, int64_t steps, const half_tiles *set, const float *a, const float *b, float *sums,
	int add)
{
	run r[3] = {{.n = steps * HALF_PAIRS}, {.b = t->b, .n = steps * HALF_PAIRS}, {.a = t->a, .n = steps * HALF_PAIRS}};
	strips s = {.r = r, .runs = 2 * q->parts - 1, .side = ISA(SIDE), .pairs = HALF_PAIRS, .column = HALF_PAIRS, .advance = ISA(BLOCK), .step = ISA(WIDE), .width = q->srow, .add = add};
	for (int64_t c = 0; c < t->cols; c += ISA(WIDE), b += t->col)
		for (int64_t m = 0; m < t->rows; m += 2 * ISA(SIDE)) {
			s.right = t->cols - c > ISA(SIDE), s.below = t->rows - m > ISA(SIDE), s.b = b;
			s.a[0] = a + m / ISA(SIDE) * t->row, s.a[1] = s.a[0] + t->row;
			s.c[0] = sums + m * q->srow + c, s.c[1] = s.c[0] + ISA(SIDE) * q->srow;
			for (int64_t i = 0; i < (s.below + 1) * ISA(SIDE); i++)
				for (int64_t n = 0; n <= s.right; n++)
					__builtin_prefetch(s.c[0] + i * q->srow + n * ISA(SIDE));
			set->strips(&s);
		}
}

static void ISA(correlate_tiled)(const correlated *q, const correlation_part *p, const half_tiles *set, const float *x, const float *v, float *sums, float *room)
{
	ISA(tiled) t = ISA(tiled_of)(q, p);
	float *rows = room, *cols = rows + q->parts * t.a, *zeros = cols + q->parts * t.b;
	int64_t a = q->parts > 1 ? t.a : 0, b = q->parts > 1 ? t.b : 0;
	const float *at[2 * ISA(STAGED)];
	memset(zeros, 0, t.zeros * sizeof *zeros);
	for (int64_t i = p->i0; i < p->i1; i += t.images)
		for (int64_t l = 0; l < q->h; l += t.lines) {
			int64_t count = p->i1 - i < t.images ? p->i1 - i : t.images, lines = q->h - l < t.lines ? q->h - l : t.lines;
			int64_t line = count * q->w, together = line % HALF_STEP == 0 ? t.together : 1;
			int64_t steps = ISA(whole_steps)(at, ISA(positions_of_v)(q, p, v, i, count, l, lines, at), zeros);
			if (q->swapped)
				ISA(stage_rows)(&t, steps, at, q->vnarrow, a, rows);
			else
				ISA(stage_columns)(&t, steps, at, q->vnarrow, b, cols);
			for (int64_t u = p->o0, n; u < p->o1; u += n) {
				int64_t o = ISA(tap_line)(q, u, &n);
				n = n < together ? n : together;
				n = n < p->o1 - u ? n : p->o1 - u;
				for (int64_t d = p->d0; d < p->d1; d++) {
					int64_t staged = ISA(whole_steps)(at, ISA(positions_of_x)(q, x, i, count, l, lines + n - 1, o, d, zeros, at), zeros);
					if (q->swapped)
						ISA(stage_columns)(&t, staged, at, q->s.narrow, b, cols);
					else
						ISA(stage_rows)(&t, staged, at, q->s.narrow, a, rows);
					float *to = sums + o * q->sline + d * q->sposition + (q->swapped ? p->n0 * q->srow : p->n0);
					for (int64_t k = 0; k < n; k++, to += q->apart * q->sline)
						ISA(multiply_staged)(q, &t, steps, set, q->swapped ? rows : rows + k * line / HALF_STEP * ISA(BLOCK),
							q->swapped ? cols + k * line / 2 * ISA(WIDE) : cols, to, i > p->i0 || l > 0);
				}
			}
		}
}
