// The maximum speed of a machine: see roof.go.
#ifndef SLOT_ROOF_H
#define SLOT_ROOF_H
#include <stdint.h>

// roof_products multiplies and adds in registers, and returns the number of operations.
int64_t roof_products(int64_t rounds, float *sum);

// roof_copy writes half of each of n floats to y, through the caches as the engine does.
void roof_copy(const float *x, float *y, int64_t n);
#endif
