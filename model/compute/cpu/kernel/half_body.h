// Packing of bfloat16 operands, and blocks of their products, for one instruction set and all kinds of tiles. See half.h.
#define vt ISA(vt)
typedef float vt __attribute__((vector_size(4 * VL), aligned(4), may_alias));

// Number of elements that k values of the contraction take for each row or column of a panel: whole steps, of each part.
static inline int64_t ISA(depth)(int64_t k, int64_t parts) { return (k + HALF_STEP - 1) / HALF_STEP * HALF_STEP * parts; }

// The nearest bfloat16, ties to even, as float32; the next one toward zero if the nearest is infinite. NaN stays NaN.
static inline vu ISA(nearest)(vu bits)
{
	const vu infinite = (vu){} + 0x7f800000u;
	vu near = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
	vu over = (vu)((near & infinite) == infinite) | (vu)((bits & infinite) == infinite);
	vu nan = (vu)((bits & 0x7fffffffu) > infinite);
	return (near & ~over) | (((bits & 0xffff0000u) | (nan & 0x400000u)) & over);
}

// The nearest bfloat16 of the difference between a value and its nearest bfloat16; zero if the value is not finite.
static inline vu ISA(rest)(vu bits, vu near)
{
	const vu infinite = (vu){} + 0x7f800000u;
	return ISA(nearest)((vu)((vt)bits - (vt)near)) & (vu)((bits & infinite) != infinite);
}

#if defined(SET_AVX512)
// ---- splitting with the processor's conversions, which treat denormals as zero ----


// Whether the nearest bfloat16 of some value is not finite. Such values need other rules.
static inline int beyond(__m512 x)
{
	const __m512i most = _mm512_set1_epi32(0x7f7f7fff);
	return _mm512_cmp_epu32_mask(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)), most, _MM_CMPINT_GT) != 0;
}

BF16_TARGET static inline __m512 widened_half(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }

// Splits 32 values into the nearest bfloat16 and those of the remainders.
BF16_TARGET static inline void split_parts(const float *s, __m512i *high, __m512i *low)
{
	__m512 x = _mm512_loadu_ps(s), y = _mm512_loadu_ps(s + 16);
	*high = (__m512i)_mm512_cvtne2ps_pbh(y, x);
	x = _mm512_sub_ps(x, widened_half(_mm512_castsi512_si256(*high)));
	y = _mm512_sub_ps(y, widened_half(_mm512_extracti64x4_epi64(*high, 1)));
	*low = (__m512i)_mm512_cvtne2ps_pbh(y, x);
}

// split_row splits as many of n values as possible, and returns their number.
BF16_TARGET static int64_t split_row(const float *s, int64_t n, half *to, half *low)
{
	int64_t i = 0;
	for (; i + 32 <= n && !beyond(_mm512_loadu_ps(s + i)) && !beyond(_mm512_loadu_ps(s + i + 16)); i += 32) {
		__m512i high, rest;
		split_parts(s + i, &high, &rest);
		_mm512_storeu_si512(to + i, high);
		_mm512_storeu_si512(low + i, rest);
	}
	return i;
}

// split_pairs does the same for the pairs of two rows, as pair_rows.
BF16_TARGET static int64_t split_pairs(const float *first, const float *second, int64_t n, uint32_t *to, uint32_t *low)
{
	const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); // unpacking then gives 16 adjacent values each
	int64_t i = 0;
	for (; i + 32 <= n; i += 32) {
		if (beyond(_mm512_loadu_ps(first + i)) || beyond(_mm512_loadu_ps(first + i + 16)) || beyond(_mm512_loadu_ps(second + i)) ||
			beyond(_mm512_loadu_ps(second + i + 16)))
			break;
		__m512i x, y, a, b;
		split_parts(first + i, &x, &a);
		split_parts(second + i, &y, &b);
		x = _mm512_permutexvar_epi64(order, x), y = _mm512_permutexvar_epi64(order, y);
		a = _mm512_permutexvar_epi64(order, a), b = _mm512_permutexvar_epi64(order, b);
		_mm512_storeu_si512(to + i, _mm512_unpacklo_epi16(x, y));
		_mm512_storeu_si512(to + i + 16, _mm512_unpackhi_epi16(x, y));
		_mm512_storeu_si512(low + i, _mm512_unpacklo_epi16(a, b));
		_mm512_storeu_si512(low + i + 16, _mm512_unpackhi_epi16(a, b));
	}
	return i;
}
#endif

// Narrows n values; if low is not null, they are split.
static inline void ISA(narrow)(const float *s, int64_t n, half *to, half *low)
{
	int64_t i = 0;
#if defined(SET_AVX512)
	if (low && converts)
		i = split_row(s, n, to, low);
#endif
	for (; i + VL <= n; i += VL) {
		vu bits = *(const vu *)(s + i), near = low ? ISA(nearest)(bits) : bits;
		*(vh *)(to + i) = __builtin_convertvector(near >> 16, vh);
		if (low)
			*(vh *)(low + i) = __builtin_convertvector(ISA(rest)(bits, near) >> 16, vh);
	}
	if (i == n)
		return;
	vu bits = {0}, near;
	memcpy(&bits, s + i, (n - i) * sizeof *s);
	near = low ? ISA(nearest)(bits) : bits;
	vh narrow = __builtin_convertvector(near >> 16, vh);
	memcpy(to + i, &narrow, (n - i) * sizeof *to);
	if (low) {
		narrow = __builtin_convertvector(ISA(rest)(bits, near) >> 16, vh);
		memcpy(low + i, &narrow, (n - i) * sizeof *low);
	}
}

// Location of one row of a panel of A: steps of step elements, in which the second part follows the first after part elements.
typedef struct {
	half *at;
	int64_t step, part; // part is 0 if there is only one part
} ISA(row);

static inline ISA(row) ISA(row_of)(half *panel, int64_t r, int64_t height, int64_t parts)
{
	int64_t part = height * HALF_STEP;
	return (ISA(row)){panel + r * HALF_STEP, parts * part, parts == 1 ? 0 : part};
}

// Narrows n values that are stored as bfloat16 if stored is set.
static inline void ISA(narrow_of)(const float *s, int64_t n, int64_t stored, half *to, half *low)
{
	if (!stored) {
		ISA(narrow)(s, n, to, low);
		return;
	}
	memcpy(to, s, n * sizeof *to);
	if (low)
		memset(low, 0, n * sizeof *low);
}

// Writes n elements of a row from position k on, or zeros if s is null.
static inline void ISA(narrow_row)(const operand *o, const float *s, int64_t n, ISA(row) row, int64_t k)
{
	while (n > 0) {
		int64_t i = k % HALF_STEP, len = HALF_STEP - i < n ? HALF_STEP - i : n;
		half *at = row.at + k / HALF_STEP * row.step + i, *low = row.part ? at + row.part : 0;
		if (!s) {
			memset(at, 0, len * sizeof *at);
			if (low)
				memset(low, 0, len * sizeof *low);
		} else if (len == HALF_STEP)
			ISA(narrow_of)(s, HALF_STEP, o->narrow, at, low);
		else
			ISA(narrow_of)(s, len, o->narrow, at, low);
		s = s ? ISA(element)(s, len, o->narrow) : 0, k += len, n -= len;
	}
}

// Writes a run whose k is adjacent in memory, at position k of a panel of A.
static void ISA(narrow_run)(ISA(panel) *p, half *to, int64_t parts, int64_t k)
{
	const operand *o = p->o;
	int in = o->bounded ? ISA(bounds)(p) : ISA(ALL_IN);
	int64_t whole = in == ISA(ALL_IN) && k % HALF_STEP == 0 ? p->run / HALF_STEP : 0;
	for (int64_t r = 0; r < p->rows; r++) {
		ISA(row) row = ISA(row_of)(to, r, p->width, parts);
		const float *s = ISA(element)(p->src, p->koff + p->off[r], o->narrow);
		if (in == ISA(ALL_IN)) {
			half *at = row.at + k / HALF_STEP * row.step;
			for (int64_t i = 0; i < whole; i++, at += row.step, s = ISA(element)(s, HALF_STEP, o->narrow))
				ISA(narrow_of)(s, HALF_STEP, o->narrow, at, row.part ? at + row.part : 0);
			ISA(narrow_row)(o, s, p->run - whole * HALF_STEP, row, k + whole * HALF_STEP);
			continue;
		}
		int64_t lo = in == ISA(SOME_IN) ? p->lo[r] : 0, hi = in == ISA(SOME_IN) ? p->hi[r] : 0;
		ISA(narrow_row)(o, 0, lo, row, k);
		if (hi > lo)
			ISA(narrow_row)(o, ISA(element)(s, lo, o->narrow), hi - lo, row, k + lo);
		ISA(narrow_row)(o, 0, p->run - hi, row, k + hi);
	}
}

// Packs rows of A whose k is adjacent in memory.
static void ISA(half_pack_adjacent)(const operand *o, const float *src, int64_t x0, int64_t rows, int64_t height, int64_t parts, int64_t k0,
	int64_t n, half *to)
{
	int64_t at[MAX_DIGITS], k = 0, whole = ISA(depth)(n, 1);
	ISA(panel) p;
	ISA(open_panel)(&p, o, src, x0, rows, height);
	for (ISA(seek)(o, k0, at); k < n; k += p.run) {
		ISA(open_run)(&p, at, n - k);
		ISA(narrow_run)(&p, to, parts, k);
		ISA(close_run)(&p, at);
	}
	for (int64_t r = 0; r < height; r++) {
		int64_t from = r < rows ? n : 0;
		ISA(narrow_row)(o, 0, whole - from, ISA(row_of)(to, r, height, parts), from);
	}
}

// Interleaves two rows of width values, with the values of the first row in the lower halves; a second row of null is zeros. If low is
// not null, it gets the pairs of second parts.
static inline void ISA(pair_rows)(const float *first, const float *second, int64_t width, uint32_t *to, uint32_t *low)
{
	int64_t j = 0;
#if defined(SET_AVX512)
	if (low && second && converts)
		j = split_pairs(first, second, width, to, low);
#endif
	for (; j < width; j += VL) {
		int64_t n = width - j < VL ? width - j : VL;
		vu x = n == VL ? *(const vu *)(first + j) : (vu)ISA(load_first)(first + j, n), y = {0};
		if (second)
			y = n == VL ? *(const vu *)(second + j) : (vu)ISA(load_first)(second + j, n);
		if (low) {
			vu near_x = ISA(nearest)(x), near_y = ISA(nearest)(y);
			ISA(store_first)((float *)(void *)(low + j), (vt)(ISA(rest)(x, near_x) >> 16 | ISA(rest)(y, near_y)), n);
			x = near_x, y = near_y;
		}
		vu pair = x >> 16 | (y & 0xffff0000u);
		if (n == VL)
			*(vu *)(to + j) = pair;
		else
			ISA(store_first)((float *)(void *)(to + j), (vt)pair, n);
	}
}

enum { ISA(SIDE) = 16, ISA(WIDE) = HALF_COLS, ISA(BLOCK) = ISA(SIDE) * HALF_PAIRS };

// Makes words of two positions' channels; see pair_rows, which reads no more than these, either. narrow: they are stored as bfloat16.
static inline void ISA(pair_positions)(const float *first, const float *second, int64_t from, int64_t width, int64_t narrow, uint32_t *to, uint32_t *low)
{
	if (!narrow) {
		ISA(pair_rows)(first + from, second + from, width, to, low);
		return;
	}
	const half *x = (const half *)(const void *)first + from, *y = (const half *)(const void *)second + from;
	int64_t i = 0;
#if defined(SET_AVX512)
	for (const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); i + 2 * VL <= width; i += 2 * VL) { // so that 16 values lie in the lower halves
		__m512i a = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(x + i)), b = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(y + i));
		_mm512_storeu_si512(to + i, _mm512_unpacklo_epi16(a, b));
		_mm512_storeu_si512(to + i + VL, _mm512_unpackhi_epi16(a, b));
	}
	for (; i + VL <= width; i += VL) {
		__m512i a = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(x + i))), b = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(y + i)));
		_mm512_storeu_si512(to + i, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
	}
#endif
	for (; i + VL <= width; i += VL)
		*(vu *)(to + i) = __builtin_convertvector(*(const vh *)(x + i), vu) | __builtin_convertvector(*(const vh *)(y + i), vu) << 16;
	for (; i < width; i++)
		to[i] = x[i] | (uint32_t)y[i] << 16;
	if (low)
		memset(low, 0, width * sizeof *low);
}

#define UNROLL16 _Pragma("GCC unroll 16")

// Transposes a block of 16 x 16 words. Rows of the result are step words apart.
static inline void ISA(transpose_block)(const float *from, float *to, int64_t step)
{
#if defined(SET_AVX512)
	__m512i a[16], b[16];
	UNROLL16 for (int i = 0; i < 16; i++)
		a[i] = _mm512_loadu_si512(from + i * 16);
	UNROLL16 for (int i = 0; i < 16; i += 2)
		b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]), b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
	UNROLL16 for (int i = 0; i < 16; i += 4)
		UNROLL16 for (int j = 0; j < 2; j++)
			a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]), a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
	UNROLL16 for (int i = 0; i < 4; i++) // a[4 i + j] has columns j, j + 4, j + 8 and j + 12 of rows 4 i to 4 i + 3
	{
		__m512i low = _mm512_shuffle_i32x4(a[i], a[4 + i], 0x88), high = _mm512_shuffle_i32x4(a[i], a[4 + i], 0xdd);
		__m512i low2 = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0x88), high2 = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0xdd);
		_mm512_storeu_si512(to + i * step, _mm512_shuffle_i32x4(low, low2, 0x88));
		_mm512_storeu_si512(to + (i + 4) * step, _mm512_shuffle_i32x4(high, high2, 0x88));
		_mm512_storeu_si512(to + (i + 8) * step, _mm512_shuffle_i32x4(low, low2, 0xdd));
		_mm512_storeu_si512(to + (i + 12) * step, _mm512_shuffle_i32x4(high, high2, 0xdd));
	}
#else
	for (int64_t j = 0; j < HALF_PAIRS; j += 4) {
		const float *s = from + j * ISA(SIDE), *row[4] = {s, s + ISA(SIDE), s + 2 * ISA(SIDE), s + 3 * ISA(SIDE)};
		ISA(transpose4)(row, ISA(SIDE), to + j, step);
	}
#endif
}

#undef UNROLL16

// Makes the pairs of one step of rows [k][width], of which k remain: [parts][HALF_PAIRS][width].
static void ISA(pair_step)(const float *s, int64_t k, int64_t width, int64_t parts, uint32_t *to)
{
	uint32_t *low = parts == 1 ? 0 : to + HALF_PAIRS * width;
	for (int64_t p = 0; p < HALF_PAIRS; p++, to += width, low = low ? low + width : 0, s += 2 * width) {
		if (2 * p < k) {
			ISA(pair_rows)(s, 2 * p + 1 < k ? s + width : 0, width, to, low);
			continue;
		}
		memset(to, 0, width * sizeof *to);
		if (low)
			memset(low, 0, width * sizeof *low);
	}
}

// Whether and how pairs of k of n rows or columns can be packed directly: each k has adjacent rows or columns (ROWS_LIE), or k are adjacent (K_LIES).
enum { ISA(ROWS_LIE) = 1, ISA(K_LIES) };

static int ISA(pairs_lie)(const operand *o, int64_t n)
{
	const digit *in = &o->k.d[o->k.digits - 1];
	if (o->bounded || o->x.digits != 1 || in->per != 1)
		return 0;
	if (o->x.d[0].off == 1 && n % VL == 0 && in->n % 2 == 0)
		return ISA(ROWS_LIE);
	return in->off == 1 && n % ISA(SIDE) == 0 && in->n % HALF_STEP == 0 ? ISA(K_LIES) : 0;
}

// The offset of a value of k.
static inline int64_t ISA(k_offset)(const operand *o, int64_t k)
{
	int64_t off = o->base;
	for (int64_t j = o->k.digits - 1; j >= 0; j--)
		off += k % o->k.d[j].n * o->k.d[j].off, k /= o->k.d[j].n;
	return off;
}

// The offsets of the first values of pairs from k on, an even number, where each innermost digit has an even number of values.
static void ISA(pair_offsets)(const operand *o, int64_t k, int64_t pairs, int64_t *off)
{
	int64_t at[MAX_DIGITS], last = o->k.digits - 1;
	ISA(seek)(o, k, at);
	for (int64_t p = 0; p < pairs; p++) {
		off[p] = o->base;
		for (int64_t j = 0; j <= last; j++)
			off[p] += at[j] * o->k.d[j].off;
		at[last] += 2;
		for (int64_t j = last; j > 0 && at[j] == o->k.d[j].n; j--)
			at[j] = 0, at[j - 1]++;
	}
}

// Turns one step of 16 columns, whose k are adjacent, to rows of pairs that are step words apart. low is the distance of the second parts, or 0.
static inline void ISA(turn_columns)(const operand *o, const float *from, float *to, int64_t step, int64_t low)
{
	float words[2][ISA(BLOCK)] __attribute__((aligned(64)));
	for (int64_t j = 0; j < ISA(SIDE); j++)
		ISA(narrow_of)(ISA(element)(from, j * o->x.d[0].off, o->narrow), HALF_STEP, o->narrow, (half *)(void *)(words[0] + j * HALF_PAIRS),
			low ? (half *)(void *)(words[1] + j * HALF_PAIRS) : 0);
	ISA(transpose_block)(words[0], to, step);
	if (low)
		ISA(transpose_block)(words[1], to + low, step);
}

// Turns one step of 16 adjacent rows to columns of pairs in the same way. off has the offsets of the pairs.
static inline void ISA(turn_rows)(const operand *o, const float *src, int64_t x, const int64_t *off, float *to, int64_t low)
{
	float words[2][ISA(BLOCK)] __attribute__((aligned(64)));
	int64_t next = o->k.d[o->k.digits - 1].off;
	for (int64_t j = 0; j < HALF_PAIRS; j++)
		ISA(pair_positions)(ISA(element)(src, off[j], o->narrow), ISA(element)(src, off[j] + next, o->narrow), x, ISA(SIDE), o->narrow,
			(uint32_t *)(void *)(words[0] + j * ISA(SIDE)), low ? (uint32_t *)(void *)(words[1] + j * ISA(SIDE)) : 0);
	ISA(transpose_block)(words[0], to, HALF_PAIRS);
	if (low)
		ISA(transpose_block)(words[1], to + low, HALF_PAIRS);
}

// Packs one panel of A.
static void ISA(half_pack_a)(const operand *o, const float *src, int64_t x0, int64_t rows, int64_t height, int64_t parts, int64_t k0, int64_t n,
	half *to)
{
	const digit *in = &o->k.d[o->k.digits - 1];
	if (n == 0)
		return;
	if (in->off == 1 && in->n >= VL) {
		ISA(half_pack_adjacent)(o, src, x0, rows, height, parts, k0, n, to);
		return;
	}
	if (rows == height && height % ISA(SIDE) == 0 && n % HALF_STEP == 0 && ISA(pairs_lie)(o, rows) == ISA(ROWS_LIE)) {
		int64_t part = height * HALF_PAIRS, off[HALF_BLOCK / 2], *at = off;
		ISA(pair_offsets)(o, k0, n / 2, off);
		for (int64_t k = 0; k < n; k += HALF_STEP, to += 2 * parts * part, at += HALF_PAIRS)
			for (int64_t r = 0; r < rows; r += ISA(SIDE))
				ISA(turn_rows)(o, src, x0 + r, at, (float *)(void *)to + r * HALF_PAIRS, parts > 1 ? part : 0);
		return;
	}
	float columns[HALF_BLOCK * HALF_ROWS], pairs[2 * HALF_PAIRS * HALF_ROWS];
	ISA(pack)(o, src, x0, rows, height, k0, n, columns);
	for (int64_t k = 0; k < n; k += HALF_STEP) {
		ISA(pair_step)(columns + k * height, n - k, height, parts, (uint32_t *)(void *)pairs);
		for (const float *s = pairs; s < pairs + parts * HALF_PAIRS * height; s += HALF_PAIRS * height, to += height * HALF_STEP)
			for (int64_t p = 0; p < HALF_PAIRS; p += 4) {
				const float *row[4] = {s + p * height, s + (p + 1) * height, s + (p + 2) * height, s + (p + 3) * height};
				ISA(transpose4)(row, height, (float *)(void *)(to + 2 * p), HALF_PAIRS);
			}
	}
}

// Packs one panel of B.
static void ISA(half_pack_b)(const operand *o, const float *src, int64_t x0, int64_t cols, int64_t parts, int64_t k0, int64_t n, half *to)
{
	int64_t part = parts > 1 ? HALF_COLS * HALF_PAIRS : 0;
	if (cols % ISA(SIDE) == 0 && n % HALF_STEP == 0 && ISA(pairs_lie)(o, cols) == ISA(K_LIES)) {
		if (cols < HALF_COLS)
			memset(to, 0, n * parts * HALF_COLS * sizeof *to);
		for (int64_t k = 0; k < n; k += HALF_STEP, to += parts * HALF_COLS * HALF_STEP)
			for (int64_t c = 0; c < cols; c += ISA(SIDE))
				ISA(turn_columns)(o, ISA(element)(src, ISA(k_offset)(o, k0 + k) + (x0 + c) * o->x.d[0].off, o->narrow), (float *)(void *)to + c, HALF_COLS, part);
		return;
	}
	float rows[HALF_BLOCK * HALF_COLS];
	ISA(pack)(o, src, x0, cols, HALF_COLS, k0, n, rows);
	for (int64_t k = 0; k < n; k += HALF_STEP, to += parts * HALF_COLS * HALF_STEP)
		ISA(pair_step)(rows + k * HALF_COLS, n - k, HALF_COLS, parts, (uint32_t *)(void *)to);
}

// Packs cols columns of B as panels, which are panel elements apart. Rows of adjacent columns are read one after the other, since each may
// lie in another page of memory.
static void ISA(half_pack_panels_of)(const operand *o, const float *src, int64_t x0, int64_t cols, int64_t parts, int64_t k0, int64_t n, half *to,
	int64_t panel)
{
	if (n == 0)
		return;
	if (cols % ISA(SIDE) || n % HALF_STEP || ISA(pairs_lie)(o, cols) != ISA(ROWS_LIE)) {
		for (int64_t c = 0; c < cols; c += HALF_COLS, to += panel)
			ISA(half_pack_b)(o, src, x0 + c, cols - c < HALF_COLS ? cols - c : HALF_COLS, parts, k0, n, to);
		return;
	}
	int64_t part = parts > 1 ? HALF_COLS * HALF_PAIRS : 0, off[HALF_BLOCK / 2];
	ISA(pair_offsets)(o, k0, n / 2, off);
	for (int64_t p = 0; p < n / 2; p++) {
		const float *first = ISA(element)(src, off[p], o->narrow), *second = ISA(element)(src, off[p] + o->k.d[o->k.digits - 1].off, o->narrow);
		float *words = (float *)(void *)to + (p / HALF_PAIRS * parts * HALF_PAIRS + p % HALF_PAIRS) * HALF_COLS;
		for (int64_t c = 0; c < cols; c += HALF_COLS, words += panel / 2) {
			int64_t width = cols - c < HALF_COLS ? cols - c : HALF_COLS;
			ISA(pair_positions)(first, second, x0 + c, width, o->narrow, (uint32_t *)(void *)words, part ? (uint32_t *)(void *)(words + part) : 0);
			for (int64_t l = 0; l < parts && width < HALF_COLS; l++)
				memset(words + l * part + width, 0, (HALF_COLS - width) * sizeof *words);
		}
	}
}

static void ISA(half_pack_rows)(const product *q, const float *a, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	for (int64_t k = k0; k < k1; k += HALF_BLOCK) {
		int64_t kc = k1 - k < HALF_BLOCK ? k1 - k : HALF_BLOCK;
		for (int64_t p = p0; p < p1; p++) {
			int64_t h = q->height, rows = q->m - p * h < h ? q->m - p * h : h;
			ISA(half_pack_a)(&q->a, a, p * h, rows, h, q->parts, k, kc, to + (k - k0) * q->parts * panels * h + p * h * ISA(depth)(kc, q->parts));
		}
	}
}

static void ISA(half_pack_cols)(const product *q, const float *b, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1)
{
	int64_t cols = (p1 * HALF_COLS < q->n ? p1 * HALF_COLS : q->n) - p0 * HALF_COLS;
	for (int64_t k = k0; k < k1; k += HALF_BLOCK) {
		int64_t kc = k1 - k < HALF_BLOCK ? k1 - k : HALF_BLOCK, panel = HALF_COLS * ISA(depth)(kc, q->parts);
		ISA(half_pack_panels_of)(&q->b, b, p0 * HALF_COLS, cols, q->parts, k, kc, to + (k - k0) * q->parts * panels * HALF_COLS + p0 * panel, panel);
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

// Multiplies the panels of rows packed at a with one panel of columns, for kc values of the contraction.
static void ISA(half_sweep)(const product *q, const half_tiles *t, int64_t m0, int64_t m1, const ISA(columns) *n, int64_t kc, const half *a,
	const half *b, float *c, const int64_t *row, int add)
{
	float sums[HALF_ROWS * HALF_COLS] __attribute__((aligned(64)));
	int64_t h = q->height, depth = ISA(depth)(kc, q->parts);
	for (int64_t m = m0; m < m1; m += h, a += h * depth, row += h) {
		int64_t rows = m1 - m < h ? m1 - m : h;
		t->tile((kc + 1) / 2, q->parts, a, h, b, sums, rows, n->cols);
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
			int64_t kc = w->k1 - k < HALF_BLOCK ? w->k1 - k : HALF_BLOCK, depth = ISA(depth)(kc, q->parts);
			int64_t began = begin(w);
			for (int64_t m = m0; m < m1; m += h)
				ISA(half_pack_a)(&q->a, a, m, m1 - m < h ? m1 - m : h, h, q->parts, k, kc, room + (m - m0) * depth);
			end(w, began);
			for (int64_t n = w->n0; n < w->n1; n += HALF_COLS) {
				ISA(columns) cols;
				ISA(place)(q, n, HALF_COLS, &cols);
				const half *at = packed + (k - w->k0) * q->parts * panels * HALF_COLS + n * depth;
				ISA(half_sweep)(q, t, m0, m1, &cols, kc, room, at, c, row, w->accumulate || k > w->k0);
			}
			k += HALF_BLOCK;
		} while (k < w->k1);
	}
}

static void ISA(half_block_rows)(const product *q, part *w, const half_tiles *t, const half *packed, const float *b, float *c, half *room)
{
	int64_t h = q->height, width = (q->m + h - 1) / h * h, most = PART_ROWS / h * h, row[PART_ROWS];
	c += q->cbase;
	for (int64_t n = w->n0; n < w->n1; n += WIDE_PANELS * HALF_COLS) {
		int64_t wide = w->n1 - n < WIDE_PANELS * HALF_COLS ? w->n1 - n : WIDE_PANELS * HALF_COLS, k = w->k0;
		do {
			int64_t kc = w->k1 - k < HALF_BLOCK ? w->k1 - k : HALF_BLOCK, depth = ISA(depth)(kc, q->parts);
			int64_t began = begin(w);
			ISA(half_pack_panels_of)(&q->b, b, n, wide, q->parts, k, kc, room, HALF_COLS * depth);
			end(w, began);
			for (int64_t m0 = w->m0; m0 < w->m1; m0 += most) {
				int64_t m1 = w->m1 - m0 < most ? w->m1 : m0 + most;
				ISA(expand)(&q->cm, m0, m1 - m0, row, 0);
				const half *at = packed + (k - w->k0) * q->parts * width + m0 * depth;
				for (int64_t j = 0; j < wide; j += HALF_COLS) {
					ISA(columns) cols;
					ISA(place)(q, n + j, HALF_COLS, &cols);
					ISA(half_sweep)(q, t, m0, m1, &cols, kc, at, room + j * depth, c, row, w->accumulate || k > w->k0);
				}
			}
			k += HALF_BLOCK;
		} while (k < w->k1);
	}
}

#undef vt
