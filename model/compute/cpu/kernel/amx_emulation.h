// AMX in software, for tests on processors without it: a handler of SIGILL carries out the instructions of AMX that half.c uses, on tiles
// of the calling thread, as Intel's Software Developer's Manual specifies them. Only built with the tag amx_emulation.
#ifndef SLOT_AMX_EMULATION_H
#define SLOT_AMX_EMULATION_H
#include <stdint.h>

// The emulated instructions.
enum { AMX_NONE, LDTILECFG, STTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS, AMX_INSTRUCTIONS };

// A decoded instruction: its tiles (-1 if it has none) and its memory, whose rows are stride bytes apart.
typedef struct {
	int32_t kind, length;
	int32_t tile, a, b;
	uint64_t memory, stride;
} amx_instruction;

// Decodes the instruction at code, which is executed at address rip with these registers (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to
// R15). kind is AMX_NONE if it is not one of the emulated instructions or its encoding is invalid.
amx_instruction amx_decode(const uint8_t *code, uint64_t rip, const uint64_t registers[16]);

// Executes an instruction. It returns null, or the reason why a processor would raise an exception; then nothing is changed.
const char *amx_execute(const amx_instruction *i);

// Installs the handler if the processor has no AMX; returns whether AMX is emulated.
int amx_emulate(void);
int amx_emulated(void);

// How many instructions of a kind were emulated on all threads.
int64_t amx_count(int kind);

// The 16 rows of 16 words of a tile of this thread.
void amx_tile_words(int tile, uint32_t *words);

// For tests: the parts of a product of half.c, to leave one out or run it on another thread, and an instruction that no processor has.
void amx_begin_only(void);
void amx_tile_only(void);
void amx_end_only(void);
void amx_undefined(void);

#endif
