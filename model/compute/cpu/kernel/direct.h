// Convolutions over channels-last images without packing: images are staged, that is copied once with the zeros around them, and tiles of
// the result read their windows directly from the copies. Operands that hold bfloat16 values are staged as pairs of such values, two
// in the size of a float: pairs of channels in convolutions, pairs of positions in correlations.
#ifndef SLOT_DIRECT_H
#define SLOT_DIRECT_H
#include "half.h"

enum { MAX_RUNS = 32, GROUPS = 3, FEW_COLS = 4, TOGETHER = 8, POSITIONS = 256, LINE = 8, MAX_PLANES = 10, MAX_FIVES = 2, NEAR = 32 << 10, FACTOR_K = 128, FEW_PAD = 16 };

// Positions of which windows are stacked at a time, so that the stacks stay in the L1 cache.
enum { PILE = 64 };

// A convolution by minimal filtering computes up to TALL tiles at a time. A gradient stages the factors of STAGED channels of x at a time, and fetches AHEAD
// channels of the next tile's values meanwhile.
enum { TALL = 64, STAGED = 64, AHEAD = 64 };

// Images [h, w, c] with adjacent channels, and the staged part of their lines: from position y0, x0 on. Positions outside the image
// are zero. narrow: their elements are stored as bfloat16.
typedef struct {
	int64_t h, w, c, sy, sx, batch, narrow;
	int64_t y0, x0, columns; // columns is the number of positions of a staged line
} staging;

// Outputs that use the same taps: y[image, i, j, o] = sum over k of window(i, j)[k] b[k, o]. first is the offset of the first window
// in a staged image; line and column are the distances to the windows of the next output line and column, in floats.
typedef struct {
	int64_t h, w, first, line, column;
	int64_t out, oline, ocolumn; // offset of the first output, and strides of outputs
	int64_t b, step, panel;      // in B: the start, the distance between values of k, and that between panels of columns
	int64_t runs;
	run r[MAX_RUNS];
} window;

// A range of work: windows [w0, w1), images [i0, i1), part j of parts of their outputs' lines, or of a minimal convolution's
// lines of tiles, where they are staged, or tiles, panels [p0, p1) of columns. Lines [l0, l1) are staged.
typedef struct {
	int64_t w0, w1, i0, i1, j, parts, p0, p1, l0, l1;
	int64_t copy; // where there is room for blocks of TOGETHER panels of B, if they are copied
} extent;

// Images staged as planes, so that the windows of all lines lie a constant distance apart, if lines are shorter than a strip is high: a plane has
// one position of each window of a line, [lines][windows][c]; lines whose distance is a multiple of the windows' follow each other.
typedef struct {
	int64_t planes;            // 0: images are not staged in this way
	int64_t first[MAX_PLANES]; // a plane's first position in a line
	int64_t windows, move;     // windows of a line, and the distance between them
	int64_t lines, apart;      // staged lines, a multiple of the distance between windows' lines, and this distance
	int64_t words;             // of an image, of one part
} stack;

// Lines of which each window's values are staged apart, in whole words, if windows of a line have an odd number of values: those of adjacent windows then begin
// in the middle of a pair, or a pair has values of two lines. The last word's second half is zero.
typedef struct {
	int64_t words;           // of a window's values in a line; 0 if lines are not cut
	int64_t windows, values; // windows of a line, and the values of each
	int64_t move;            // values between the windows
} cuts;

// Cut lines are copied in chunks of so many values, and a chunk fits after the last one.
enum { CUT_CHUNK = 16, CUT_AFTER = CUT_CHUNK / 2 };

// What tiles of windows do with their sums.
enum { STORED, ADDED, ROUNDED };

// Parameters shared by all windows of a convolution.
typedef struct {
	staging s;
	int64_t n, obatch, ochannel, few;          // few: there are so few columns that the contraction fills the vectors instead
	int64_t spread, ring;                      // positions of the input are multiplied with all taps, see windows_spread: floats of a position's products, and
	                                           // lines of them that are kept; 0 if not
	int64_t pairs;                             // columns are those of two outputs, and a run is used only by its lanes
	int64_t half;                              // the set that multiplies pairs of channels (see half.h); 0 for float32
	int64_t side, steps;                       // it multiplies strips of this height, in steps of so many pairs; 0 if not
	int64_t parts;                             // in strips, the operands' parts; those of the kernel follow each other in a panel
	stack stack;                               // how images of short lines are staged for strips
	cuts cut;                                  // how lines are staged for windows of an odd number of values
	int64_t far;                               // B is read in place, from memory, and tiles prefetch it
	int64_t blocks;                            // B is read in place by several tiles, in blocks
	int64_t ahead;                             // the first tile of a panel fetches what the run says
	int64_t add;                               // outputs are added to their existing values
	int64_t rounds;                            // outputs are rounded to bfloat16 and stored so
	int64_t pitch;                             // floats, or pairs, of a staged line, cut or not
	int64_t eights;                            // it is computed with vectors of 8 floats although those of 16 are in use; see halves_vectors
} windowed;

// One dimension of a plane of a minimal convolution: a combination of values that lie move apart, from first, first + tile*move, … on.
typedef struct {
	int64_t first, form;
} plane;

// The combinations of a, b, c, d: a; a - b; a - 3/2 b - 3/2 c + d; a - 5/2 b + c; a + b/2 - c/2; -a/2 + b/2 + c.
enum { VALUE, DIFFERENCE, AT_ZERO, AT_MINUS_ONE, AT_HALF, AT_TWO };

// The factors of a product in one dimension: the value between a pair of taps and their sum, or a difference and one tap.
enum { MIDDLE, LOW_TAP, HIGH_TAP, FACTORS, POINTS = FACTORS * FACTORS, QUAD_FACTORS = 5, QUAD_POINTS = 25, MAX_PAIRS = 2 };

// The planes of the five factors of values from first on, of which the first known ones are factors of other values, too.
typedef struct {
	int64_t first, of[QUAD_FACTORS], known;
} five;

// The planes of one dimension; with tiles of 4 x 4 outputs, also those of all factors of the same values together.
typedef struct {
	int64_t n, fives;
	plane all[MAX_PLANES];
	five five[MAX_FIVES];
} planes;

// A convolution by minimal filtering, F(2, 2) in each dimension (Winograd 1980; Lavin and Gray 2016). Two adjacent outputs use the taps u and v,
// move positions apart, of the values a, b, c that also lie move apart, and need three products instead of four:
//
//	a u + b v = b (u + v) + (a - b) u        b u + c v = b (u + v) - (b - c) v
//
// Each output depends only on its own values, so a NaN does not spread, but infinity minus infinity gives one. In two dimensions, tiles of 2 x 2
// outputs need 9 products instead of 16. The products' operands are planes of values and of differences, with a row for each tile. A word of a row is a
// float, or a pair of bfloat16.
//
// Tiles are also of 4 x 4 outputs, F(4, 2) in each dimension, with 25 products instead of 64. With the points 0, -1, 1/2, 2 and infinity (Toom
// and Cook), four outputs use a, b, c, d, e in the products
//
//	m0 = (a - 3/2 b - 3/2 c + d) u        m1 = (b - 5/2 c + d) 2/9 (v - u)        m2 = (b + c/2 - d/2) (2 u + v)/9
//	m3 = (-b/2 + c/2 + d) (u + 2 v)/9     m4 = (b - 3/2 c - 3/2 d + e) v
//
// and are m0 + m1 + 8 m2 + m3, -m1 + 4 m2 + 2 m3, m1 + 2 m2 + 4 m3 and -m1 + m2 + 8 m3 + m4. For independent values and independent relative errors of the
// factors, the variance of outputs' errors is on average 16 times that of sums of all products, and would be 41 times with 1 instead of 1/2. All outputs of a
// tile use all of its values, so a NaN or infinity reaches all 16.
typedef struct {
	staging s;               // columns are all that the planes read
	int64_t n, obatch;       // outputs' channels, which are adjacent
	int64_t oline, ocolumn;  // strides of outputs that use the same taps
	int64_t tile;            // outputs of a tile in each dimension: 2 or 4
	int64_t h, w;            // lines of tiles of an image, and tiles of a line
	int64_t ymove, xmove;    // input positions between adjacent outputs
	planes y, x;
	int64_t ypairs, xpairs;  // pairs of taps
	int64_t block;           // channels of a block of a plane, whose rows follow each other; all of them except for convolve_few
	int64_t kstep;           // floats between the kernel's input channels if its output channels are adjacent floats and fill panels; otherwise 0
	int64_t k;               // length of a product's contraction: pairs of taps times channels, in words
	int64_t apart;           // words between the points of a panel of the kernel
	int64_t half;            // the set that multiplies pairs of channels, whose sums and differences are rounded to bfloat16; 0 for float32
	int64_t rounds;          // outputs are rounded to bfloat16 and stored so
} minimal;

// What depends on the outputs of a tile in each dimension, or on the positions of a gradient's tile, and on the vectors.
typedef struct {
	int64_t factors, points, lines; // factors in a dimension, products of a tile, and lines of an image that staging needs room for
	int64_t tall, panels;           // tiles and panels of columns at a time
	int64_t sums, pad;              // a tile's sums of products, and floats between these, so that those of a vector are not in one set of a cache
	int64_t words, rows, gap, high; // of a gradient: words at a time, rows of a panel, floats between those of two words, which spread 64 rows over the sets of
	                                // a cache, and rows that are summed at a time, before the sums are added to taps
} tile_sizes;

static inline const tile_sizes *sizes_of(int64_t tile, int64_t vector)
{
	static const tile_sizes pairs = {FACTORS, POINTS, 2, .tall = TALL, .panels = 4, .sums = 5, .words = 128, .rows = STAGED, .gap = 4, .high = 24};
	static const tile_sizes quads = {QUAD_FACTORS, QUAD_POINTS, QUAD_FACTORS + 1, .tall = 32, .panels = 4, .sums = QUAD_POINTS, .pad = 16, .words = 64, .rows = 24, .high = 24};
	static const tile_sizes wide = {QUAD_FACTORS, QUAD_POINTS, QUAD_FACTORS + 1, .tall = TALL, .panels = 2, .sums = QUAD_POINTS, .pad = 16, .words = 96, .rows = 32, .high = 32};
	return tile == 2 ? &pairs : vector < 16 ? &quads : &wide;
}

// Outputs of a minimal convolution that use the same taps: out is the offset of the first one, b and panel describe the packed kernel, and
// y and x have the planes of each factor and pair of taps.
typedef struct {
	int64_t out, b, panel;
	int64_t y[QUAD_FACTORS][MAX_PAIRS], x[QUAD_FACTORS][MAX_PAIRS];
	int64_t taps[4 * MAX_PAIRS * MAX_PAIRS]; // offsets of the taps, line by line
} minimal_class;

// An operand of a gradient by minimal filtering, of images with adjacent channels: how tiles read it in each dimension d (0: lines, 1: columns):
// so many taps, apart[d] positions from each other, from first[d][pair] on. Positions outside the image are zero.
typedef struct {
	int64_t extent[2], stride[2], batch, n; // n channels
	int64_t step[2];                        // positions between tiles
	int64_t taps, first[2][MAX_PAIRS], apart[2];
	int64_t narrow;                         // elements are stored as bfloat16
} factored;

// The gradient for a kernel by minimal filtering: y[t, i, j] = sum over images and positions k of x(m k + t, i) v(k, j) for 2 m taps t. Two taps, m
// apart, and two positions k need three products instead of four:
//
//	x0 v0 + x1 v1 = x1 (v0 + v1) + (x0 - x1) v0        x1 v0 + x2 v1 = x1 (v0 + v1) + (x2 - x1) v1
//
// Four positions k need five instead of eight, at the same points as tiles of 4 x 4 outputs. x's factors are those of a, b, c, d, e there, v's are v0,
// -v0 + v1 - v2 + v3, 8 v0 + 4 v1 + 2 v2 + v3, v0 + 2 v1 + 4 v2 + 8 v3 and v3, and the taps m0 + 2/9 m1 + 2/9 m2 + m3/9 and -2/9 m1 + m2/9 + 2/9 m3 + m4.
typedef struct {
	factored x, v;
	int64_t tile;                   // positions of v in a tile in each dimension: 2 or 4
	int64_t h, w, pairs[2];         // lines of tiles of an image, tiles of a line, and pairs of taps
	int64_t swapped;                // tiles of the result have v's channels as rows
	int64_t half;                   // the set that multiplies pairs of tiles, whose factors are rounded to bfloat16; 0 for float32
	int64_t tap[2], apart[2], srow; // strides of the result: of taps, of the two taps of a pair, and of a tile's rows
} minimal_gradient;

// Part of such a gradient: tiles [t0, t1) of all images, channels [i0, i1) of x and [j0, j1) of v, pairs [pair0, pair1) of taps, line by line.
typedef struct {
	int64_t t0, t1, i0, i1, j0, j1, pair0, pair1;
} gradient_part;

// A correlation of images with v, [h, w, n] for each image: y[i, j, c, o] = sum over images, l and k of
// x(l*apart + i, k*dilation + j, c) v[l, k, o], for oh lines i, whose rows are the channels c of adjacent positions j. Images and v are
// staged a few lines at a time.
typedef struct {
	staging s;
	int64_t h, w, n, vbatch, vline, vcolumn, vnarrow; // v's channels are adjacent; vnarrow: its elements are stored as bfloat16
	int64_t rows, oh, apart, dilation;
	int64_t swapped;          // tiles have v's channels as rows
	int64_t oy, ox, oc, on;   // strides of the result
	int64_t images;
	int64_t half;   // the set that multiplies pairs of columns that follow each other in the sum, an even number of them (see half.h); 0 for float32
	int64_t tiled, parts; // it multiplies tiles, of operands with so many parts
	int64_t stacked; // the windows of all lines are staged next to each other: floats of a stack; 0 if not
	int64_t panels; // images are staged in panels of as many channels as a tile reads, otherwise in lines, whose rows are all adjacent
	int64_t sline, sposition, srow; // strides of the sums: of output lines, of positions, and of a tile's rows
	int64_t eights; // see windowed
} correlated;

// Part of a correlation: images [i0, i1), output lines [o0, o1), positions [d0, d1) of these lines, channels [n0, n1) of v; n0 is the start of a panel. A tiled
// correlation counts output lines in the order of tap_line; others compute all positions.
typedef struct {
	int64_t i0, i1, o0, o1, d0, d1, n0, n1;
} correlation_part;

// room holds the staged lines of the extent's images.
int64_t staged_floats(const windowed *q, const extent *e);
void convolve_windows(const windowed *q, const window *w, const extent *e, const float *x, const float *b, float *y,
	float *room);

// pack_panels packs whole panels [p0, p1) of B. half_pack_panels packs unit i of as many units as there are panels, in
// pairs of k, of q's parts. If k is odd, the last pair ends in zero.
void pack_panels(const product *q, const float *b, float *to, int64_t p0, int64_t p1);
void half_pack_panels(const product *q, const float *b, float *to, int64_t i, int64_t units);

// stage_planes stages images [i0, i1) of an extent, whose lines [l0, l1) are those of tiles; room holds planes_floats, and line
// as many lines of the staging as sizes_of says. convolve_minimal computes the extent's classes [w0, w1) from the planes; sums holds minimal_floats.
int64_t planes_floats(const minimal *q, const extent *e);
void stage_planes(const minimal *q, const extent *e, int64_t i0, int64_t i1, const float *x, float *room, float *line);
int64_t minimal_floats(const minimal *q, const extent *e);
void convolve_minimal(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y, float *sums);

// pack_minimal packs panel p of a class's kernel for each point, of its rows from lo to hi, which are channels of pairs of taps and even numbers if the panel
// consists of pairs; room holds 4 * FACTOR_K * tile_cols() floats. A streamed panel, whose parts begin with lines of the caches, is written to memory past the
// caches where vectors are as long as their lines.
void pack_minimal(const minimal *q, const minimal_class *w, const product *kernel, const float *b, float *to, int64_t p, int64_t lo, int64_t hi, int64_t streamed,
	float *room);

// convolve_few computes panel p of a class for a part of at most TALL of the extent's tiles, in pairs of outputs, from planes and from a kernel b in place.
// sums holds few_floats.
int64_t few_floats(const minimal *q, const extent *e);
void convolve_few(const minimal *q, const minimal_class *w, const extent *e, const float *planes, const float *b, float *y, int64_t p, float *sums);

// minimal_correlate computes a part in y; room holds gradient_floats.
int64_t gradient_floats(const minimal_gradient *q, const gradient_part *p);
void minimal_correlate(const minimal_gradient *q, const gradient_part *p, const float *x, const float *v, float *y, float *room);

// add_copies adds elements [lo, hi) of n copies, which are size floats apart, to y.
void add_copies(float *y, const float *copies, int64_t n, int64_t size, int64_t lo, int64_t hi);

// transpose_copies adds up n matrices of so many rows and columns, which are size floats apart, and writes the transpose of the sum to y.
void transpose_copies(float *y, const float *copies, int64_t n, int64_t size, int64_t rows, int64_t columns);

// pack_few packs B by columns, each run padded with zeros to a multiple of a vector; the runs' b and n count floats of a column.
void pack_few(const product *q, const window *w, const float *b, float *to, int64_t column);

// correlate sums a part's images in sums, [oh, rows, n], or [oh, n, rows] if swapped, of any strides. room holds correlate_floats.
void correlate(const correlated *q, const correlation_part *p, const float *x, const float *v, float *sums, float *room);
int64_t correlate_floats(const correlated *q, const correlation_part *p);

// correlates_in_place reports whether a part of all channels reads v, which tiles have as columns, where it is. Where tiles have it as rows, it is read so only
// if it is stored as float32.
int correlates_in_place(const correlated *q);

// correlate_join adds up the parts for rows [r0, r1) of all lines' oh*rows and stores them in the result.
void correlate_join(const correlated *q, const float *part, int64_t parts, float *y, int64_t r0, int64_t r1);

int vector_floats(void);

// halves_vectors reports whether the processor computes each vector of 16 floats as two of 8, so that the latter suit few channels better: AMD's Zen 4.
int halves_vectors(void);
#endif
