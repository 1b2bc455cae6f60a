// Gradients for kernels of few channels, for one instruction set: the windows of all lines of an image with few channels are stacked, so that they fill vectors
// together, and multiplied with the channels of v. Included by direct_body.h.

// The layout of what is stacked at a time: lines of v, with so many lines of the image.
typedef struct {
	int64_t lines, xlines, line; // line is the size of an image's line
} ISA(piled);

static ISA(piled) ISA(piled_of)(const correlated *q)
{
	int64_t lines = q->w < PILE ? PILE / q->w : 1, most = q->h < MAX_RUNS ? q->h : MAX_RUNS;
	lines = lines < most ? lines : most;
	return (ISA(piled)){lines, (lines - 1) * q->apart + q->oh, ISA(aligned)(q->s.columns * q->s.c + COLS)};
}

static int64_t ISA(stacked_floats)(const correlated *q)
{
	ISA(piled) s = ISA(piled_of)(q);
	return s.xlines * s.line + ISA(aligned)(s.lines * q->w * q->stacked + 2 * COLS) + (q->vnarrow ? s.lines * q->w * q->n : 0);
}

// Stacks the windows of w positions. What is written after a window is overwritten by the next one.
#define STACK(name, oh)                                                                                          \
	static void ISA(stack_##name)(const correlated *q, int64_t line, const float *from, float *to)           \
	{                                                                                                        \
		const int64_t rows = q->rows, stacked = q->stacked, step = q->dilation * q->s.c;                 \
		if (rows <= VL)                                                                                  \
			for (int64_t k = q->w; k > 0; k--, to += stacked, from += step)                          \
				UNROLL for (int64_t o = 0; o < (oh); o++)                                        \
					*(vf *)(to + o * rows) = *(const vf *)(from + o * line);                 \
		else                                                                                             \
			for (int64_t k = q->w; k > 0; k--, to += stacked, from += step)                          \
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
	float *stack = room + s.xlines * s.line, *wide = stack + ISA(aligned)(s.lines * q->w * q->stacked + 2 * COLS);
	int64_t group[GROUPS] = {0, GROUP, 2 * GROUP}, row[ROWS], height = ISA(height)(q->n), together = q->vcolumn == q->n ? q->w : 1; // positions that are adjacent
	for (int64_t i = 0; i < ROWS; i++)
		row[i] = i * q->stacked;
	for (int64_t i = p->i0; i < p->i1; i++)
		for (int64_t l = 0; l < q->h; l += s.lines) {
			int64_t lines = q->h - l < s.lines ? q->h - l : s.lines, column = q->vnarrow ? q->n : q->vcolumn;
			for (int64_t j = 0; j < (lines - 1) * q->apart + q->oh; j++)
				ISA(stage_line)(&q->s, ISA(element)(x, i * q->s.batch, q->s.narrow), q->s.y0 + l * q->apart + j, room + j * s.line);
			float *to = stack;
			run r[MAX_RUNS];
			for (int64_t j = 0; j < lines; j++) {
				r[j] = (run){.a = q->vnarrow ? j * q->w * q->n : j * q->vline, .b = j * q->w * q->stacked, .n = q->w};
				const float *from = room + j * q->apart * s.line;
				if (q->oh == 3)
					ISA(stack_3)(q, s.line, from, to);
				else if (q->oh == 4)
					ISA(stack_4)(q, s.line, from, to);
				else
					ISA(stack_any)(q, s.line, from, to);
				to += q->w * q->stacked;
				for (int64_t k = 0; k < q->w && q->vnarrow; k += together)
					ISA(widen)(ISA(element)(v, i * q->vbatch + (l + j) * q->vline + k * q->vcolumn, 1), together * q->n, wide + (j * q->w + k) * q->n);
			}
			const float *a = q->vnarrow ? wide : v + i * q->vbatch + l * q->vline;
			ISA(fetched) next = ISA(stacked_next)(q, p, v, i, l + lines, s.lines);
			for (int64_t n = 0; n < q->n; n += height) {
				int64_t rows = q->n - n < height ? q->n - n : height;
				for (int64_t c = 0; c < q->stacked; c += COLS) {
					ISA(fetch)(&next);
					ISA(direct_tiles)[rows - 1][q->stacked - c > VL](r, lines, a + n, group, 1, column, stack + c, q->stacked, sums + n * q->stacked + c, row, i > p->i0 || l > 0);
				}
			}
		}
}
