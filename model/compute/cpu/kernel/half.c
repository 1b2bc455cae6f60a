#include "half.h"
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif
#ifdef AMX_EMULATION
#include "amx_emulation.h"
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static void nothing(void) {}
static void nothing_of(int64_t side, int64_t pairs) { (void)side, (void)pairs; }

// ---- tiles in C, which test the tile layout ----

typedef uint32_t software_tile[16][16];

static float upper(uint32_t x)
{
	float f;
	x &= 0xffff0000u;
	memcpy(&f, &x, 4);
	return f;
}

static void software_load(software_tile *t, const void *from, int64_t stride, int64_t rows, int64_t words)
{
	for (int i = 0; i < rows; i++)
		memcpy((*t)[i], (const char *)from + i * stride, words * 4);
}

static void software_store(software_tile *t, void *to, int64_t stride, int64_t rows)
{
	for (int i = 0; i < rows; i++)
		memcpy((char *)to + i * stride, (*t)[i], 64);
}

// c[i][j] += the sum of the pairs' first products plus that of the second, as TDPBF16PS adds, except for denormals.
static void software_dot(software_tile *c, software_tile *a, software_tile *b, int64_t pairs)
{
	for (int i = 0; i < 16; i++) {
		float first[16] = {0}, second[16] = {0}, sum[16];
		for (int p = 0; p < pairs; p++)
			for (int j = 0; j < 16; j++) {
				first[j] += upper((*a)[i][p] << 16) * upper((*b)[p][j] << 16);
				second[j] += upper((*a)[i][p]) * upper((*b)[p][j]);
			}
		memcpy(sum, (*c)[i], 64);
		for (int j = 0; j < 16; j++)
			sum[j] += first[j] + second[j];
		memcpy((*c)[i], sum, 64);
	}
}

#define TILE_TARGET
#define TILE_NAME(name) plain_##name
#define TILES software_tile tile[8]
#define TILE_ZERO(t) memset(tile[t], 0, sizeof tile[t])
#define TILE_LOAD_A(t, from, stride, pairs) software_load(&tile[t], from, stride, 16, pairs)
#define TILE_LOAD_B(t, from, stride, pairs) software_load(&tile[t], from, stride, pairs, 16)
#define TILE_LOAD_C(t, from, stride, rows) (memset(tile[t], 0, sizeof tile[t]), software_load(&tile[t], from, stride, rows, 16))
#define TILE_DOT(c, a, b, pairs) software_dot(&tile[c], &tile[a], &tile[b], pairs)
#define TILE_STORE(t, to, stride, rows) software_store(&tile[t], to, stride, rows)
#include "half_tiles.h"

static const half_tiles plain = {HALF_ROWS, 16, nothing_of, nothing, plain_tile, plain_strips};

#if defined(__x86_64__)

// ---- AMX ----

#define AMX __attribute__((target("amx-tile,amx-bf16")))

// Palette 1: eight tiles. Sums, 0 to 3, have side rows of 64 bytes, tiles of A, 4 and 5, as many of a step's pairs, and those of B, 6 and 7, a row of 64
// bytes for each of these.
typedef struct {
	uint8_t palette, start, reserved[14];
	uint16_t bytes[16];
	uint8_t rows[16];
} layout;
#define LAYOUT(side, pairs) \
	{1, 0, {0}, {64, 64, 64, 64, 4 * pairs, 4 * pairs, 64, 64}, {side, side, side, side, side, side, pairs, pairs}}

AMX static void amx_begin(int64_t side, int64_t pairs)
{
	static const layout layouts[2][3] = {{LAYOUT(8, 4), LAYOUT(8, 8), LAYOUT(8, 16)}, {LAYOUT(16, 4), LAYOUT(16, 8), LAYOUT(16, 16)}};
	_tile_loadconfig(&layouts[side == 16][pairs / 8]);
}
AMX static void amx_end(void) { _tile_release(); }

#define TILE_TARGET AMX
#define TILE_NAME(name) amx_##name
#define TILES
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD_A(t, from, stride, pairs) _tile_loadd(t, from, stride)
#define TILE_LOAD_B(t, from, stride, pairs) _tile_loadd(t, from, stride)
#define TILE_LOAD_C(t, from, stride, rows) _tile_loadd(t, from, stride)
#define TILE_DOT(c, a, b, pairs) _tile_dpbf16ps(c, a, b)
#define TILE_STORE(t, to, stride, rows) _tile_stored(t, to, stride)
#include "half_tiles.h"

static const half_tiles amx = {HALF_ROWS, 16, amx_begin, amx_end, amx_tile, amx_strips};

// ---- AVX512_BF16 ----

#define VDP __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define UNROLL _Pragma("GCC unroll 12")

#define TILE(rows, vectors)                                                                                                     \
	VDP static void vdp_##rows##_##vectors(int64_t pairs, int64_t parts, const half *a, int64_t height, const half *b, float *c) \
	{                                                                                                                       \
		__m512 sum[rows][vectors];                                                                                      \
		UNROLL for (int i = 0; i < rows; i++)                                                                           \
			UNROLL for (int j = 0; j < vectors; j++)                                                                \
				sum[i][j] = _mm512_setzero_ps();                                                                \
		int64_t part_a = height * HALF_STEP, part_b = HALF_STEP * HALF_COLS;                                            \
		for (; pairs > 0; pairs -= HALF_PAIRS, a += parts * part_a, b += parts * part_b) {                              \
			int64_t end = pairs < HALF_PAIRS ? pairs : HALF_PAIRS;                                                  \
			for (int64_t term = 0; term < 2 * parts - 1; term++) {                                                  \
				const half *x = term == LOW_A ? a + part_a : a, *y = term == LOW_B ? b + part_b : b;            \
				for (const half *last = x + 2 * end; x < last; x += 2, y += 2 * HALF_COLS) {                    \
					__m512bh v[vectors];                                                                    \
					UNROLL for (int j = 0; j < vectors; j++)                                                \
						v[j] = (__m512bh)_mm512_loadu_si512(y + 32 * j);                                \
					UNROLL for (int i = 0; i < rows; i++)                                                   \
					{                                                                                       \
						int32_t pair;                                                                   \
						memcpy(&pair, x + i * HALF_STEP, 4);                                            \
						UNROLL for (int j = 0; j < vectors; j++)                                        \
							sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)_mm512_set1_epi32(pair), v[j]); \
					}                                                                                       \
				}                                                                                               \
			}                                                                                                       \
		}                                                                                                               \
		UNROLL for (int i = 0; i < rows; i++)                                                                           \
			UNROLL for (int j = 0; j < vectors; j++)                                                                \
				_mm512_storeu_ps(c + i * HALF_COLS + 16 * j, sum[i][j]);                                        \
	}
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6) TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12)

static void vdp_tile(int64_t pairs, int64_t parts, const half *a, int64_t height, const half *b, float *c, int64_t rows, int64_t cols)
{
#define PAIR(rows) {vdp_##rows##_1, vdp_##rows##_2}
	static void (*const tiles[12][2])(int64_t, int64_t, const half *, int64_t, const half *, float *) = {PAIR(1), PAIR(2), PAIR(3),
		PAIR(4), PAIR(5), PAIR(6), PAIR(7), PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12)};
	tiles[rows - 1][cols > 16](pairs, parts, a, height, b, c);
}

static const half_tiles vdp = {12, 1, nothing_of, nothing, vdp_tile, 0};

// ---- detection ----

static int announces(unsigned leaf, unsigned sub, int word, unsigned bits)
{
	unsigned r[4];
	return __get_cpuid_count(leaf, sub, &r[0], &r[1], &r[2], &r[3]) && (r[word] & bits) == bits;
}

enum { EAX, ECX = 2, EDX };

// Whether the operating system saves these parts of the processor's state.
static int saves(unsigned parts)
{
	unsigned low, high;
	if (!announces(1, 0, ECX, 1u << 27)) // XGETBV
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & parts) == parts;
}

// Linux grants a process the 8 KiB of tile state on request.
static int permitted(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
	return syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XTILEDATA */) == 0;
#else
	return 0;
#endif
}

int half_tiles_saved(void) { return saves(1u << 17 | 1u << 18); }

int half_missing(int set)
{
	switch (set) {
	case HALF_AVX512: return best_set() == 2 && announces(7, 1, EAX, 1u << 5) ? HALF_HERE : HALF_NOT_ANNOUNCED;
	case HALF_AMX:
#ifdef AMX_EMULATION
		if (amx_emulated())
			return HALF_HERE;
#endif
		if (!announces(7, 0, EDX, 1u << 22 | 1u << 24))
			return HALF_NOT_ANNOUNCED;
		return half_tiles_saved() && permitted() ? HALF_HERE : HALF_NOT_PERMITTED;
	}
	return HALF_HERE;
}

#else

int half_missing(int set) { return set == HALF_PLAIN ? HALF_HERE : HALF_NOT_BUILT; }

#endif

const half_tiles *half_tiles_of(int64_t set)
{
#if defined(__x86_64__)
	switch (set) {
	case HALF_AVX512: return &vdp;
	case HALF_AMX: return &amx;
	}
#endif
	return &plain;
}

int64_t half_rows(int set) { return half_tiles_of(set)->rows; }
int64_t half_unit(int set) { return half_tiles_of(set)->unit; }
int half_strips(int set) { return half_tiles_of(set)->strips != 0; }
