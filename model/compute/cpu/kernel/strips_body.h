// Strips of windows: tiles of AMX, whose rows lie a constant distance apart. Included by direct_body.h, for one instruction set; see strips in half.h.

// The words of a staged image, of one part.
static inline int64_t ISA(image_words)(const windowed *q, const extent *e)
{
	return q->stack.planes ? q->stack.words : (e->l1 - e->l0) * q->pitch;
}

// What is the same for all strips of a panel of columns. r has room for the runs of three products.
static inline strips ISA(strips_of)(const windowed *q, const window *w, const extent *e, int64_t p, const float *b, run *r)
{
	strips s = {.r = w->r, .runs = w->runs, .side = q->side, .pairs = q->steps, .column = w->column, .advance = q->steps, .step = w->step, .b = b + w->b + p * w->panel};
	if (q->parts == 1)
		return s;
	for (int64_t i = 0; i < w->runs; i++) { // see LOW_A and LOW_B
		r[3 * i] = r[3 * i + 1] = r[3 * i + 2] = w->r[i];
		r[3 * i + 1].b += w->panel / 2, r[3 * i + 2].a += (e->i1 - e->i0) * ISA(image_words)(q, e);
	}
	s.r = r, s.runs = 3 * w->runs;
	return s;
}

// Stores cols columns of an output.
static inline void ISA(store_output)(const windowed *q, float *to, const float *sums, int64_t cols)
{
	if (q->ochannel == 1)
		ISA(store_row)(to, sums, cols, 0);
	for (int64_t n = 0; n < cols && q->ochannel != 1; n++)
		to[n * q->ochannel] = sums[n];
}

// The strips of a tile that is being filled: the outputs of their images, and the number of each strip's first window.
typedef struct {
	float *c[2];
	int64_t first[2], gathered;
} ISA(filled);

// Finds the outputs of a strip that begins with window first.
static inline void ISA(strip_outputs)(const window *w, float *c, int64_t first, int64_t side, float **to)
{
	int64_t line = first / w->w * w->oline, column = first % w->w;
	for (int64_t j = 0; j < side; j++) {
		to[j] = c + line + column * w->ocolumn;
		if (++column == w->w)
			column = 0, line += w->oline;
	}
}

// Multiplies the strips that were gathered, and stores cols columns of the results, directly where they lie a constant distance apart or by way of a copy. The
// lines of the results are fetched before, since a tile is stored more slowly if it has to wait for each of them.
static void ISA(strips_tile)(const windowed *q, const window *w, const half_tiles *t, strips *s, ISA(filled) *f, int64_t cols)
{
	float copy[2][16 * COLS], *to[2][16];
	int direct = q->ochannel == 1 && cols % 16 == 0 && (!q->stack.planes || w->oline == w->w * w->ocolumn);
	s->right = cols > 16, s->below = f->gathered > 1, s->width = direct ? w->ocolumn : COLS;
	for (int64_t i = 0; i < f->gathered; i++) {
		ISA(strip_outputs)(w, f->c[i], f->first[i], s->side, to[i]);
		s->c[i] = direct ? to[i][0] : copy[i];
		for (int64_t j = 0; j < s->side && q->ochannel == 1; j++)
			for (int64_t m = 0; m < cols; m += 16)
				__builtin_prefetch(to[i][j] + m);
	}
	t->strips(s);
	for (int64_t i = 0; i < f->gathered && !direct; i++)
		for (int64_t j = 0; j < s->side; j++)
			ISA(store_output)(q, to[i][j], copy[i] + j * COLS, cols);
	f->gathered = 0;
}

// Computes one panel of columns of one window's outputs in strips of a line, or of all lines if images are staged in planes. The last strip
// overlaps the one before it. Meanwhile the next panel is fetched, which may be that of the next window.
static void ISA(window_strips)(const windowed *q, const window *w, const extent *e, const half_tiles *t, int64_t p, const float *b, float *y,
	const float *room)
{
	int64_t cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS, planes = q->stack.planes > 0;
	int64_t l0 = planes ? 0 : w->h * e->j / e->parts, l1 = planes ? 1 : w->h * (e->j + 1) / e->parts, wide = planes ? w->h * w->w : w->w;
	run r[3 * MAX_RUNS];
	strips s = ISA(strips_of)(q, w, e, p, b, r);
	ISA(filled) f = {.gathered = 0};
	int64_t tiles = ((e->i1 - e->i0) * (l1 - l0) * ((wide + q->side - 1) / q->side) + 1) / 2, steps = 0;
	for (int64_t i = 0; i < s.runs; i++)
		steps += s.r[i].n / s.pairs;
	int64_t all = 16 * tiles * steps; // floats if each step fetches a line
	s.next = s.b + w->panel, s.lines = all > 0 ? (w->panel + all - 1) / all : 0;
	for (int64_t i = e->i0; i < e->i1; i++) {
		const float *image = room + (i - e->i0) * ISA(image_words)(q, e) - e->l0 * q->pitch + w->first;
		for (int64_t l = l0; l < l1; l++)
			for (int64_t x = 0; x < wide; x += q->side) {
				int64_t at = x + q->side <= wide ? x : wide - q->side;
				s.a[f.gathered] = image + l * w->line + at * w->column;
				f.c[f.gathered] = y + w->out + i * q->obatch + p * COLS * q->ochannel;
				f.first[f.gathered++] = l * w->w + at;
				if (f.gathered == 2) {
					ISA(strips_tile)(q, w, t, &s, &f, cols);
					s.next += 16 * s.lines * steps;
				}
			}
	}
	if (f.gathered > 0)
		ISA(strips_tile)(q, w, t, &s, &f, cols);
}

// Stages an image in planes. Second parts are written if low is not null.
static void ISA(stage_stack)(const windowed *q, const float *x, half *to, half *low)
{
	const stack *k = &q->stack;
	const staging *s = &q->s;
	for (int64_t p = 0; p < k->planes; p++)
		for (int64_t l = 0; l < k->lines; l++) {
			int64_t y = s->y0 + l, at = ((p * k->apart + l % k->apart) * (k->lines / k->apart) + l / k->apart) * k->windows * s->c;
			int64_t column = s->x0 + k->first[p];
			for (int64_t j = 0; j < k->windows; j++, column += k->move, at += s->c) {
				if (y >= 0 && y < s->h && column >= 0 && column < s->w) {
					ISA(narrow_of)(ISA(element)(x, y * s->sy + column * s->sx, s->narrow), s->c, s->narrow, to + at, low ? low + at : 0);
					continue;
				}
				memset(to + at, 0, s->c * sizeof *to);
				if (low)
					memset(low + at, 0, s->c * sizeof *low);
			}
		}
}

// ---- packing of kernels ----

// Packs k in [k0, k1), even numbers, of all panels, whose columns are adjacent. Blocks of some values of k are packed panel by panel.
static void ISA(pack_pairs_by_rows)(const product *q, const float *b, float *to, int64_t k0, int64_t k1)
{
	const operand *o = &q->b;
	int64_t per = o->k.d[o->k.digits - 1].n, step = o->k.d[o->k.digits - 1].off, low = q->parts > 1 ? q->k / 2 * COLS : 0;
	for (int64_t k = k0, len; k < k1; k += len) {
		len = per - k % per < 64 ? per - k % per : 64;
		len = k1 - k < len ? k1 - k : len;
		const float *from = ISA(element)(b, ISA(k_offset)(o, k), o->narrow);
		for (int64_t c = 0; c < q->n; c += COLS) {
			int64_t width = q->n - c < COLS ? q->n - c : COLS;
			float *at = to + c * q->parts * q->k / 2 + k / 2 * COLS;
			for (int64_t t = 0; t < len; t += 2, at += COLS) {
				const float *first = ISA(element)(from, t * step, o->narrow), *second = ISA(element)(from, (t + 1) * step, o->narrow);
				ISA(pair_positions)(first, second, c, width, o->narrow, (uint32_t *)(void *)at, low ? (uint32_t *)(void *)(at + low) : 0);
				for (int64_t part = 0; part < q->parts && width < COLS; part++)
					memset(at + part * low + width, 0, (COLS - width) * sizeof *at);
			}
		}
	}
}

// Packs a panel whose k are adjacent.
static void ISA(pack_pairs_by_columns)(const product *q, const float *b, float *to, int64_t p)
{
	const operand *o = &q->b;
	int64_t cols = q->n - p * COLS < COLS ? q->n - p * COLS : COLS, low = q->k / 2 * COLS;
	to += p * COLS * q->parts * q->k / 2;
	for (int64_t part = 0; part < q->parts && cols < COLS; part++)
		memset(to + part * low, 0, low * sizeof *to);
	for (int64_t k = 0; k < q->k; k += HALF_STEP, to += HALF_PAIRS * COLS) {
		const float *from = ISA(element)(b, ISA(k_offset)(o, k), o->narrow);
		for (int64_t c = 0; c < cols; c += ISA(SIDE))
			ISA(turn_columns)(o, ISA(element)(from, (p * COLS + c) * o->x.d[0].off, o->narrow), to + c, COLS, q->parts > 1 ? low : 0);
	}
}

// Packs unit i of as many as there are panels.
static void ISA(half_pack_panels)(const product *q, const float *b, float *to, int64_t i, int64_t units)
{
	int lie = ISA(pairs_lie)(&q->b, q->n);
	if (lie == ISA(ROWS_LIE)) {
		ISA(pack_pairs_by_rows)(q, b, to, q->k / 2 * i / units * 2, q->k / 2 * (i + 1) / units * 2);
		return;
	}
	if (lie == ISA(K_LIES) && COLS % ISA(SIDE) == 0) {
		ISA(pack_pairs_by_columns)(q, b, to, i);
		return;
	}
	float block[BLOCK_K * COLS];
	int64_t cols = q->n - i * COLS < COLS ? q->n - i * COLS : COLS, words = (q->k + 1) / 2;
	for (int64_t k = 0; k < q->k; k += BLOCK_K) {
		int64_t kc = q->k - k < BLOCK_K ? q->k - k : BLOCK_K;
		ISA(pack)(&q->b, b, i * COLS, cols, COLS, k, kc, block);
		if (kc % 2)
			memset(block + kc * COLS, 0, COLS * sizeof *block);
		uint32_t *at = (uint32_t *)(void *)(to + (i * q->parts * words + k / 2) * COLS);
		for (int64_t t = 0; t < kc; t += 2, at += COLS)
			ISA(pair_rows)(block + t * COLS, block + (t + 1) * COLS, COLS, at, q->parts > 1 ? at + words * COLS : 0);
	}
}
