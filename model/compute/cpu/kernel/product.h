// Products of two operands, C[m, n] (+)= sum over k of A[m, k] B[k, n]. Each operand is read through index
// arithmetic: a matrix of any strides, or the patches of an image in a convolution.
#ifndef SLOT_PRODUCT_H
#define SLOT_PRODUCT_H
#include <stdint.h>

typedef uint16_t half; // a bfloat16

enum { MAX_DIGITS = 6, MAX_DIMS = 3, MAX_COLS = 32, BLOCK_K = 256, PART_ROWS = 192, FEW_PANELS = 2, WIDE_PANELS = 8, LONG_PANELS = 16,
	PLACED_AHEAD = 64, PLACED_TILES = 4, GROUP_FLOATS = 1 << 15 };

// One digit of a mixed-radix index. off is what a step adds to the offset, in elements. dim is the spatial dimension in which
// the digit moves, or -1; step is the distance in pixels, applied once every per values of the digit.
typedef struct {
	int64_t n, off, step, per;
	int32_t dim, unused;
} digit;

// The digits of one linear index, outermost first.
typedef struct {
	int64_t digits;
	digit d[MAX_DIGITS];
} axes;

// How one side of a product is read. x is the row of A or the column of B. An element whose position is outside
// [0, size) in some spatial dimension is zero; a size of -1 means that the dimension has no bounds to check. narrow: its elements are stored as
// bfloat16.
typedef struct {
	axes x, k;
	int64_t base;
	int64_t pos[MAX_DIMS], size[MAX_DIMS];
	int64_t bounded, narrow;
} operand;

typedef struct {
	int64_t m, n, k;
	int64_t height; // rows of a panel: tile_rows(), or fewer if that divides the rows more evenly
	int64_t half;   // the set that multiplies its operands as bfloat16 (see half.h); 0 for float32
	int64_t parts;  // with half: 1 if elements hold bfloat16 values, 2 if each is the sum of two
	operand a, b;
	axes cm, cn; // offsets of C's rows and columns
	int64_t cbase;
} product;

// Part of a product: rows [m0, m1), columns [n0, n1), contraction [k0, k1). With accumulate, the first block of k is added to C
// instead of overwriting it.
typedef struct {
	int64_t m0, m1, n0, n1, k0, k1;
	int64_t accumulate;
	int64_t measure, packing; // if measure is not 0, packing sums up the nanoseconds of packing
} part;

// The best instruction set is chosen before main. select_set chooses another by number (0 plain, 1 AVX2, 2 AVX-512) and
// returns the set in effect after the call.
int select_set(int set);
int best_set(void);

// The processor time of the calling thread, in nanoseconds.
int64_t thread_time(void);

int tile_rows(void);
int tile_cols(void);

// pack_rows packs A's panels [p0, p1) of tile_rows() rows for k in [k0, k1); pack_cols packs B's panels of tile_cols()
// columns. The layout is the one that the block functions read: for each block of BLOCK_K values of k, each panel, each k, a row
// of the panel's width. panels is the number of all panels of the packed side.
void pack_rows(const product *q, const float *a, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);
void pack_cols(const product *q, const float *b, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);

// block_cols computes a part with B packed whole; room holds a block of A: PART_ROWS x BLOCK_K.
void block_cols(const product *q, part *w, const float *a, const float *packed, float *c, float *room);

// block_rows computes a part with A packed whole; room holds WIDE_PANELS panels of B: BLOCK_K x tile_cols().
void block_rows(const product *q, part *w, const float *packed, const float *b, float *c, float *room);

// axpys computes up to four rows y[m][n0..n1) (+)= sum over k of a[m*am + k*ak] b[k*bk + n], reading b along its rows.
void axpys(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, int64_t ak, const float *b, int64_t bk,
	float *y, int64_t ym, int64_t accumulate);

// dots computes up to four rows y[m*ym + n*yn] (+)= sum over k of a[m*am + k] b[n*bn + k] for n in [n0, n1).
void dots(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, const float *b, int64_t bn, float *y,
	int64_t ym, int64_t yn, int64_t accumulate);

#endif
