// Programs of element-wise operations over a linear range of elements, computed block by block in the L1 cache, with
// an optional reduction of their values. See program.go for the meaning of each part.
#ifndef SLOT_PROGRAM_H
#define SLOT_PROGRAM_H
#include <stdint.h>

enum { MAX_SLOTS = 192, LOAD_AXES = 8 };

// The operations. Those from OP_ADD to OP_LESS_EQUAL take two operands; the last three take three, the rest one.
enum {
	OP_COPY, OP_NEG, OP_ABS, OP_SIGN, OP_EXP, OP_EXPM1, OP_LOG, OP_LOG1P, OP_SQRT, OP_RSQRT, OP_TANH, OP_LOGISTIC, OP_ERF,
	OP_SIN, OP_COS, OP_FLOOR, OP_CEIL, OP_ROUND, OP_IS_FINITE, OP_NOT, OP_TO_FLOAT, OP_TO_MASK, OP_ROUND_BF16,
	OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MAX, OP_MIN, OP_POW, OP_REM, OP_AND, OP_OR, OP_XOR,
	OP_EQUAL, OP_NOT_EQUAL, OP_GREATER, OP_GREATER_EQUAL, OP_LESS, OP_LESS_EQUAL,
	OP_SELECT, OP_CLAMP, OP_FMA,
};

// Location of a block of values while it is computed: at an offset of the scratch, in an array, in one element of an array,
// (IN_CONSTANT) as one float in the slot itself, or in an array of bfloat16 that is read (IN_HALVES) or written (TO_HALVES), with room at an
// offset of the scratch for the values that are interpreted. index is that of the pointer.
enum { IN_REGISTER, IN_MEMORY, IN_SCALAR, IN_CONSTANT, IN_HALVES, TO_HALVES };
typedef struct {
	int64_t kind, index, at;
} slot;

// Bit i of scalar is set if operand i is one value for all elements.
typedef struct {
	int32_t op, dst, src[3], scalar;
} instruction;

// How an input is loaded into its register: axes innermost first, strides in elements. For type, see program.go. A loaded
// block may stay in the register from one block to the next while the outer axes do not move.
enum { TYPE_FLOAT, TYPE_UINT8, TYPE_INT32, TYPE_BOOL, TYPE_BFLOAT16, TYPE_ROUNDED };
typedef struct {
	int64_t slot, pointer, type, axes;
	int64_t once; // only one row is read for all rows of a result
	int64_t n[LOAD_AXES], stride[LOAD_AXES];
} loading;

// A result that is copied from its register at the end of a block: TYPE_BFLOAT16 is the upper half of a float, TYPE_ROUNDED the nearest bfloat16.
typedef struct {
	int64_t slot, pointer, type;
} storing;

// A reduction of a slot's values over a space [.., r, inner]: sum, maximum or minimum of r values.
enum { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN };
typedef struct {
	int64_t slot, kind, pointer;
} reducing;

// Instructions [first, last), as machine code, or 0 if they are interpreted. Reductions are sums of at most SUMMED_ROWS rows in single precision.
enum { SUMMED_ROWS = 64, SUMMED_RUN = 512, MOST_SUMS = 4 };
typedef struct {
	uintptr_t native;
	int64_t first, last;
} stretch;

typedef struct {
	int64_t size, block; // number of elements in total, and computed at a time
	int64_t slots, codes, stretches, loads, stores, reductions;
	int64_t r, inner;    // of the reductions; without any, of the rows that share values, if rowed
	int64_t lanes;       // elements of a vector of the machine code
	int64_t rowed;       // the machine code reads values that r rows of inner elements share once; blocks are whole rows
	int64_t summed;      // floats of each reduction's sums that the machine code computes, too: inner, or four vectors if inner is 1; 0 if it computes none
	int64_t room;        // floats of the scratch before the reductions' accumulators
} program;

int select_program_set(int set);
int program_set(void);

// run_program computes elements [lo, hi). pointers has the inputs, outputs and results of reductions. If there are
// reductions, block and lo are multiples of inner, and each run of up to r rows gives the next inner results, from first on.
void run_program(const program *p, const slot *slots, const instruction *code, const stretch *stretches, const loading *loads,
	const storing *stores, const reducing *reductions, const uintptr_t *pointers, float *scratch, int64_t first, int64_t lo, int64_t hi);

// reduce_range reduces x [outer, r, inner] over rows [r0, r1) to y, for the outer indices [o0, o1) and columns [c0, c1).
void reduce_range(int64_t kind, const float *x, float *y, int64_t r, int64_t inner, int64_t o0, int64_t o1, int64_t r0, int64_t r1,
	int64_t c0, int64_t c1, int64_t y_outer);

// join_parts reduces x [outer, parts, inner] over its parts, in double precision, to results [lo, hi) of y [outer, inner].
void join_parts(int64_t kind, const float *x, float *y, int64_t parts, int64_t inner, int64_t lo, int64_t hi);

#endif
