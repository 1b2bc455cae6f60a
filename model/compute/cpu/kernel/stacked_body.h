// Gradients for kernels of few channels, for one instruction set: the windows of all lines of an image with few channels are stacked, so that they fill vectors
// together, and multiplied with the channels of v. With bfloat16, each word of both holds the values of two adjacent positions. Included by direct_body.h.

// The layout of what is stacked at a time: lines of v, with so many lines of the image.
typedef struct {
	int64_t lines, xlines, line; // line is the size of an image's line
	int64_t w, copied;           // words of a line of v; those of v that are copied
} ISA(piled);

static ISA(piled) ISA(piled_of)(const correlated *q)
{
	int64_t lines = q->w < PILE ? PILE / q->w : 1, most = q->h < MAX_RUNS ? q->h : MAX_RUNS;
	lines = lines < most ? lines : most;
	int64_t w = q->w / UNIT(q), copied = q->vnarrow || q->half ? lines * w * q->n : 0;
	return (ISA(piled)){lines, (lines - 1) * q->apart + q->oh, ISA(aligned)(q->s.columns * q->s.c + COLS), w, copied};
}

static int64_t ISA(stacked_floats)(const correlated *q)
{
	ISA(piled) s = ISA(piled_of)(q);
	return (s.xlines + 1) * s.line + ISA(aligned)(s.lines * s.w * q->stacked + 2 * COLS) + s.copied;
}

// Stages a line of an image. spare has room for another one.
static inline void ISA(stage_words)(const correlated *q, const float *x, int64_t y, float *spare, float *to)
{
	ISA(stage_line)(&q->s, x, y, q->half ? spare : to);
	int64_t next = q->dilation * q->s.c;
	if (q->half)
		ISA(pair_rows)(spare, spare + next, q->s.columns * q->s.c - next, (uint32_t *)(void *)to, 0);
}

// Copies a line of v, as float32 or as words.
static inline void ISA(copy_v)(const correlated *q, const float *v, float *to)
{
	int64_t together = q->vcolumn == q->n ? q->w : 1; // positions that are adjacent
	if (q->half)
		for (int64_t k = 0; k < q->w; k += 2, to += q->n)
			ISA(pair_positions)(ISA(element)(v, k * q->vcolumn, q->vnarrow), ISA(element)(v, (k + 1) * q->vcolumn, q->vnarrow), 0, q->n, q->vnarrow,
				(uint32_t *)(void *)to, 0);
	else
		for (int64_t k = 0; k < q->w; k += together, to += together * q->n)
			ISA(widen)(ISA(element)(v, k * q->vcolumn, 1), together * q->n, to);
}

// Stacks the windows of w words. What is written after a window is overwritten by the next one.
#define STACK(name, oh)                                                                                          \
	static void ISA(stack_##name)(const correlated *q, int64_t w, int64_t line, const float *from, float *to) \
	{                                                                                                        \
		const int64_t rows = q->rows, stacked = q->stacked, step = UNIT(q) * q->dilation * q->s.c;       \
		if (rows <= VL)                                                                                  \
			for (int64_t k = w; k > 0; k--, to += stacked, from += step)                             \
				UNROLL for (int64_t o = 0; o < (oh); o++)                                        \
					*(vf *)(to + o * rows) = *(const vf *)(from + o * line);                 \
		else                                                                                             \
			for (int64_t k = w; k > 0; k--, to += stacked, from += step)                             \
				UNROLL for (int64_t o = 0; o < (oh); o++)                                        \
					for (int64_t i = 0; i < rows; i += VL)                                   \
						*(vf *)(to + o * rows + i) = *(const vf *)(from + o * line + i); \
	}
STACK(3, 3)
STACK(4, 4)
STACK(any, q->oh)
#undef STACK

// The lines of v that are read after those before line l of image i.
static ISA(fetched) ISA(stacked_next)(const correlated *q, const correlation_part *p, const float *v, int64_t i, int64_t l, int64_t lines)
{
	if (l >= q->h)
		i++, l = 0;
	if (i >= p->i1 || q->vnarrow)
		return (ISA(fetched)){0};
	int64_t tiles = (q->n + ROWS - 1) / ROWS * ((q->stacked + COLS - 1) / COLS), end = l + lines < q->h ? l + lines : q->h;
	const float *image = v + i * q->vbatch;
	return ISA(fetched_by)(tiles, image + l * q->vline, image + end * q->vline);
}

static void ISA(correlate_stacked)(const correlated *q, const correlation_part *p, const float *x, const float *v, float *sums, float *room)
{
	ISA(piled) s = ISA(piled_of)(q);
	float *spare = room + s.xlines * s.line, *stack = spare + s.line, *copy = stack + ISA(aligned)(s.lines * s.w * q->stacked + 2 * COLS);
	int64_t group[GROUPS] = {0, GROUP, 2 * GROUP}, row[ROWS], height = ISA(height)(q->n), column = s.copied ? q->n : q->vcolumn;
	for (int64_t i = 0; i < ROWS; i++)
		row[i] = i * q->stacked;
	for (int64_t i = p->i0; i < p->i1; i++)
		for (int64_t l = 0; l < q->h; l += s.lines) {
			int64_t lines = q->h - l < s.lines ? q->h - l : s.lines;
			const float *image = ISA(element)(v, i * q->vbatch + l * q->vline, q->vnarrow);
			for (int64_t j = 0; j < (lines - 1) * q->apart + q->oh; j++)
				ISA(stage_words)(q, ISA(element)(x, i * q->s.batch, q->s.narrow), q->s.y0 + l * q->apart + j, spare, room + j * s.line);
			float *to = stack;
			run r[MAX_RUNS];
			for (int64_t j = 0; j < lines; j++, to += s.w * q->stacked) {
				r[j] = (run){.a = j * (s.copied ? s.w * q->n : q->vline), .b = j * s.w * q->stacked, .n = s.w};
				const float *from = room + j * q->apart * s.line;
				if (q->oh == 3)
					ISA(stack_3)(q, s.w, s.line, from, to);
				else if (q->oh == 4)
					ISA(stack_4)(q, s.w, s.line, from, to);
				else
					ISA(stack_any)(q, s.w, s.line, from, to);
				if (s.copied)
					ISA(copy_v)(q, ISA(element)(image, j * q->vline, q->vnarrow), copy + j * s.w * q->n);
			}
			const float *a = s.copied ? copy : image;
			ISA(fetched) next = ISA(stacked_next)(q, p, v, i, l + lines, s.lines);
			for (int64_t n = 0; n < q->n; n += height) {
				int64_t rows = q->n - n < height ? q->n - n : height;
				for (int64_t c = 0; c < q->stacked; c += COLS) {
					ISA(fetch)(&next);
					ISA(tile_of)(q->half, 0, rows, q->stacked - c > VL ? 2 : 1)(r, lines, a + n, group, 1, column, stack + c, q->stacked,
						sums + n * q->stacked + c, row, i > p->i0 || l > 0);
				}
			}
		}
}
