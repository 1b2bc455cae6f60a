// What a machine can do at most: see roof.go.
#ifndef SLOT_ROOF_H
#define SLOT_ROOF_H
#include <stdint.h>

// roof_products multiplies and adds in registers, and returns how many operations that were.
int64_t roof_products(int64_t rounds, float *sum);

// roof_copy writes half of each of n floats, through the caches as the engine does.
void roof_copy(const float *x, float *y, int64_t n);
#endif
