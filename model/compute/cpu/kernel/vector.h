// Vector types of the instruction set being compiled (see isa.h).
#define vf ISA(vf)
#define vi ISA(vi)
#define v4 ISA(v4)
typedef float vf __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));
