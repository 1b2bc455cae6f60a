// The interpreter of element-wise programs and the reductions for one instruction set. See program.h and isa.h.
#include "vector.h"
#include "math_body.h"
#include "round_body.h"

static inline vf ISA(load)(const float *p) { return *(const vf *)p; }
static inline void ISA(store)(float *p, vf v) { *(vf *)p = v; }

static inline vf ISA(load_part)(const float *p, int64_t n)
{
	float part[VL] = {0};
	memcpy(part, p, 4 * n);
	return *(vf *)part;
}

static inline void ISA(store_part)(float *p, vf v, int64_t n)
{
	float part[VL];
	*(vf *)part = v;
	memcpy(p, part, 4 * n);
}

// Loops over n elements. An operand that is one value for all elements is stored VL times, and each step reads the same vector.
#define LOOP(EXPR, Y, Z)                                                                                  \
	{                                                                                                 \
		for (; n >= VL; n -= VL, d += VL, a += sa, b += sb, c += sc) {                            \
			vf x = ISA(load)(a), y = Y(load)(b), z = Z(load)(c);                              \
			(void)y, (void)z;                                                                 \
			ISA(store)(d, EXPR);                                                              \
		}                                                                                         \
		if (n > 0) {                                                                              \
			vf x = ISA(load_part)(a, n), y = Y(load_part)(b, n), z = Z(load_part)(c, n);      \
			(void)y, (void)z;                                                                 \
			ISA(store_part)(d, EXPR, n);                                                      \
		}                                                                                         \
	}
#define NONE(how) NONE_##how
#define NONE_load(p) ((vf){0})
#define NONE_load_part(p, n) ((vf){0})

#define UNARY(OP, EXPR) \
	case OP: LOOP(EXPR, NONE, NONE) break;
#define BINARY(OP, EXPR) \
	case OP: LOOP(EXPR, ISA, NONE) break;
#define TERNARY(OP, EXPR) \
	case OP: LOOP(EXPR, ISA, ISA) break;

// One operation on a block. A mask has all bits of an element set or none. Bit i of scalar means that operand i is one value.
static void ISA(step)(int op, int scalar, float *d, const float *a, const float *b, const float *c, int64_t n)
{
	int64_t sa = VL, sb = VL, sc = VL;
	vf one[3];
	if (scalar & 1)
		one[0] = SPLAT(a[0]), a = (float *)&one[0], sa = 0;
	if (scalar & 2)
		one[1] = SPLAT(b[0]), b = (float *)&one[1], sb = 0;
	if (scalar & 4)
		one[2] = SPLAT(c[0]), c = (float *)&one[2], sc = 0;
	switch (op) {
		UNARY(OP_COPY, x)
		UNARY(OP_NEG, FLOAT(BITS(x) ^ (int32_t)0x80000000))
		UNARY(OP_ABS, ISA(vabs)(x))
		UNARY(OP_SIGN, ISA(vsign)(x))
		UNARY(OP_EXP, ISA(vexp)(x))
		UNARY(OP_EXPM1, ISA(vexpm1)(x))
		UNARY(OP_LOG, ISA(vlog)(x))
		UNARY(OP_LOG1P, ISA(vlog1p)(x))
		UNARY(OP_SQRT, ISA(vsqrt)(x))
		UNARY(OP_RSQRT, 1.0f / ISA(vsqrt)(x))
		UNARY(OP_TANH, ISA(vtanh)(x))
		UNARY(OP_LOGISTIC, ISA(vlogistic)(x))
		UNARY(OP_ERF, ISA(verf)(x))
		UNARY(OP_SIN, ISA(vsin)(x))
		UNARY(OP_COS, ISA(vcos)(x))
		UNARY(OP_FLOOR, ISA(vfloor)(x))
		UNARY(OP_CEIL, ISA(vceil)(x))
		UNARY(OP_ROUND, ISA(vround)(x))
		UNARY(OP_IS_FINITE, FLOAT((BITS(x) & 0x7f800000) != 0x7f800000))
		UNARY(OP_NOT, FLOAT(~BITS(x)))
		UNARY(OP_TO_FLOAT, FLOAT(BITS(x) & BITS(SPLAT(1.0f))))
		UNARY(OP_TO_MASK, FLOAT(x != 0.0f))
		UNARY(OP_ROUND_BF16, ISA(round_bf16)(x))
		BINARY(OP_ADD, x + y)
		BINARY(OP_SUB, x - y)
		BINARY(OP_MUL, x *y)
		BINARY(OP_DIV, x / y)
		BINARY(OP_MAX, ISA(vmax)(x, y))
		BINARY(OP_MIN, ISA(vmin)(x, y))
		BINARY(OP_POW, ISA(vpow)(x, y))
		BINARY(OP_REM, ISA(vrem)(x, y))
		BINARY(OP_AND, FLOAT(BITS(x) & BITS(y)))
		BINARY(OP_OR, FLOAT(BITS(x) | BITS(y)))
		BINARY(OP_XOR, FLOAT(BITS(x) ^ BITS(y)))
		BINARY(OP_EQUAL, FLOAT(x == y))
		BINARY(OP_NOT_EQUAL, FLOAT(x != y))
		BINARY(OP_GREATER, FLOAT(x > y))
		BINARY(OP_GREATER_EQUAL, FLOAT(x >= y))
		BINARY(OP_LESS, FLOAT(x < y))
		BINARY(OP_LESS_EQUAL, FLOAT(x <= y))
		TERNARY(OP_SELECT, ISA(pick)(BITS(x), y, z))
		TERNARY(OP_CLAMP, ISA(vmin)(ISA(vmax)(y, x), z))
		TERNARY(OP_FMA, x *y + z)
	}
}

// ---- inputs ----

// Converts n elements at a distance of step from the type of an input to floats or masks.
#define CONVERT(TYPE, EXPR)                                                       \
	{                                                                         \
		const TYPE *s = (const TYPE *)src + offset;                       \
		if (step == 1)                                                    \
			for (int64_t i = 0; i < n; i++)                           \
				to[i] = EXPR(s[i]);                               \
		else                                                              \
			for (int64_t i = 0; i < n; i++)                           \
				to[i] = EXPR(s[i * step]);                        \
	}
#define AS_FLOAT(x) ((float)(x))
#define AS_MASK(x) ((x) ? all : 0.0f)
#define AS_WIDE(x) (((union { uint32_t i; float f; }){.i = (uint32_t)(x) << 16}).f)

static void ISA(fetch)(int64_t type, const void *src, int64_t offset, int64_t step, float *to, int64_t n)
{
	const float all = ((union { int32_t i; float f; }){.i = -1}).f;
	switch (type) {
	case TYPE_FLOAT: {
		const float *s = (const float *)src + offset;
		if (step == 1) {
			memcpy(to, s, 4 * n);
		} else if (step == 0) {
			float v = *s;
			for (int64_t i = 0; i < n; i++)
				to[i] = v;
		} else {
			for (int64_t i = 0; i < n; i++)
				to[i] = s[i * step];
		}
		return;
	}
	case TYPE_UINT8: CONVERT(uint8_t, AS_FLOAT) return;
	case TYPE_INT32: CONVERT(int32_t, AS_FLOAT) return;
	case TYPE_BOOL: CONVERT(uint8_t, AS_MASK) return;
	case TYPE_BFLOAT16: CONVERT(half, AS_WIDE) return;
	}
}

// Loads elements [start, start+n) in the program's order. *held is the offset of the block that the register holds.
static void ISA(fill)(const loading *l, const void *src, int64_t start, float *to, int64_t n, int64_t *held, int64_t *length)
{
	int64_t at[LOAD_AXES], rest = start, offset = 0;
	for (int64_t j = 0; j < l->axes; j++) {
		at[j] = j + 1 < l->axes ? rest % l->n[j] : rest;
		rest /= l->n[j];
		offset += at[j] * l->stride[j];
	}
	if (l->axes == 1 || (l->stride[1] == 0 && at[0] == 0 && (l->n[1] - at[1]) * l->n[0] >= n)) {
		// the block repeats one run of the innermost axis, or is one
		if (*held == offset && *length >= n)
			return;
		*held = offset, *length = n;
		int64_t run = l->axes == 1 || n < l->n[0] ? n : l->n[0];
		ISA(fetch)(l->type, src, offset, l->stride[0], to, run);
		for (int64_t have = run; have < n; have *= 2)
			memcpy(to + have, to, 4 * (n - have < have ? n - have : have));
		return;
	}
	*held = -1;
	while (n > 0) {
		int64_t run = l->n[0] - at[0] < n ? l->n[0] - at[0] : n;
		ISA(fetch)(l->type, src, offset, l->stride[0], to, run);
		to += run, n -= run;
		offset -= at[0] * l->stride[0];
		at[0] = 0;
		for (int64_t j = 1; j < l->axes; j++) {
			offset += l->stride[j];
			if (++at[j] < l->n[j] || j + 1 == l->axes)
				break;
			offset -= at[j] * l->stride[j];
			at[j] = 0;
		}
	}
}

static void ISA(empty)(const storing *s, void *to, const float *from, int64_t start, int64_t n)
{
	const int32_t *bits = (const int32_t *)from;
	switch (s->type) {
	case TYPE_BFLOAT16:
		for (int64_t i = 0; i < n; i++)
			((half *)to)[start + i] = (half)((uint32_t)bits[i] >> 16);
		return;
	case TYPE_ROUNDED:
#if defined(SET_AVX512)
		if (converts) {
			store_converted(from, 0, n, (half *)to + start);
			return;
		}
#endif
		ISA(store_rounded)(from, 0, n, (half *)to + start);
		return;
	case TYPE_BOOL:
		for (int64_t i = 0; i < n; i++)
			((uint8_t *)to)[start + i] = bits[i] & 1;
	}
}

// ---- reductions ----

static inline float ISA(neutral)(int64_t kind)
{
	return kind == REDUCE_SUM ? 0.0f : kind == REDUCE_MAX ? -__builtin_inff() : __builtin_inff();
}

static inline vf ISA(join)(int64_t kind, vf x, vf y)
{
	if (kind == REDUCE_SUM)
		return x + y;
	return kind == REDUCE_MAX ? ISA(vmax)(x, y) : ISA(vmin)(x, y);
}

static inline double ISA(join1)(int64_t kind, double x, double y)
{
	if (kind == REDUCE_SUM)
		return x + y;
	if (x != x || y != y)
		return x != x ? x : y;
	return kind == REDUCE_MAX ? (x > y ? x : y) : (x < y ? x : y);
}

// One number of n adjacent floats: sums in blocks of 512, each in 4 vectors, added up in double precision.
#define FOLD(KIND, NAME)                                                                             \
	static double ISA(NAME)(const float *p, int64_t n)                                           \
	{                                                                                            \
		double total = ISA(neutral)(KIND);                                                   \
		while (n > 0) {                                                                      \
			int64_t len = n < 512 ? n : 512, i = 0;                                      \
			vf s[4];                                                                     \
			for (int u = 0; u < 4; u++)                                                  \
				s[u] = SPLAT(ISA(neutral)(KIND));                                    \
			for (; i + 4 * VL <= len; i += 4 * VL)                                       \
				for (int u = 0; u < 4; u++)                                          \
					s[u] = ISA(join)(KIND, s[u], ISA(load)(p + i + u * VL));     \
			for (; i + VL <= len; i += VL)                                               \
				s[0] = ISA(join)(KIND, s[0], ISA(load)(p + i));                      \
			vf v = ISA(join)(KIND, ISA(join)(KIND, s[0], s[1]), ISA(join)(KIND, s[2], s[3])); \
			double sum = ISA(neutral)(KIND);                                             \
			if (len >= VL)                                                               \
				for (int j = 0; j < VL; j++)                                         \
					sum = ISA(join1)(KIND, sum, v[j]);                           \
			for (; i < len; i++)                                                         \
				sum = ISA(join1)(KIND, sum, p[i]);                                   \
			total = ISA(join1)(KIND, total, sum);                                        \
			p += len, n -= len;                                                          \
		}                                                                                    \
		return total;                                                                        \
	}
FOLD(REDUCE_SUM, fold_sum)
FOLD(REDUCE_MAX, fold_max)
FOLD(REDUCE_MIN, fold_min)

static double ISA(fold)(int64_t kind, const float *p, int64_t n)
{
	return kind == REDUCE_SUM ? ISA(fold_sum)(p, n) : kind == REDUCE_MAX ? ISA(fold_max)(p, n) : ISA(fold_min)(p, n);
}

typedef double ISA(vd) __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef float ISA(half_vf) __attribute__((vector_size(2 * VL), aligned(4), may_alias));

// Joins a vector to VL accumulators.
static inline void ISA(join_doubles)(int64_t kind, double *acc, vf s)
{
	float part[VL];
	*(vf *)part = s;
	if (kind == REDUCE_SUM) {
		for (int i = 0; i < VL; i += VL / 2)
			*(ISA(vd) *)(acc + i) += __builtin_convertvector(*(ISA(half_vf) *)(part + i), ISA(vd));
		return;
	}
	for (int i = 0; i < VL; i++)
		acc[i] = ISA(join1)(kind, acc[i], part[i]);
}

// Adds rows of the given stride to n double accumulators; up to SUMMED_ROWS rows are added in single precision first.
#define FOLD_COLUMNS(KIND, vectors)                                                                        \
	for (; j + vectors * VL <= n; j += vectors * VL) {                                                 \
		vf s[vectors];                                                                             \
		for (int u = 0; u < vectors; u++)                                                          \
			s[u] = SPLAT(ISA(neutral)(KIND));                                                  \
		for (int64_t r = r0; r < r1; r++)                                                          \
			for (int u = 0; u < vectors; u++)                                                  \
				s[u] = ISA(join)(KIND, s[u], ISA(load)(p + r * stride + j + u * VL));      \
		for (int u = 0; u < vectors; u++)                                                          \
			ISA(join_doubles)(KIND, acc + j + u * VL, s[u]);                                   \
	}
#define FOLD_ROWS(KIND, NAME)                                                                              \
	static void ISA(NAME)(const float *p, int64_t rows, int64_t stride, int64_t n, double *acc)        \
	{                                                                                                  \
		for (int64_t r0 = 0; r0 < rows; r0 += SUMMED_ROWS) {                                       \
			int64_t r1 = rows - r0 < SUMMED_ROWS ? rows : r0 + SUMMED_ROWS, j = 0;             \
			FOLD_COLUMNS(KIND, 4)                                                              \
			FOLD_COLUMNS(KIND, 1)                                                              \
			for (; j < n; j++)                                                                 \
				for (int64_t r = r0; r < r1; r++)                                          \
					acc[j] = ISA(join1)(KIND, acc[j], p[r * stride + j]);              \
		}                                                                                          \
	}
FOLD_ROWS(REDUCE_SUM, fold_rows_sum)
FOLD_ROWS(REDUCE_MAX, fold_rows_max)
FOLD_ROWS(REDUCE_MIN, fold_rows_min)

// The same for adjacent rows that are so short that several fit into a vector.
#define FOLD_SHORT(KIND, NAME)                                                                                    \
	static void ISA(NAME)(const float *p, int64_t rows, int64_t n, double *acc)                               \
	{                                                                                                         \
		int64_t size = rows * n, i = 0;                                                                   \
		while (size >= VL) {                                                                              \
			int64_t len = size < 64 * VL ? size / VL * VL : 64 * VL;                                  \
			vf s[4];                                                                                  \
			for (int u = 0; u < 4; u++)                                                               \
				s[u] = SPLAT(ISA(neutral)(KIND));                                                 \
			for (i = 0; i + 4 * VL <= len; i += 4 * VL)                                               \
				for (int u = 0; u < 4; u++)                                                       \
					s[u] = ISA(join)(KIND, s[u], ISA(load)(p + i + u * VL));                  \
			for (; i < len; i += VL)                                                                  \
				s[0] = ISA(join)(KIND, s[0], ISA(load)(p + i));                                   \
			vf v = ISA(join)(KIND, ISA(join)(KIND, s[0], s[1]), ISA(join)(KIND, s[2], s[3]));         \
			for (i = 0; i < VL; i++)                                                                  \
				acc[i & (n - 1)] = ISA(join1)(KIND, acc[i & (n - 1)], v[i]);                      \
			p += len, size -= len;                                                                    \
		}                                                                                                 \
		for (i = 0; i < size; i++)                                                                        \
			acc[i & (n - 1)] = ISA(join1)(KIND, acc[i & (n - 1)], p[i]);                              \
	}
FOLD_SHORT(REDUCE_SUM, fold_short_sum)
FOLD_SHORT(REDUCE_MAX, fold_short_max)
FOLD_SHORT(REDUCE_MIN, fold_short_min)

static void ISA(fold_rows)(int64_t kind, const float *p, int64_t rows, int64_t stride, int64_t n, double *acc)
{
	if (n < VL && stride == n && VL % n == 0) {
		if (kind == REDUCE_SUM)
			ISA(fold_short_sum)(p, rows, n, acc);
		else if (kind == REDUCE_MAX)
			ISA(fold_short_max)(p, rows, n, acc);
		else
			ISA(fold_short_min)(p, rows, n, acc);
		return;
	}
	if (kind == REDUCE_SUM)
		ISA(fold_rows_sum)(p, rows, stride, n, acc);
	else if (kind == REDUCE_MAX)
		ISA(fold_rows_max)(p, rows, stride, n, acc);
	else
		ISA(fold_rows_min)(p, rows, stride, n, acc);
}

// Writes n results and resets their accumulators.
static void ISA(give)(double *acc, float *to, int64_t n, int64_t kind)
{
	for (int64_t j = 0; j < n; j++)
		to[j] = (float)acc[j], acc[j] = ISA(neutral)(kind);
}

// Reduces a block that starts at a row and has whole rows; row counts rows since the last result.
static void ISA(reduce_block)(const program *p, const reducing *r, const float *v, int64_t n, int64_t row, double *acc, float *to,
	int64_t last)
{
	int64_t rows = n / p->inner;
	while (rows > 0) {
		int64_t take = p->r - row < rows ? p->r - row : rows;
		if (p->inner == 1)
			acc[0] = ISA(join1)(r->kind, acc[0], ISA(fold)(r->kind, v, take));
		else
			ISA(fold_rows)(r->kind, v, take, p->inner, p->inner, acc);
		v += take * p->inner, rows -= take, row += take;
		if (row == p->r || (last && rows == 0)) {
			ISA(give)(acc, to, p->inner, r->kind);
			to += p->inner, row = 0;
		}
	}
}

static inline float *ISA(locate)(const slot *s, const uintptr_t *pointers, float *scratch, int64_t start)
{
	switch (s->kind) {
	case IN_REGISTER: return scratch + s->at;
	case IN_MEMORY: return (float *)pointers[s->index] + start;
	case IN_HALVES:
	case TO_HALVES: return (float *)(void *)((half *)pointers[s->index] + start);
	case IN_SCALAR: return (float *)pointers[s->index];
	}
	return (float *)&s->at;
}

static void ISA(interpret)(const instruction *code, int64_t codes, float *const *at, int64_t n)
{
	for (const instruction *c = code; c < code + codes; c++)
		ISA(step)(c->op, c->scalar, at[c->dst], at[c->src[0]], at[c->src[1]], at[c->src[2]], n);
}

// Interprets elements [i, n) of a block, and writes their locations to rest.
static void ISA(interpret_rest)(const program *p, const slot *slots, const instruction *code, float *const *at, int64_t i, int64_t n, float *scratch, float **rest)
{
	for (int64_t k = 0; k < p->slots; k++)
		switch (slots[k].kind) {
		case IN_HALVES:
			ISA(fetch)(TYPE_BFLOAT16, at[k], i, 1, scratch + slots[k].at, n - i); // fall through
		case TO_HALVES: rest[k] = scratch + slots[k].at; break;
		case IN_SCALAR:
		case IN_CONSTANT: rest[k] = at[k]; break;
		default: rest[k] = at[k] + i;
		}
	ISA(interpret)(code, p->codes, rest, n - i);
	for (int64_t k = 0; k < p->slots; k++)
		if (slots[k].kind == TO_HALVES)
			ISA(empty)(&(storing){.type = TYPE_BFLOAT16}, at[k], rest[k], i, n - i);
}

// Computes all instructions for a block. Elements that do not fill a vector of the machine code are interpreted.
static void ISA(compute)(const program *p, const slot *slots, const instruction *code, const stretch *stretches, float *const *at, int64_t n,
	float *scratch)
{
	int64_t whole = p->stretches ? n / p->lanes * p->lanes : 0;
	for (const stretch *s = stretches; whole && s < stretches + p->stretches; s++) {
		if (s->native)
			((native)s->native)(at, whole * (int64_t)sizeof(half), 0, 0);
		else
			ISA(interpret)(code + s->first, s->last - s->first, at, whole);
	}
	if (whole == n)
		return;
	float *rest[MAX_SLOTS];
	ISA(interpret_rest)(p, slots, code, at, whole, n, scratch, rest);
}

// Computes elements [i, end) of a block, with their sums, as machine code.
static void ISA(sum)(const program *p, const stretch *s, float *const *at, int64_t i, int64_t end, float *sums)
{
	memset(sums, 0, p->reductions * p->summed * sizeof(float));
	((native)s->native)(at, end * (int64_t)sizeof(half), sums, i * (int64_t)sizeof(half));
}

// Computes a block of one number for each reduction, in the order of fold_sum. Elements that do not fill a run are interpreted.
static void ISA(sum_runs)(const program *p, const slot *slots, const instruction *code, const stretch *s, const reducing *reductions,
	float *const *at, int64_t n, double *acc, float *sums, float *scratch)
{
	double total[MOST_SUMS] = {0};
	int64_t whole = n / SUMMED_RUN * SUMMED_RUN, lanes = p->summed / 4;
	for (int64_t i = 0; i < whole; i += SUMMED_RUN) {
		ISA(sum)(p, s, at, i, i + SUMMED_RUN, sums);
		for (int64_t k = 0; k < p->reductions; k++) {
			const float *x = sums + k * p->summed;
			double sum = 0;
			for (int64_t j = 0; j < lanes; j++)
				sum += (x[j] + x[j + lanes]) + (x[j + 2 * lanes] + x[j + 3 * lanes]);
			total[k] += sum;
		}
	}
	if (whole < n) {
		float *rest[MAX_SLOTS];
		ISA(interpret_rest)(p, slots, code, at, whole, n, scratch, rest);
		for (int64_t k = 0; k < p->reductions; k++)
			total[k] += ISA(fold_sum)(rest[reductions[k].slot], n - whole);
	}
	for (int64_t k = 0; k < p->reductions; k++)
		acc[k] += total[k];
}

// Computes a block that is part of one result of the reductions, and adds its sums to the accumulators. Machine code sums up to SUMMED_ROWS rows.
static void ISA(sum_block)(const program *p, const stretch *s, float *const *at, int64_t n, double *acc, float *sums)
{
	for (int64_t i = 0; i < n; i += SUMMED_ROWS * p->inner) {
		int64_t end = n - i < SUMMED_ROWS * p->inner ? n : i + SUMMED_ROWS * p->inner;
		ISA(sum)(p, s, at, i, end, sums);
		for (int64_t j = 0; j < p->reductions * p->inner; j++)
			acc[j] += sums[j];
	}
}

static void ISA(run_program)(const program *p, const slot *slots, const instruction *code, const stretch *stretches,
	const loading *loads, const storing *stores, const reducing *reductions, const uintptr_t *pointers, float *scratch, int64_t first, int64_t lo, int64_t hi)
{
	float *at[MAX_SLOTS];
	int64_t held[MAX_SLOTS], length[MAX_SLOTS], row = 0, done = first, n;
	double *acc = (double *)(scratch + p->room);
	float *sums = (float *)(acc + p->reductions * p->inner);
	int apart = p->rowed || p->reductions && p->r * p->inner >= p->block; // no block is part of two results, or has rows that share other values
	for (int64_t i = 0; i < p->loads; i++)
		held[i] = -1;
	for (int64_t i = 0; i < p->reductions; i++)
		for (int64_t j = 0; j < p->inner; j++)
			acc[i * p->inner + j] = ISA(neutral)(reductions[i].kind);
	if (p->reductions || p->rowed)
		row = lo / p->inner % p->r;
	for (int64_t start = lo; start < hi; start += n) {
		n = hi - start < p->block ? hi - start : p->block;
		if (apart && (p->r - row) * p->inner < n)
			n = (p->r - row) * p->inner;
		for (int64_t i = 0; i < p->slots; i++)
			at[i] = ISA(locate)(&slots[i], pointers, scratch, start);
		for (int64_t i = 0; i < p->loads; i++)
			ISA(fill)(&loads[i], (const void *)pointers[loads[i].pointer], start, at[loads[i].slot], loads[i].once ? p->inner : n, &held[i], &length[i]);
		if (p->summed && p->inner == 1)
			ISA(sum_runs)(p, slots, code, stretches, reductions, at, n, acc, sums, scratch);
		else if (p->summed)
			ISA(sum_block)(p, stretches, at, n, acc, sums);
		else
			ISA(compute)(p, slots, code, stretches, at, n, scratch);
		for (int64_t i = 0; i < p->stores; i++)
			ISA(empty)(&stores[i], (void *)pointers[stores[i].pointer], at[stores[i].slot], start, n);
		if (!p->reductions && !p->rowed)
			continue;
		int64_t next = row + n / p->inner;
		for (int64_t i = 0; i < p->reductions; i++) {
			float *to = (float *)pointers[reductions[i].pointer] + done * p->inner;
			if (!p->summed)
				ISA(reduce_block)(p, &reductions[i], at[reductions[i].slot], n, row, acc + i * p->inner, to, start + n == hi);
			else if (next == p->r || start + n == hi)
				ISA(give)(acc + i * p->inner, to, p->inner, REDUCE_SUM);
		}
		row = next;
		done += row / p->r;
		row %= p->r;
	}
}

enum { ISA(REDUCE_COLUMNS) = 512 };

static void ISA(reduce_range)(int64_t kind, const float *x, float *y, int64_t r, int64_t inner, int64_t o0, int64_t o1, int64_t r0,
	int64_t r1, int64_t c0, int64_t c1, int64_t y_outer)
{
	double acc[ISA(REDUCE_COLUMNS)];
	for (int64_t o = o0; o < o1; o++) {
		const float *from = x + (o * r + r0) * inner;
		float *to = y + o * y_outer;
		if (inner == 1) {
			*to = (float)ISA(fold)(kind, from, r1 - r0);
			continue;
		}
		for (int64_t c = c0; c < c1; c += ISA(REDUCE_COLUMNS)) {
			int64_t n = c1 - c < ISA(REDUCE_COLUMNS) ? c1 - c : ISA(REDUCE_COLUMNS);
			for (int64_t j = 0; j < n; j++)
				acc[j] = ISA(neutral)(kind);
			ISA(fold_rows)(kind, from + c, r1 - r0, inner, n, acc);
			for (int64_t j = 0; j < n; j++)
				to[c + j] = (float)acc[j];
		}
	}
}

static void ISA(join_parts)(int64_t kind, const float *x, float *y, int64_t parts, int64_t inner, int64_t lo, int64_t hi)
{
	double acc[ISA(REDUCE_COLUMNS)];
	for (int64_t n; lo < hi; lo += n) {
		int64_t c = lo % inner, rest = inner - c < hi - lo ? inner - c : hi - lo;
		const float *from = x + lo / inner * parts * inner + c;
		n = rest < ISA(REDUCE_COLUMNS) ? rest : ISA(REDUCE_COLUMNS);
		for (int64_t j = 0; j < n; j++)
			acc[j] = ISA(neutral)(kind);
		for (int64_t s = 0; s < parts; s++)
			ISA(fold_rows)(kind, from + s * inner, 1, inner, n, acc);
		ISA(give)(acc, y + lo, n, kind);
	}
}

static const program_kernels ISA(program_set) = {ISA(run_program), ISA(reduce_range), ISA(join_parts)};

#undef V
#undef SPLAT
#undef BITS
#undef FLOAT
#undef LOOP
#undef NONE
#undef NONE_load
#undef NONE_load_part
#undef UNARY
#undef BINARY
#undef TERNARY
#undef CONVERT
#undef AS_FLOAT
#undef AS_MASK
#undef AS_WIDE
#undef FOLD
#undef FOLD_COLUMNS
#undef FOLD_ROWS
#undef FOLD_SHORT
#undef vf
#undef vi
#undef v4
