// The machine's limits, for one instruction set. See roof.go.
#include "vector.h"

enum { ISA(CHAINS) = 12 }; // enough to hide the latency of two units; with the two factors they fit into 16 registers

// Multiplies and adds in registers. Returns the sum of the first elements of all chains, each of which tends to 0.5.
static float ISA(roof_products)(int64_t rounds)
{
	vf acc[ISA(CHAINS)], x = (vf){0} + 0.5f, y = (vf){0} + 0.25f, sum = {0};
	UNROLL for (int i = 0; i < ISA(CHAINS); i++)
		acc[i] = (vf){0} + (float)i;
	for (; rounds > 0; rounds--)
		UNROLL for (int i = 0; i < ISA(CHAINS); i++)
			acc[i] = acc[i] * x + y;
	UNROLL for (int i = 0; i < ISA(CHAINS); i++)
		sum += acc[i];
	return sum[0];
}

static void ISA(roof_copy)(const float *x, float *y, int64_t n)
{
	for (; n >= VL; n -= VL, x += VL, y += VL)
		*(vf *)y = *(const vf *)x * 0.5f;
}

static const roof_kernels ISA(roof) = {ISA(roof_products), ISA(roof_copy), 2 * ISA(CHAINS) * VL};

#undef vf
#undef vi
#undef v4
