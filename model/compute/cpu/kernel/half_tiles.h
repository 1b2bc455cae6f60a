// Blocks of up to 2 x 2 tiles of 16 x 16 sums. The first computes one or three products. TILE_LOAD_A, TILE_LOAD_B, TILE_LOAD_C, TILE_DOT, TILE_STORE
// and TILE_ZERO are instructions or functions of half.c; TILES declares the registers of the latter: 0 to 3 for sums, 4 and 5 for A, 6 and 7 for B.
TILE_TARGET static void TILE_NAME(tile)(int64_t pairs, int64_t parts, const half *a, int64_t height, const half *b, float *c, int64_t rows,
	int64_t cols)
{
	enum { SIDE = 16, ROW_A = HALF_STEP * sizeof(half), ROW_B = HALF_COLS * 2 * sizeof(half), ROW_C = HALF_COLS * sizeof(float) };
	int below = rows > SIDE, right = cols > SIDE;
	TILES;
	TILE_ZERO(0);
	TILE_ZERO(1);
	TILE_ZERO(2);
	TILE_ZERO(3);
	for (int64_t part_a = height * HALF_STEP, part_b = HALF_STEP * HALF_COLS; pairs > 0; pairs -= HALF_PAIRS, a += parts * part_a, b += parts * part_b)
		for (int64_t term = 0; term < 2 * parts - 1; term++) {
			const half *x = term == LOW_A ? a + part_a : a, *y = term == LOW_B ? b + part_b : b;
			TILE_LOAD_A(4, x, ROW_A, HALF_PAIRS);
			TILE_LOAD_B(6, y, ROW_B, HALF_PAIRS);
			TILE_DOT(0, 4, 6, HALF_PAIRS);
			if (right) {
				TILE_LOAD_B(7, y + SIDE * 2, ROW_B, HALF_PAIRS);
				TILE_DOT(1, 4, 7, HALF_PAIRS);
			}
			if (below) {
				TILE_LOAD_A(5, x + SIDE * HALF_STEP, ROW_A, HALF_PAIRS);
				TILE_DOT(2, 5, 6, HALF_PAIRS);
				if (right)
					TILE_DOT(3, 5, 7, HALF_PAIRS);
			}
		}
	TILE_STORE(0, c, ROW_C, SIDE);
	if (right)
		TILE_STORE(1, c + SIDE, ROW_C, SIDE);
	if (below)
		TILE_STORE(2, c + SIDE * HALF_COLS, ROW_C, SIDE);
	if (below && right)
		TILE_STORE(3, c + SIDE * HALF_COLS + SIDE, ROW_C, SIDE);
}

// See strips in half.h.
TILE_TARGET static void TILE_NAME(strips)(const strips *s)
{
	enum { SIDE = 16 };
	int64_t column = s->column * sizeof(float), step = s->step * sizeof(float), width = s->width * sizeof(float);
	const float *next = s->next;
	TILES;
	if (s->add) {
		TILE_LOAD_C(0, s->c[0], width, s->side);
		if (s->right)
			TILE_LOAD_C(1, s->c[0] + SIDE, width, s->side);
		if (s->below)
			TILE_LOAD_C(2, s->c[1], width, s->side);
		if (s->below && s->right)
			TILE_LOAD_C(3, s->c[1] + SIDE, width, s->side);
	} else {
		TILE_ZERO(0);
		TILE_ZERO(1);
		TILE_ZERO(2);
		TILE_ZERO(3);
	}
	for (const run *r = s->r; r < s->r + s->runs; r++) {
		const float *x = s->a[0] + r->a, *z = s->below ? s->a[1] + r->a : x, *y = s->b + r->b;
		for (int64_t k = r->n; k > 0; k -= s->pairs, x += s->advance, z += s->advance, y += s->pairs * s->step) {
			for (int64_t i = 0; i < s->lines; i++, next += 16)
				__builtin_prefetch(next, 0, 2);
			TILE_LOAD_A(4, x, column, s->pairs);
			TILE_LOAD_B(6, y, step, s->pairs);
			TILE_DOT(0, 4, 6, s->pairs);
			if (s->right) {
				TILE_LOAD_B(7, y + SIDE, step, s->pairs);
				TILE_DOT(1, 4, 7, s->pairs);
			}
			if (s->below) {
				TILE_LOAD_A(5, z, column, s->pairs);
				TILE_DOT(2, 5, 6, s->pairs);
				if (s->right)
					TILE_DOT(3, 5, 7, s->pairs);
			}
		}
	}
	TILE_STORE(0, s->c[0], width, s->side);
	if (s->right)
		TILE_STORE(1, s->c[0] + SIDE, width, s->side);
	if (s->below)
		TILE_STORE(2, s->c[1], width, s->side);
	if (s->below && s->right)
		TILE_STORE(3, s->c[1] + SIDE, width, s->side);
}
#undef TILE_TARGET
#undef TILE_NAME
#undef TILES
#undef TILE_ZERO
#undef TILE_LOAD_A
#undef TILE_LOAD_B
#undef TILE_LOAD_C
#undef TILE_DOT
#undef TILE_STORE
