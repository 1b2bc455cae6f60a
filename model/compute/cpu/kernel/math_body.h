// Functions of vectors of floats for one instruction set: accurate to a few units in the last place, with NaN and infinities as
// in IEEE 754 and C. See isa.h.
#define V static inline vf
#define SPLAT(x) ((x) - (vf){0}) // keeps the sign of zero
#define BITS(x) ((vi)(x))
#define FLOAT(x) ((vf)(x))

V ISA(pick)(vi mask, vf yes, vf no) { return FLOAT((mask & BITS(yes)) | (~mask & BITS(no))); }
V ISA(vabs)(vf x) { return FLOAT(BITS(x) & 0x7fffffff); }
V ISA(with_sign)(vf x, vf sign) { return FLOAT((BITS(x) & 0x7fffffff) | (BITS(sign) & (int32_t)0x80000000)); }
static inline vi ISA(to_int)(vf x) { return __builtin_convertvector(x, vi); }
V ISA(to_float)(vi x) { return __builtin_convertvector(x, vf); }

#if defined(SET_AVX512)
V ISA(vsqrt)(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
#elif defined(SET_AVX2)
V ISA(vsqrt)(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
#elif defined(__x86_64__)
V ISA(vsqrt)(vf x) { return (vf)_mm_sqrt_ps((__m128)x); }
#elif defined(__aarch64__)
V ISA(vsqrt)(vf x) { return (vf)vsqrtq_f32((float32x4_t)x); }
#else
V ISA(vsqrt)(vf x)
{
	for (int i = 0; i < VL; i++)
		x[i] = __builtin_sqrtf(x[i]);
	return x;
}
#endif

// The result is NaN if either operand is NaN.
V ISA(vmax)(vf x, vf y) { return ISA(pick)((x > y) | (x != x), x, y); }
V ISA(vmin)(vf x, vf y) { return ISA(pick)((x < y) | (x != x), x, y); }

// Rounds to the nearest integer, ties to even.
V ISA(vround)(vf x)
{
	vf a = ISA(vabs)(x), r = (a + 8388608.0f) - 8388608.0f;
	return ISA(pick)(a < 8388608.0f, ISA(with_sign)(r, x), x);
}

V ISA(vfloor)(vf x)
{
	vf r = ISA(vround)(x);
	return ISA(with_sign)(ISA(pick)(r > x, r - 1.0f, r), x);
}

V ISA(vceil)(vf x)
{
	vf r = ISA(vround)(x);
	return ISA(with_sign)(ISA(pick)(r < x, r + 1.0f, r), x);
}

V ISA(vsign)(vf x) { return ISA(pick)((x == 0.0f) | (x != x), x, ISA(with_sign)(SPLAT(1.0f), x)); }

// 2^n for integers n in [-126, 127].
V ISA(power_of_2)(vi n) { return FLOAT((n + 127) << 23); }

// x * 2^n for n in [-252, 254], in two steps so that subnormal results are correct.
V ISA(scale)(vf x, vi n)
{
	vi half = n >> 1;
	return x * ISA(power_of_2)(half) * ISA(power_of_2)(n - half);
}

// Reduces x = n ln 2 + r with |r| <= ln 2 / 2; |x| must stay below 2^20.
V ISA(reduce_exp)(vf x, vi *n)
{
	vf k = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
	*n = ISA(to_int)(k);
	return (x - k * 0.693145752f) - k * 1.42860677e-6f;
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
V ISA(exp_tail)(vf r)
{
	vf p = SPLAT(1.9841270e-4f);
	p = p * r + 1.3888889e-3f;
	p = p * r + 8.3333333e-3f;
	p = p * r + 4.1666667e-2f;
	p = p * r + 1.6666667e-1f;
	return p * r + 0.5f;
}

V ISA(vexp)(vf x)
{
	vi n;
	vf c = ISA(pick)(x > -104.0f, x, SPLAT(-104.0f)); // NaN becomes a number here and is restored below
	vf r = ISA(reduce_exp)(ISA(pick)(c < 89.0f, c, SPLAT(89.0f)), &n);
	vf y = ISA(scale)((ISA(exp_tail)(r) * r * r + r) + 1.0f, n);
	return ISA(pick)(x != x, x, y);
}

V ISA(vexpm1)(vf x)
{
	vi n;
	vf c = ISA(pick)(x > -18.0f, x, SPLAT(-18.0f));
	vf r = ISA(reduce_exp)(ISA(pick)(c < 89.0f, c, SPLAT(89.0f)), &n);
	vf p = ISA(exp_tail)(r) * r * r + r;
	vi few = (n & (n < 64)) | ((n >= 64) & 64); // 2^-64 is negligible compared with 1
	vf y = ISA(scale)(p + (1.0f - ISA(power_of_2)(-few)), n);
	y = ISA(pick)(ISA(vabs)(x) < 1e-8f, x, y); // keeps the sign of zero
	return ISA(pick)(x != x, x, y);
}

// The exponent of a normal number whose mantissa becomes 1 + f in [sqrt 1/2, sqrt 2).
static inline vi ISA(split_log)(vf x, vf *f)
{
	vi bits = BITS(x) - 0x3f3504f3;
	*f = FLOAT((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
	return bits >> 23;
}

// log (1 + f) + e log 2.
V ISA(join_log)(vf f, vf e)
{
	vf p = SPLAT(7.0376836292e-2f);
	p = p * f - 1.1514610310e-1f;
	p = p * f + 1.1676998740e-1f;
	p = p * f - 1.2420140846e-1f;
	p = p * f + 1.4249322787e-1f;
	p = p * f - 1.6668057665e-1f;
	p = p * f + 2.0000714765e-1f;
	p = p * f - 2.4999993993e-1f;
	p = p * f + 3.3333331174e-1f;
	vf z = f * f, y = p * f * z;
	y = (y + e * -2.12194440e-4f) - 0.5f * z;
	return (f + y) + e * 0.693359375f;
}

// y, the logarithm of x if x is a positive number, or what it is otherwise.
V ISA(any_log)(vf x, vf y)
{
	y = ISA(pick)(x == __builtin_inff(), x, y);
	y = ISA(pick)(x == 0.0f, SPLAT(-__builtin_inff()), y);
	return ISA(pick)((x < 0.0f) | (x != x), SPLAT(__builtin_nanf("")), y);
}

V ISA(vlog)(vf x)
{
	vf f;
	vi tiny = x < 1.17549435e-38f, e = ISA(split_log)(ISA(pick)(tiny, x * 33554432.0f, x), &f);
	return ISA(any_log)(x, ISA(join_log)(f, ISA(to_float)(e - (tiny & 25))));
}

// log u, where u = 1 + x is rounded and f includes the rest, x - (u - 1).
V ISA(vlog1p)(vf x)
{
	vf f, u = 1.0f + x;
	vi e = ISA(split_log)(u, &f);
	f += (x - (u - 1.0f)) * ISA(power_of_2)(-(e & (e < 64))); // there is no rest from 2^64 on
	return ISA(pick)(u == 1.0f, x, ISA(any_log)(u, ISA(join_log)(f, ISA(to_float)(e))));
}

V ISA(vtanh)(vf x)
{
	vf a = ISA(vabs)(x), z = x * x;
	vf p = SPLAT(-5.70498872745e-3f);
	p = p * z + 2.06390887954e-2f;
	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	vf near = p * z * x + x;
	vf far = ISA(with_sign)(1.0f - 2.0f / (ISA(vexp)(a + a) + 1.0f), x);
	return ISA(pick)(x != x, x, ISA(pick)(a < 0.625f, near, far));
}

V ISA(vlogistic)(vf x)
{
	vf e = ISA(vexp)(-ISA(vabs)(x)), over = 1.0f / (1.0f + e);
	return ISA(pick)(x < 0.0f, e * over, over);
}

V ISA(verf)(vf x)
{
	vf t = ISA(vabs)(x), s = x * x;
	t = ISA(pick)(t > 4.0f, SPLAT(4.0f), t);
	vf big = SPLAT(-1.72853470e-5f) * t + 3.83197126e-4f;
	vf u = SPLAT(-3.88396438e-3f) * t + 2.42546219e-2f;
	big = big * (t * t) + u;
	big = big * t - 1.06777877e-1f;
	big = big * t - 6.34846687e-1f;
	big = big * t - 1.28717512e-1f;
	big = big * t - t;
	big = ISA(with_sign)(1.0f - ISA(vexp)(big), x);
	vf small = SPLAT(-5.96761703e-4f);
	small = small * s + 4.99119423e-3f;
	small = small * s - 2.67681349e-2f;
	small = small * s + 1.12819925e-1f;
	small = small * s - 3.76125336e-1f;
	small = small * s + 1.28379166e-1f;
	small = small * x + x;
	return ISA(pick)(x != x, x, ISA(pick)(t > 0.927734375f, big, small));
}

// Sine if quarter is 0, cosine if it is 1. Large and infinite arguments use the C library.
static inline vf ISA(vsincos)(vf x, int quarter)
{
	for (int i = 0; i < VL; i++)
		if (!(x[i] < 4096.0f && x[i] > -4096.0f)) {
			for (int j = 0; j < VL; j++)
				x[j] = quarter ? cosf(x[j]) : sinf(x[j]);
			return x;
		}
	vf k = (x * 0.636619772f + 12582912.0f) - 12582912.0f;
	vi n = ISA(to_int)(k) + quarter;
	vf r = ((x - k * 1.5703125f) - k * 4.83751297e-4f) - k * 7.54978942e-8f;
	vf z = r * r;
	vf s = SPLAT(-1.9515295891e-4f);
	s = s * z + 8.3321608736e-3f;
	s = s * z - 1.6666654611e-1f;
	s = s * z * r + r;
	vf c = SPLAT(2.443315711809948e-5f);
	c = c * z - 1.388731625493765e-3f;
	c = c * z + 4.166664568298827e-2f;
	c = (c * z * z - 0.5f * z) + 1.0f;
	vf y = ISA(pick)((n & 1) != 0, c, s);
	y = FLOAT(BITS(y) ^ ((n & 2) << 30));
	return quarter ? y : ISA(pick)(x == 0.0f, x, y);
}
V ISA(vsin)(vf x) { return ISA(vsincos)(x, 0); }
V ISA(vcos)(vf x) { return ISA(vsincos)(x, 1); }

V ISA(vpow)(vf x, vf y)
{
	for (int i = 0; i < VL; i++)
		x[i] = powf(x[i], y[i]);
	return x;
}

V ISA(vrem)(vf x, vf y)
{
	for (int i = 0; i < VL; i++)
		x[i] = fmodf(x[i], y[i]);
	return x;
}
