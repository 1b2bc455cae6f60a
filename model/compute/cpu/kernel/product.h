// Products of two operands, C[m, n] (+)= sum over k of A[m, k] B[k, n], where each operand is read through index
// arithmetic: a matrix of any strides, or the patches of an image that a convolution sees.
#ifndef SLOT_PRODUCT_H
#define SLOT_PRODUCT_H
#include <stdint.h>

enum { MAX_DIGITS = 6, MAX_DIMS = 3, MAX_COLS = 32, BLOCK_K = 256, PART_ROWS = 192 };

// One digit of a mixed-radix index. off is what a step adds to the offset, in floats. dim is the spatial dimension that
// the digit moves in, or -1; step is by how many pixels, once every per values of the digit.
typedef struct {
	int64_t n, off, step, per;
	int32_t dim, unused;
} digit;

// The digits of one linear index, outermost first.
typedef struct {
	int64_t digits;
	digit d[MAX_DIGITS];
} axes;

// How one side of a product is read. x is the row of A or the column of B. An element whose position lies outside
// [0, size) in some spatial dimension is zero; a size of -1 says that the dimension has no bounds to check.
typedef struct {
	axes x, k;
	int64_t base;
	int64_t pos[MAX_DIMS], size[MAX_DIMS];
	int64_t bounded;
} operand;

typedef struct {
	int64_t m, n, k;
	int64_t height; // rows of a panel: tile_rows(), or fewer where that divides the rows more evenly
	int64_t half;   // what multiplies its operands as bfloat16 (see half.h); 0 where they are read as float32
	int64_t parts;  // there: 1 where elements hold bfloat16 values, 2 where each is the sum of two
	operand a, b;
	axes cm, cn; // where C's rows and columns lie
	int64_t cbase;
} product;

// Part of a product: rows [m0, m1), columns [n0, n1), contraction [k0, k1). accumulate adds the first block of k to C
// where it would otherwise overwrite it.
typedef struct {
	int64_t m0, m1, n0, n1, k0, k1;
	int64_t accumulate;
	int64_t measure, packing; // where measure is not 0, packing adds up the nanoseconds of packing
} part;

// The best instruction set is chosen before main; select_set takes another by number (0 plain, 1 AVX2, 2 AVX-512) and
// returns the one that holds after the call.
int select_set(int set);
int best_set(void);

// The processor time of the calling thread, in nanoseconds.
int64_t thread_time(void);

int tile_rows(void);
int tile_cols(void);

// pack_rows packs A's panels [p0, p1) of tile_rows() rows, for k in [k0, k1), pack_cols B's panels of tile_cols()
// columns. The layout is that of the block functions: for each block of BLOCK_K values of k, each panel, each k, a row
// of the panel's width; panels counts all panels of the packed side.
void pack_rows(const product *q, const float *a, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);
void pack_cols(const product *q, const float *b, float *to, int64_t p0, int64_t p1, int64_t panels, int64_t k0, int64_t k1);

// block_cols computes a part with B packed whole; room holds a block of A: PART_ROWS x BLOCK_K.
void block_cols(const product *q, part *w, const float *a, const float *packed, float *c, float *room);

// block_rows computes a part with A packed whole; room holds a panel of B: BLOCK_K x tile_cols().
void block_rows(const product *q, part *w, const float *packed, const float *b, float *c, float *room);

// axpys computes up to four rows y[m][n0..n1) (+)= sum over k of a[m*am + k*ak] b[k*bk + n], reading b along its rows.
void axpys(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, int64_t ak, const float *b, int64_t bk,
	float *y, int64_t ym, int64_t accumulate);

// dots computes up to four rows y[m*ym + n*yn] (+)= sum over k of a[m*am + k] b[n*bn + k] for n in [n0, n1).
void dots(int64_t m, int64_t n0, int64_t n1, int64_t k, const float *a, int64_t am, const float *b, int64_t bn, float *y,
	int64_t ym, int64_t yn, int64_t accumulate);

#endif
