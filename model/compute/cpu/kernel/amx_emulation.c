//go:build amx_emulation && linux && amd64

#define _GNU_SOURCE
#include "amx_emulation.h"
#include "half.h"
#include <immintrin.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, ROW_WORDS = ROW_BYTES / 4 };

// A configuration as LDTILECFG reads it. Palette 0 means that there are no tiles.
typedef struct {
	uint8_t palette, start, reserved[14];
	uint16_t bytes[16];
	uint8_t rows[16];
} configuration;

typedef union {
	uint32_t word[ROWS][ROW_WORDS];
	float value[ROWS][ROW_WORDS];
} words;

// The state of AMX, which belongs to a thread.
static __thread struct {
	configuration now;
	words tile[TILES];
} amx __attribute__((tls_model("initial-exec")));

static int64_t counts[AMX_INSTRUCTIONS];

int64_t amx_count(int kind) { return __atomic_load_n(&counts[kind], __ATOMIC_RELAXED); }

void amx_tile_words(int tile, uint32_t *to) { memcpy(to, &amx.tile[tile], sizeof amx.tile[tile]); }

// ---- decoding ----

// The instructions are VEX.128.0F38.W0 with one of these prefixes, opcodes and operands.
enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2 };

static int kind_of(int prefix, int opcode, int mod, int reg, int rm)
{
	switch (opcode << 4 | prefix) {
	case 0x490 | NO_PREFIX:
		if (mod == 3)
			return reg == 0 && rm == 0 ? TILERELEASE : AMX_NONE;
		return reg == 0 ? LDTILECFG : AMX_NONE;
	case 0x490 | PREFIX_66: return mod != 3 && reg == 0 ? STTILECFG : AMX_NONE;
	case 0x490 | PREFIX_F2: return mod == 3 && rm == 0 ? TILEZERO : AMX_NONE;
	case 0x4b0 | PREFIX_F2:
	case 0x4b0 | PREFIX_66: return mod != 3 && rm == 4 ? TILELOADD : AMX_NONE; // 66: TILELOADDT1, a hint for the cache
	case 0x4b0 | PREFIX_F3: return mod != 3 && rm == 4 ? TILESTORED : AMX_NONE;
	case 0x5c0 | PREFIX_F3: return mod == 3 ? TDPBF16PS : AMX_NONE;
	}
	return AMX_NONE;
}

static uint64_t displacement(const uint8_t *at, int bytes)
{
	int32_t wide = 0;
	if (bytes == 1)
		return (uint64_t)(int64_t)(int8_t)*at;
	memcpy(&wide, at, bytes);
	return (uint64_t)(int64_t)wide;
}

// Decodes the operand in memory whose ModRM is at code[4]; x and b are the registers' upper bits.
static void locate(amx_instruction *i, const uint8_t *code, uint64_t rip, const uint64_t *r, int x, int b)
{
	int mod = code[4] >> 6, rm = code[4] & 7, at = 5, none = mod == 0 && rm == 5, bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	uint64_t base = rm != 4 ? r[rm | b] : 0;
	if (rm == 4) {
		int index = code[at] >> 3 & 7 | x, low = code[at] & 7;
		i->stride = index == 4 ? 0 : r[index] << (code[at] >> 6); // RSP cannot be an index
		none = mod == 0 && low == 5;
		base = r[low | b];
		at++;
	}
	if (none)
		base = 0, bytes = 4;
	i->length = at + bytes;
	if (none && rm == 5)
		base = rip + i->length;
	i->memory = base + displacement(code + at, bytes);
	if (i->tile < 0)
		i->memory += i->stride, i->stride = 0; // the index of a configuration is an ordinary one
}

amx_instruction amx_decode(const uint8_t *code, uint64_t rip, const uint64_t r[16])
{
	amx_instruction i = {AMX_NONE, 0, -1, -1, -1, 0, 0};
	if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || code[2] & 0x84) // VEX of three bytes, 0F38; W0, 128
		return i;
	int high = code[1] & 0x80 ? 0 : 8, x = code[1] & 0x40 ? 0 : 8, b = code[1] & 0x20 ? 0 : 8, v = ~code[2] >> 3 & 15;
	int mod = code[4] >> 6, reg = code[4] >> 3 & 7 | high, rm = code[4] & 7, kind = kind_of(code[2] & 3, code[3], mod, reg, rm);
	if (kind == AMX_NONE || reg >= TILES || (kind == TDPBF16PS ? v >= TILES : v != 0) || (mod == 3 && b))
		return i;
	i.kind = kind, i.length = 5;
	if (kind >= TILEZERO)
		i.tile = reg;
	if (kind == TDPBF16PS)
		i.a = rm, i.b = v;
	if (mod != 3)
		locate(&i, code, rip, r, x, b);
	return i;
}

// ---- execution ----

static const char *configure(const configuration *c)
{
	static const uint8_t zero[16];
	if (c->palette > 1)
		return "LDTILECFG of an unknown palette";
	if (c->palette == 0) {
		memset(&amx, 0, sizeof amx);
		return 0;
	}
	if (memcmp(c->reserved, zero, sizeof c->reserved) || memcmp(c->bytes + TILES, zero, 2 * TILES) || memcmp(c->rows + TILES, zero, TILES))
		return "LDTILECFG with a reserved byte that is not zero";
	for (int t = 0; t < TILES; t++) {
		if (c->rows[t] > ROWS || c->bytes[t] > ROW_BYTES)
			return "LDTILECFG of a tile that is too large";
		if (!c->rows[t] != !c->bytes[t])
			return "LDTILECFG of a tile that has rows or columns but not both";
	}
	memset(&amx, 0, sizeof amx);
	amx.now = *c;
	return 0;
}

// Why an instruction cannot use a tile, or null.
static const char *unusable(int tile)
{
	if (amx.now.palette == 0)
		return "tile used without a configuration on this thread";
	if (amx.now.rows[tile] == 0)
		return "tile used that is not configured";
	return 0;
}

static const char *untransferable(int tile)
{
	const char *why = unusable(tile);
	if (why)
		return why;
	if (amx.now.bytes[tile] % 4)
		return "tile with rows that are not whole words";
	return amx.now.start >= amx.now.rows[tile] ? "start row beyond the tile" : 0;
}

// Loads or stores the configured rows from the start row on; the rest of a tile stays zero, as LDTILECFG left it.
static void transfer(int tile, uint64_t memory, uint64_t stride, int store)
{
	int bytes = amx.now.bytes[tile];
	words *t = &amx.tile[tile];
	for (int i = amx.now.start; i < amx.now.rows[tile]; i++) {
		void *at = (void *)(memory + i * stride);
		if (store)
			memcpy(at, t->word[i], bytes);
		else
			memcpy(t->word[i], at, bytes);
	}
	amx.now.start = 0;
}

static const char *unmultipliable(int c, int a, int b)
{
	const uint16_t *bytes = amx.now.bytes;
	const uint8_t *rows = amx.now.rows;
	for (int i = 0; i < 3; i++) {
		int tile = i == 0 ? c : i == 1 ? a : b;
		const char *why = unusable(tile);
		if (why)
			return why;
		if (bytes[tile] % 4)
			return "tile with rows that are not whole words";
	}
	if (a == b || a == c || b == c)
		return "TDPBF16PS with the same tile twice";
	if (rows[c] != rows[a] || bytes[c] != bytes[b] || bytes[a] / 4 != rows[b])
		return "TDPBF16PS of tiles whose sizes do not match";
	return 0;
}

// The upper or lower halves of pairs as float32.
static void widen(const words *pairs, words *lower, words *upper)
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < ROW_WORDS; j++) {
			lower->word[i][j] = pairs->word[i][j] << 16;
			upper->word[i][j] = pairs->word[i][j] & 0xffff0000u;
		}
}

// One sum of fused products for each half of the pairs; then both are added, and that to C.
__attribute__((noinline, target("avx2,fma"))) static void multiply(words *c, const words *a, const words *b, int rows, int pairs, int cols)
{
	words x[2], y[2];
	widen(a, &x[0], &x[1]);
	widen(b, &y[0], &y[1]);
	for (int m = 0; m < rows; m++) {
		float sum[2][ROW_WORDS] = {{0}};
		for (int k = 0; k < pairs; k++)
			for (int h = 0; h < 2; h++)
				for (int n = 0; n < ROW_WORDS; n++)
					sum[h][n] = __builtin_fmaf(x[h].value[m][k], y[h].value[k][n], sum[h][n]);
		for (int n = 0; n < cols; n++)
			c->value[m][n] += sum[0][n] + sum[1][n];
	}
}

// Multiplies without exceptions, rounding to nearest, with denormals read and written as zero, whatever MXCSR says.
static void dot(const amx_instruction *i)
{
	unsigned usual = _mm_getcsr();
	_mm_setcsr(0x9fc0); // FTZ, DAZ, and every exception masked
	multiply(&amx.tile[i->tile], &amx.tile[i->a], &amx.tile[i->b], amx.now.rows[i->tile], amx.now.rows[i->b], amx.now.bytes[i->tile] / 4);
	_mm_setcsr(usual);
	amx.now.start = 0;
}

const char *amx_execute(const amx_instruction *i)
{
	const char *why = 0;
	switch (i->kind) {
	case LDTILECFG: why = configure((const configuration *)i->memory); break;
	case STTILECFG: memcpy((void *)i->memory, &amx.now, sizeof amx.now); break;
	case TILERELEASE: memset(&amx, 0, sizeof amx); break;
	case TILEZERO:
		if ((why = unusable(i->tile)) == 0) {
			memset(&amx.tile[i->tile], 0, sizeof amx.tile[i->tile]);
			amx.now.start = 0;
		}
		break;
	case TILELOADD:
	case TILESTORED:
		if ((why = untransferable(i->tile)) == 0)
			transfer(i->tile, i->memory, i->stride, i->kind == TILESTORED);
		break;
	case TDPBF16PS:
		if ((why = unmultipliable(i->tile, i->a, i->b)) == 0)
			dot(i);
		break;
	}
	if (!why)
		__atomic_fetch_add(&counts[i->kind], 1, __ATOMIC_RELAXED);
	return why;
}

// ---- the handler ----

static struct sigaction previous;
static int emulated;

// Writes a line to the standard error; only functions that signal handlers may call.
static void say(const char *why)
{
	char line[128] = "AMX: ";
	strncat(line, why, sizeof line - 7);
	strcat(line, "\n");
	if (write(2, line, strlen(line)) < 0)
		return; // the process ends in any case
}

// Leaves the signal to the handler that was installed before.
static void pass_on(int signal, siginfo_t *info, void *context)
{
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(signal, info, context);
	else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
		sigaction(SIGILL, &previous, 0); // the instruction raises the signal again
	else
		previous.sa_handler(signal);
}

// Executes the instruction that raised the signal and those of AMX that follow it immediately.
static void on_illegal(int signal, siginfo_t *info, void *context)
{
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11,
		REG_R12, REG_R13, REG_R14, REG_R15};
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs, began = g[REG_RIP];
	uint64_t r[16];
	for (int i = 0; i < 16; i++)
		r[i] = (uint64_t)g[order[i]];
	for (;;) {
		amx_instruction i = amx_decode((const uint8_t *)g[REG_RIP], (uint64_t)g[REG_RIP], r);
		if (i.kind == AMX_NONE)
			break;
		const char *why = amx_execute(&i);
		if (why) {
			say(why);
			pass_on(signal, info, context);
			return;
		}
		g[REG_RIP] += i.length;
	}
	if (g[REG_RIP] == began)
		pass_on(signal, info, context);
}

// Signals that report an invalid address stay unblocked, for the rows that an instruction reads and writes.
int amx_emulate(void)
{
	struct sigaction ours = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	sigfillset(&ours.sa_mask);
	sigdelset(&ours.sa_mask, SIGSEGV);
	sigdelset(&ours.sa_mask, SIGBUS);
	if (!emulated && !half_tiles_saved() && best_set() > 0)
		emulated = sigaction(SIGILL, &ours, &previous) == 0;
	return emulated;
}

int amx_emulated(void) { return emulated; }

// ---- for tests ----

void amx_begin_only(void) { half_tiles_of(HALF_AMX)->begin(16, HALF_PAIRS); }
void amx_end_only(void) { half_tiles_of(HALF_AMX)->end(); }

void amx_tile_only(void)
{
	static half a[HALF_ROWS * HALF_STEP], b[HALF_COLS * HALF_STEP];
	float c[HALF_ROWS * HALF_COLS];
	half_tiles_of(HALF_AMX)->tile(HALF_PAIRS, 1, a, HALF_ROWS, b, c, HALF_ROWS, HALF_COLS);
}

void amx_undefined(void) { __asm__ volatile("ud2"); }
