// Products of operands that lie in memory as float32 and are multiplied as bfloat16, in one of two ways. Where they hold bfloat16
// values, their lower 16 bits being zero, one product is exact. Other float32 are split into two parts, the nearest bfloat16 and
// that of what is left, and three products are summed: high·high + high·low + low·high, which leaves out up to 3·2⁻¹⁶ of a term.
// Operands are packed as bfloat16, in the layout of the processors' tiles, multiplied in pairs of k, and summed in float32. Units
// that multiply bfloat16 may take denormal operands and results for zero.
#ifndef SLOT_HALF_H
#define SLOT_HALF_H
#include "product.h"

typedef uint16_t half;

// The terms of a product of two parts each that are summed: the first of both, then these.
enum { LOW_B = 1, LOW_A };

// A block of C is computed at a time, in steps of the contraction.
enum { HALF_ROWS = 32, HALF_COLS = 32, HALF_STEP = 32, HALF_PAIRS = HALF_STEP / 2 };

// What multiplies.
enum { HALF_NONE, HALF_PLAIN, HALF_AVX512, HALF_AMX, HALF_SETS };

// How a set multiplies. begin and end enclose the tiles of one call from Go, since a goroutine changes threads between calls.
typedef struct {
	int64_t rows, unit; // the tallest panel of rows, and what a panel's height is a multiple of
	void (*begin)(void), (*end)(void);
	// Writes the first rows x cols elements of c[i*HALF_COLS + j] = sum over k of a[i, k] b[k, j], and may write others of
	// the block. a and b are panels (see half_pack_rows) of pairs of k, padded with zeros to whole steps.
	void (*tile)(int64_t pairs, int64_t parts, const half *a, int64_t height, const half *b, float *c, int64_t rows, int64_t cols);
} half_tiles;

const half_tiles *half_tiles_of(int64_t set);

int64_t half_rows(int set);
int64_t half_unit(int set);

// Why a set cannot be used here.
enum { HALF_HERE, HALF_NOT_BUILT, HALF_NOT_ANNOUNCED, HALF_NOT_PERMITTED };
int half_missing(int set);

// half_pack_rows and half_pack_cols pack as pack_rows and pack_cols do: for each block of BLOCK_K values of k, each panel, each
// step, each part. A step of A is [height][HALF_STEP], a step of B [HALF_PAIRS][HALF_COLS][2]; what lies outside is zero.
void half_pack_rows(const product *q, const float *a, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);
void half_pack_cols(const product *q, const float *b, half *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);

// half_block_cols and half_block_rows are block_cols and block_rows. room holds PART_ROWS or HALF_COLS times BLOCK_K times parts.
void half_block_cols(const product *q, part *w, const float *a, const half *packed, float *c, half *room);
void half_block_rows(const product *q, part *w, const half *packed, const float *b, float *c, half *room);

#endif
