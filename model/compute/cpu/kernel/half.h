// Products of operands that are stored as float32 and multiplied as bfloat16, in one of two ways. If they hold bfloat16
// values, with zeros in the lower 16 bits, one product is exact. Other float32 values are split into two parts, the nearest bfloat16 and
// that of the remainder, and three products are summed: high·high + high·low + low·high, which omits up to 3·2⁻¹⁶ of a term.
// Operands are packed as bfloat16 in the layout of the processors' tiles, multiplied in pairs of k, and summed in float32. Units
// that multiply bfloat16 may treat denormal operands and results as zero.
#ifndef SLOT_HALF_H
#define SLOT_HALF_H
#include "product.h"

// The summed terms of a product of two parts each: first high times high, then these.
enum { LOW_B = 1, LOW_A };

// A block of C is computed at a time, in steps of the contraction.
enum { HALF_ROWS = 32, HALF_COLS = 32, HALF_STEP = 32, HALF_PAIRS = HALF_STEP / 2, HALF_BLOCK = 512 };

// The sets that multiply.
enum { HALF_NONE, HALF_PLAIN, HALF_AVX512, HALF_AMX, HALF_SETS };

// A stretch of a contraction: its offsets in A and B, in floats or pairs, and its length. lanes has the columns of pairs of outputs that use it.
typedef struct {
	int64_t a, b, n, lanes;
	const float *next; // what the tiles that fetch the next block fetch: the lines of a panel's rows, which are apart floats from each other
	int64_t apart;
} run;

// One or two strips, each of side rows (8 or 16), times 16 or 32 columns: the sum over runs of A's pairs, those of the next row column words
// further on, times B's, those of the next k step words further on. Runs are of whole steps, of 16, 8 or 4 pairs, in which A moves by advance
// words. A result's rows are width floats apart.
typedef struct {
	const run *r;
	int64_t runs, side, pairs, column, advance, step, width;
	const float *a[2], *b;
	float *c[2];
	int below, right; // whether there are a second strip and a second half of the columns
	int add;          // adds to the results
	const float *next; // what is read after the strips
	int64_t lines;     // of 16 floats of it, which each step fetches to the L2 cache
} strips;

// How a set multiplies. begin and end enclose the tiles of one call from Go, because a goroutine may change threads between calls.
typedef struct {
	int64_t rows, unit; // the tallest panel of rows, and the unit of a panel's height
	void (*begin)(int64_t side, int64_t pairs), (*end)(void); // the number of rows of the tiles of A and C, 8 or 16, and of pairs of a step
	// Writes the first rows x cols elements of c[i*HALF_COLS + j] = sum over k of a[i, k] b[k, j], and may write others of
	// the block. a and b are panels (see half_pack_rows) of pairs of k, padded with zeros to whole steps.
	void (*tile)(int64_t pairs, int64_t parts, const half *a, int64_t height, const half *b, float *c, int64_t rows, int64_t cols);
	// Multiplies pairs that are read in place; null if the set has no tiles.
	void (*strips)(const strips *s);
} half_tiles;

const half_tiles *half_tiles_of(int64_t set);

// half_strips reports whether a set multiplies strips.
int half_strips(int set);

int64_t half_rows(int set);
int64_t half_unit(int set);

// Reasons why a set cannot be used.
enum { HALF_HERE, HALF_NOT_BUILT, HALF_NOT_ANNOUNCED, HALF_NOT_PERMITTED };
int half_missing(int set);

// Whether the processor converts to bfloat16.
extern int converts;

// half_tiles_saved reports whether the operating system saves the tiles of AMX; if not, every instruction of AMX is invalid. x86 only.
int half_tiles_saved(void);

// half_pack_rows and half_pack_cols pack in the order of pack_rows and pack_cols: for each block of HALF_BLOCK values of k, each panel, each
// step, each part. A step of A is [height][HALF_STEP], a step of B [HALF_PAIRS][HALF_COLS][2]; elements outside the operand are zero.
void half_pack_rows(const product *q, const float *a, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);
void half_pack_cols(const product *q, const float *b, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);

// half_block_cols and half_block_rows correspond to block_cols and block_rows. room holds PART_ROWS or HALF_COLS times HALF_BLOCK times parts.
void half_block_cols(const product *q, part *w, const float *a, const half *packed, float *c, half *room);
void half_block_rows(const product *q, part *w, const half *packed, const float *b, float *c, half *room);

#endif
