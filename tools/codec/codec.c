// Encoder and decoder of all models as a freestanding WebAssembly module: one image at a time, channels last, four numbers per
// vector. It reads the weights file that model/format/weights writes and documents; tools/codec/build.sh builds it.
//
//   x ──see──▶ z ──represent──▶ codes ──take──▶ slots ──draw──▶ image
//
// A caller opens a file once, then fills one of these buffers and calls the step after it; at() returns their addresses. Channels
// and vectors are padded with zeros to multiples of four, written c4, d4 and so on.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float v4 __attribute__((vector_size(16)));
typedef int i4 __attribute__((vector_size(16)));
typedef float v4u __attribute__((vector_size(16), aligned(4)));
typedef u32 w4 __attribute__((vector_size(16)));

#define EXPORT(name) __attribute__((export_name(#name))) name
#define INLINE static inline __attribute__((always_inline))

static v4 load(const float *p) { return *(const v4u *)p; }
static void store(float *p, v4 v) { *(v4u *)p = v; }
INLINE v4 all(float a) { return (v4){a, a, a, a}; }
static float sum(v4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }
static u32 pad4(u32 n) { return (n + 3) & ~3u; }

#define clear(p, n) __builtin_memset(p, 0, n)
#define copy(to, from, n) __builtin_memcpy(to, from, n)

// ---- memory: allocations are never freed ----

extern u8 __heap_base;
static unsigned long top;

// alloc returns n bytes aligned to 64, or 0 if memory is exhausted.
void *EXPORT(alloc)(unsigned long n) {
  if (!top) top = ((unsigned long)&__heap_base + 63) & ~63UL;
  unsigned long have = __builtin_wasm_memory_size(0) * 65536UL;
  if (n > 0xf0000000UL || top > 0xf0000000UL - n) return 0;
  unsigned long end = (top + n + 63) & ~63UL;
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + 65535) / 65536) == (unsigned long)-1) return 0;
  void *p = (void *)top;
  top = end;
  return p;
}

// ---- the weights file ----

enum { HEADER = 96, HALF = 1, DENOISER = 1, INVERSE = 2, SQUASH = 4 };
enum { BOUND, JOINED, SCALARS, REALS };       // latent: HRR, VQ-VAE, QLAE and Tripod, the VAEs and AEs
enum { NONE, CIRCULAR, MATRICES, GATHERED };  // binding
enum { OK, SHORT, FOREIGN, DAMAGED, IMPOSSIBLE, LENGTH, MEMORY, NUMBERS };

struct header {
  u8 magic[8];
  u32 crc; // CRC-32 of everything after it
  u32 type, latent, binding, flags;
  u32 h, w, c, widths[4], fc, m, k, d, n;
  float gain;
  u32 numbers, reserved[3];
};

static struct header H;
static u32 c4[4], d4, n4, fc4, h16, w16; // padded widths, vectors and style; canvas size

// The tensors, in the file's order.
static const float *kernel[4], *gain[4], *bias[4], *fc1, *fc1b, *fc2, *fc2b;
static const float *symbols, *inverses, *rows[2], *denoise1, *denoise1b, *denoise2, *denoise2b, *codebook;
static const float *style, *styleb, *canvas, *up[4], *scale[4], *scaleb[4], *shift[4], *shiftb[4], *out;
static float gathered; // gain of a gathered binding

// Buffers.
static float *z, *slots, *found, *hidden, *affine, *padded, *raw, *start, *doubled, *norms;
static int *codes, *order;
static u8 *image;

static u32 crc32(const u8 *p, u32 n) {
  static u32 table[256];
  if (!table[1])
    for (u32 i = 0; i < 256; i++) {
      u32 c = i;
      for (int b = 0; b < 8; b++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      table[i] = c;
    }
  u32 c = ~0u;
  while (n--) c = table[(c ^ *p++) & 255] ^ (c >> 8);
  return ~c;
}

static int within(u32 v, u32 low, u32 high) { return v >= low && v <= high; }

// possible reports whether the header describes a valid model. Every size is bounded, so that no product below overflows 64 bits.
static int possible(void) {
  if (H.type > HALF || H.latent > REALS || H.binding > GATHERED || H.flags > (DENOISER | INVERSE | SQUASH)) return 0;
  if (!within(H.h, 32, 128) || !within(H.w, 32, 128) || H.h % 16 || H.w % 16 || (H.c != 1 && H.c != 3)) return 0;
  for (int l = 0; l < 4; l++)
    if (!within(H.widths[l], 1, 4096)) return 0;
  if (!within(H.fc, 1, 16384) || !within(H.m, 1, 64) || !within(H.d, 1, 16384)) return 0;
  if (H.latent == REALS ? H.k != 0 : !within(H.k, 2, 65536)) return 0;
  if (!(H.gain > 0 && H.gain < 1e6f)) return 0;
  if ((H.latent == BOUND) != (H.binding != NONE) || (H.latent != BOUND && (H.flags & ~SQUASH))) return 0;
  if ((H.flags & SQUASH) && H.latent != SCALARS) return 0;
  if ((H.flags & INVERSE) && H.binding != CIRCULAR) return 0;
  if (H.latent >= SCALARS && H.d != 1) return 0;
  return H.n == (H.latent == BOUND ? H.d : H.m * H.d);
}

// take_tensor advances through the tensors: with base 0 it only counts numbers, otherwise it returns the next tensor.
static u64 at_number;
static const float *base;
static const float *take_tensor(u64 count) {
  const float *p = base ? base + at_number : 0;
  at_number += (count + 3) & ~(u64)3;
  return p;
}

// lay assigns all tensors in the order of the file.
static void lay(void) {
  at_number = 0;
  u64 in = H.c;
  for (int l = 0; l < 4; l++) {
    kernel[l] = take_tensor(16 * in * c4[l]);
    gain[l] = take_tensor(c4[l]);
    bias[l] = take_tensor(c4[l]);
    in = H.widths[l];
  }
  fc1 = take_tensor((u64)H.fc * h16 * w16 * c4[3]);
  fc1b = take_tensor(H.fc);
  fc2 = take_tensor((u64)H.n * fc4);
  fc2b = take_tensor(H.n);
  u64 pairs = (u64)H.m * H.d;
  if (H.binding == CIRCULAR) {
    symbols = take_tensor(pairs);
    inverses = H.flags & INVERSE ? take_tensor(pairs) : symbols;
  }
  if (H.binding == MATRICES) symbols = take_tensor(pairs * d4);
  if (H.binding == GATHERED) {
    rows[0] = take_tensor(pairs);
    rows[1] = take_tensor(pairs);
    const float *g = take_tensor(1);
    gathered = g ? *g : 0;
  }
  if (H.flags & DENOISER) {
    denoise1 = take_tensor(2 * (u64)H.d * d4);
    denoise1b = take_tensor(2 * H.d);
    denoise2 = take_tensor((u64)H.d * pad4(2 * H.d));
    denoise2b = take_tensor(H.d);
  }
  if (H.latent <= JOINED) codebook = take_tensor((u64)H.k * d4);
  if (H.latent == SCALARS) codebook = take_tensor((u64)H.m * H.k);
  style = take_tensor((u64)H.fc * n4);
  styleb = take_tensor(H.fc);
  canvas = take_tensor((u64)h16 * w16 * c4[3]);
  in = H.widths[3];
  for (int l = 0; l < 4; l++) {
    u64 to = c4[3 - l];
    up[l] = take_tensor(16 * in * to);
    scale[l] = take_tensor(to * fc4);
    scaleb[l] = take_tensor(to);
    shift[l] = take_tensor(to * fc4);
    shiftb[l] = take_tensor(to);
    in = H.widths[3 - l];
  }
  out = take_tensor(9 * in * 4);
}

static float half(u16 x) {
  u32 sign = (u32)(x & 0x8000) << 16, e = (x >> 10) & 31, f = x & 1023;
  union { u32 u; float f; } v;
  if (e == 0) {
    float tiny = (float)f * 5.9604644775390625e-8f; // 2^-24
    return sign ? -tiny : tiny;
  }
  v.u = sign | (e == 31 ? 0x7f800000 | f << 13 : (e + 112) << 23 | f << 13);
  return v.f;
}

static float *floats(u64 n) {
  if (n > 0x3c000000) return 0;
  float *p = alloc((n + 8) * 4); // vector loads may read past the end
  if (p) clear(p, (n + 8) * 4);
  return p;
}

static u64 most(u64 a, u64 b) { return a > b ? a : b; }

// buffers allocates the buffers, for the largest feature maps with and without their border of zeros.
static int buffers(void) {
  u64 bordered = (u64)(H.h + 2) * (H.w + 2) * 4, plain = 0;
  for (int l = 0; l < 4; l++) {
    u32 h = H.h >> (l + 1), w = H.w >> (l + 1); // after Conv l+1
    plain = most(plain, (u64)h * w * c4[l]);
    bordered = most(bordered, (u64)(h + 2) * (w + 2) * c4[l]);
    h *= 2, w *= 2; // after Up of the same width
    plain = most(plain, (u64)h * w * c4[l]);
    bordered = most(bordered, (u64)(h + 2) * (w + 2) * c4[l]);
  }
  u64 vectors = (u64)H.m * d4, widest = 0;
  for (int l = 0; l < 4; l++) widest = most(widest, c4[l]);
  affine = floats(2 * widest);
  z = floats(n4), slots = floats(vectors), found = floats(vectors), doubled = floats(2 * (u64)H.d + 8);
  hidden = floats(most(2 * (u64)H.d, H.fc) + 8), padded = floats(bordered), raw = floats(plain);
  start = floats(4 * (u64)h16 * w16 * c4[3]), norms = floats(H.latent <= JOINED ? H.k : 0);
  codes = alloc(H.m * 4), image = alloc(H.h * H.w * 4), order = alloc(H.binding == GATHERED ? H.m * H.d * 4 : 4);
  return affine && z && slots && found && doubled && hidden && padded && raw && start && norms && codes && image && order;
}

static void prepare(void);

// indices reads a gathered binding: the component of a slot's value that each component of z takes, −1 for none.
static int indices(void) {
  for (u32 i = 0; i < H.m * H.d; i++) {
    float low = rows[0][i], high = rows[1][i];
    if (!(low >= 0 && low < 2048 && high >= 0 && high <= 8)) return 0;
    order[i] = (int)low + 2048 * (int)high - 1;
    if ((float)(int)low != low || (float)(int)high != high || order[i] >= (int)H.d) return 0;
  }
  return 1;
}

// open reads a weights file of n bytes and returns OK, or the kind of error.
int EXPORT(open)(const u8 *file, u32 n) {
  static const u8 magic[8] = {'S', 'L', 'O', 'T', 'W', 'T', 'S', 1};
  if (n < HEADER) return SHORT;
  for (int i = 0; i < 8; i++)
    if (file[i] != magic[i]) return FOREIGN;
  copy(&H, file, HEADER);
  if (crc32(file + 12, n - 12) != H.crc) return DAMAGED;
  if (!possible()) return IMPOSSIBLE;
  for (int l = 0; l < 4; l++) c4[l] = pad4(H.widths[l]);
  d4 = pad4(H.d), n4 = pad4(H.n), fc4 = pad4(H.fc), h16 = H.h / 16, w16 = H.w / 16;
  if (H.latent >= SCALARS) d4 = 1;
  base = 0;
  lay();
  u32 size = H.type == HALF ? 2 : 4;
  if (at_number != H.numbers || (u64)n - HEADER != at_number * size || (n - HEADER) % size) return LENGTH;
  float *all_numbers = floats(at_number);
  if (!all_numbers) return MEMORY;
  if (H.type == HALF)
    for (u32 i = 0; i < H.numbers; i++) all_numbers[i] = half((u16)(file[HEADER + 2 * i] | file[HEADER + 2 * i + 1] << 8));
  else
    copy(all_numbers, file + HEADER, (unsigned long)H.numbers * 4);
  base = all_numbers;
  lay();
  if (!buffers()) return MEMORY;
  if (H.binding == GATHERED && !indices()) return NUMBERS;
  prepare();
  return OK;
}

// at returns the address of a buffer or the codebook: 0 z [n], 1 slots [m, d4], 2 values found in them [m, d4], 3 codes [m], 4 the
// image [h, w, c] as bytes, 5 the codebook [k, d4] or [m, k]; 6 is the row length d4.
const void *EXPORT(at)(u32 which) {
  const void *places[] = {z, slots, found, codes, image, codebook, (void *)(unsigned long)d4};
  return which < sizeof places / sizeof *places ? places[which] : 0;
}

// ---- linear layers ----

static float dot(const float *a, const float *b, u32 n) { // n is a multiple of 4
  v4 s = all(0), t = all(0);
  u32 i = 0;
  for (; i + 8 <= n; i += 8) s += load(a + i) * load(b + i), t += load(a + i + 4) * load(b + i + 4);
  for (; i < n; i += 4) s += load(a + i) * load(b + i);
  return sum(s + t);
}

static void axpy(float *y, const float *x, float a, u32 n) { // n is a multiple of 4
  for (u32 i = 0; i < n; i += 4) store(y + i, load(y + i) + all(a) * load(x + i));
}

// linear computes y = W x + b with rows of W padded to in4, then LeakyReLU with the slope; slope 1 is the identity.
static void linear(float *y, const float *w, const float *b, const float *x, u32 rows_, u32 in4, float slope) {
  for (u32 o = 0; o < rows_; o++) {
    float v = dot(w + (u64)o * in4, x, in4) + b[o];
    y[o] = v > 0 ? v : slope * v;
  }
  for (u32 o = rows_; o < pad4(rows_); o++) y[o] = 0;
}

// ---- convolutions ----

// taps holds the inputs of a row's first pixel and the matching kernels.
struct taps {
  int count;
  const float *x[16], *k[16];
};

// pixels computes P pixels of 4·V channels: pixel p reads from x + p·step and writes to y + p·apart; kernels are [ci][co].
INLINE void pixels(const struct taps *t, u32 x, u32 o, float *y, u32 apart, u32 step, u32 ci, u32 co, int P, int V) {
  v4 acc[8][2];
  for (int p = 0; p < P; p++) acc[p][0] = acc[p][1] = all(0);
  for (int n = 0; n < t->count; n++) {
    const float *in = t->x[n] + x, *k = t->k[n] + o;
    for (u32 i = 0; i < ci; i++, in++, k += co) {
      v4 k0 = load(k), k1 = V == 2 ? load(k + 4) : k0;
      for (int p = 0; p < P; p++) {
        v4 s = all(in[p * step]);
        acc[p][0] += s * k0;
        if (V == 2) acc[p][1] += s * k1;
      }
    }
  }
  for (int p = 0; p < P; p++) {
    store(y + p * apart, acc[p][0]);
    if (V == 2) store(y + p * apart + 4, acc[p][1]);
  }
}

// row computes a row of n pixels of co channels; apart and step are the distances of outputs and inputs in numbers.
static __attribute__((noinline)) void row(const struct taps *t, float *y, u32 n, u32 apart, u32 step, u32 ci, u32 co) {
  for (u32 x = 0; x < n;) {
    float *to = y + x * apart;
    u32 left = n - x, from = x * step, o = 0, many = left >= 4 ? 4 : 1;
    if (co < 8 && left >= 8) {
      pixels(t, from, 0, to, apart, step, ci, co, 8, 1);
      x += 8;
      continue;
    }
    for (; o + 8 <= co; o += 8)
      if (many == 4) pixels(t, from, o, to + o, apart, step, ci, co, 4, 2);
      else pixels(t, from, o, to + o, apart, step, ci, co, 1, 2);
    if (o < co) {
      if (many == 4) pixels(t, from, o, to + o, apart, step, ci, co, 4, 1);
      else pixels(t, from, o, to + o, apart, step, ci, co, 1, 1);
    }
    x += many;
  }
}

// halve is a 4×4 convolution with stride 2 and padding 1: x is [h+2, w+2, s] with its border, y is [h/2, w/2, co].
static void halve(const float *x, float *y, const float *k, u32 h, u32 w, u32 ci, u32 s, u32 co) {
  u32 line = (w + 2) * s;
  for (u32 r = 0; r < h / 2; r++) {
    struct taps t;
    t.count = 16;
    for (int ky = 0; ky < 4; ky++)
      for (int kx = 0; kx < 4; kx++)
        t.x[4 * ky + kx] = x + (u64)(2 * r + ky) * line + kx * s, t.k[4 * ky + kx] = k + (u64)(4 * ky + kx) * ci * co;
    row(&t, y + (u64)r * (w / 2) * co, w / 2, co, 2 * s, ci, co);
  }
}

// twice is the transposed 4×4 convolution with stride 2 and padding 1: x is [h+2, w+2, s] with its border, y is [2h, 2w, co]. Pixels
// of each parity use 2×2 taps.
static void twice(const float *x, float *y, const float *k, u32 h, u32 w, u32 ci, u32 s, u32 co) {
  u32 line = (w + 2) * s;
  for (int py = 0; py < 2; py++)
    for (int px = 0; px < 2; px++)
      for (u32 r = 0; r < h; r++) {
        struct taps t;
        t.count = 4;
        for (int a = 0; a < 2; a++)
          for (int b = 0; b < 2; b++) {
            int ky = py ? 2 * a : 1 + 2 * a, dy = py ? 1 - a : -a; // row of the kernel and matching row of x
            int kx = px ? 2 * b : 1 + 2 * b, dx = px ? 1 - b : -b;
            t.x[2 * a + b] = x + (u64)((int)r + dy + 1) * line + (u64)(dx + 1) * s;
            t.k[2 * a + b] = k + (u64)(4 * ky + kx) * ci * co;
          }
        row(&t, y + ((u64)(2 * r + py) * 2 * w + px) * co, w, 2 * co, s, ci, co);
      }
}

// ---- instance norm ----

static v4 leaky(v4 v) {
  i4 positive = v > all(0);
  return (v4)(((i4)v & positive) | ((i4)(v * all(0.2f)) & ~positive));
}

// normal scales every channel of y, [h, w, c], to mean 0 and variance 1; it sums by rows first for accuracy.
static void normal(float *y, u32 h, u32 w, u32 c, int leak) {
  float of = 1 / (float)(h * w);
  for (u32 o = 0; o < c; o += 4) {
    v4 total = all(0), square = all(0);
    for (u32 r = 0; r < h; r++) {
      v4 part = all(0);
      for (u32 x = 0; x < w; x++) {
        float *p = y + ((u64)r * w + x) * c + o;
        v4 v = load(p);
        if (leak) v = leaky(v), store(p, v);
        part += v;
      }
      total += part;
    }
    v4 mean = total * all(of);
    for (u32 r = 0; r < h; r++) {
      v4 part = all(0);
      for (u32 x = 0; x < w; x++) {
        v4 v = load(y + ((u64)r * w + x) * c + o) - mean;
        part += v * v;
      }
      square += part;
    }
    v4 factor;
    for (int j = 0; j < 4; j++) factor[j] = 1 / __builtin_sqrtf(square[j] * of + 1e-5f);
    for (u32 p = 0; p < h * w; p++) {
      float *q = y + (u64)p * c + o;
      store(q, (load(q) - mean) * factor);
    }
  }
}

// border writes y·a + b with a border of zeros to x, [h+2, w+2, c]; a and b are [c].
static void border(float *x, const float *y, u32 h, u32 w, u32 c, const float *a, const float *b, int leak) {
  u32 line = (w + 2) * c;
  clear(x, (unsigned long)line * 4), clear(x + (u64)(h + 1) * line, (unsigned long)line * 4);
  for (u32 r = 0; r < h; r++) {
    float *to = x + (u64)(r + 1) * line;
    clear(to, c * 4UL), clear(to + (u64)(w + 1) * c, c * 4UL);
    for (u32 p = 0; p < w; p++)
      for (u32 o = 0; o < c; o += 4) {
        v4 v = load(y + ((u64)r * w + p) * c + o) * load(a + o) + load(b + o);
        store(to + (u64)(p + 1) * c + o, leak ? leaky(v) : v);
      }
  }
}

// ---- the encoder ----

// see maps the image to z: 4 × (Conv 4/2/1 → InstanceNorm → LeakyReLU), FC 1 → ReLU, FC 2.
void EXPORT(see)(void) {
  u32 h = H.h, w = H.w, ci = H.c, s = 4;
  clear(padded, (unsigned long)(h + 2) * (w + 2) * s * 4);
  for (u32 y = 0; y < h; y++)
    for (u32 x = 0; x < w; x++)
      for (u32 c = 0; c < ci; c++) padded[((y + 1) * (w + 2) + x + 1) * s + c] = (float)image[(y * w + x) * ci + c] / 255;
  for (int l = 0; l < 4; l++) {
    halve(padded, raw, kernel[l], h, w, ci, s, c4[l]);
    h /= 2, w /= 2, ci = H.widths[l], s = c4[l];
    normal(raw, h, w, s, 0);
    border(padded, raw, h, w, s, gain[l], bias[l], 1);
  }
  for (u32 r = 0; r < h; r++) copy(raw + (u64)r * w * s, padded + ((u64)(r + 1) * (w + 2) + 1) * s, (unsigned long)w * s * 4);
  linear(hidden, fc1, fc1b, raw, H.fc, h * w * s, 0);
  linear(z, fc2, fc2b, hidden, H.n, fc4, 1);
  for (u32 i = 0; i < H.n; i++) z[i] *= H.gain;
}

// ---- binding ----

// twofold writes a symbol twice, so that its rotations are contiguous in one array.
static void twofold(const float *s) {
  copy(doubled, s, H.d * 4UL), copy(doubled + H.d, s, H.d * 4UL);
}

// bundle computes ẑ = Σ_i M_i v_i into z.
static void bundle(void) {
  if (H.binding == NONE) {
    for (u32 i = 0; i < H.m; i++) copy(z + i * H.d, slots + i * d4, H.d * 4UL);
    return;
  }
  clear(z, n4 * 4UL);
  for (u32 i = 0; i < H.m; i++) {
    const float *v = slots + i * d4;
    switch (H.binding) {
    case CIRCULAR: // ẑ_n += Σ_j v_j s_{n−j}
      twofold(symbols + (u64)i * H.d);
      for (u32 j = 0; j < H.d; j++) axpy(z, doubled + H.d - j, v[j], d4);
      break;
    case MATRICES:
      for (u32 n = 0; n < H.d; n++) z[n] += dot(symbols + ((u64)i * H.d + n) * d4, v, d4);
      break;
    default:
      for (u32 n = 0; n < H.d; n++)
        if (order[i * H.d + n] >= 0) z[n] += gathered * v[order[i * H.d + n]];
    }
  }
  for (u32 n = H.d; n < n4; n++) z[n] = 0;
}

// retrieve computes ṽ_i = M_iᵀ z into v; with the exact inverse, inverses replace the symbols.
static void retrieve(u32 i, float *v) {
  clear(v, d4 * 4UL);
  switch (H.binding) {
  case NONE:
    copy(v, z + i * H.d, H.d * 4UL);
    return;
  case CIRCULAR: // ṽ_j = Σ_n z_n s_{n−j}
    twofold(inverses + (u64)i * H.d);
    for (u32 j = 0; j < H.d; j++) v[j] = dot(z, doubled + H.d - j, n4); // z is 0 beyond d
    return;
  case MATRICES:
    for (u32 n = 0; n < H.d; n++) axpy(v, symbols + ((u64)i * H.d + n) * d4, z[n], d4);
    return;
  }
  for (u32 n = 0; n < H.d; n++)
    if (order[i * H.d + n] >= 0) v[order[i * H.d + n]] += gathered * z[n];
}

// A VAE's numbers are on a grid: code c means (c − 1024)/64, as in the playground's URLs.
enum { GRID_ZERO = 1024, GRID_STEPS = 64, GRID_CODES = 2049 };

static int nearest(u32 i, const float *v) {
  if (H.latent == REALS) {
    float c = v[0] * GRID_STEPS + GRID_ZERO + 0.5f;
    return c < 0 ? 0 : c >= GRID_CODES ? GRID_CODES - 1 : c == c ? (int)c : GRID_ZERO;
  }
  int best = 0;
  float least = __builtin_inff();
  for (u32 j = 0; j < H.k; j++) {
    float distance;
    if (H.latent == SCALARS) distance = __builtin_fabsf(v[0] - codebook[i * H.k + j]);
    else distance = norms[j] - 2 * dot(v, codebook + (u64)j * d4, d4);
    if (distance < least) least = distance, best = (int)j;
  }
  return best;
}

static v4 sigmoid255(v4 x);

// squash returns tanh v = 2/(1 + e^−2v) − 1.
static float squash(float v) { return (sigmoid255(all(2 * v))[0] - 0.5f) * (2 / 255.0f) - 1; }

// represent computes the retrieved and denoised value of every slot of z, and its code.
void EXPORT(represent)(void) {
  for (u32 i = H.n; i < n4; i++) z[i] = 0;
  for (u32 i = 0; i < H.m; i++) {
    float *v = found + i * d4;
    retrieve(i, v);
    if (H.flags & DENOISER) {
      linear(hidden, denoise1, denoise1b, v, 2 * H.d, d4, 0.01f);
      linear(v, denoise2, denoise2b, hidden, H.d, pad4(2 * H.d), 1);
    }
    if (H.flags & SQUASH) v[0] = squash(v[0]);
    codes[i] = nearest(i, v);
  }
}

// take copies the entries of the codes to the slots. It returns 0, or 1 + the slot with an invalid code.
u32 EXPORT(take)(void) {
  u32 count = H.latent == REALS ? GRID_CODES : H.k;
  for (u32 i = 0; i < H.m; i++) {
    if (codes[i] < 0 || (u32)codes[i] >= count) return i + 1;
    float *v = slots + i * d4;
    if (H.latent == REALS) v[0] = (float)(codes[i] - GRID_ZERO) / GRID_STEPS;
    else if (H.latent == SCALARS) v[0] = codebook[i * H.k + (u32)codes[i]];
    else copy(v, codebook + (u64)codes[i] * d4, d4 * 4UL);
  }
  return 0;
}

// ---- the decoder ----

// prepare computes the parts shared by all images: the norms of the entries, and Up 1 of the canvas, which is before any style.
static void prepare(void) {
  if (H.latent <= JOINED)
    for (u32 j = 0; j < H.k; j++) norms[j] = dot(codebook + (u64)j * d4, codebook + (u64)j * d4, d4);
  u32 c = c4[3];
  for (u32 o = 0; o < c; o++) affine[o] = 1, affine[c + o] = 0;
  border(padded, canvas, h16, w16, c, affine, affine + c, 0);
  twice(padded, start, up[0], h16, w16, H.widths[3], c, c);
  normal(start, 2 * h16, 2 * w16, c, 1);
}

// sigmoid255 returns 255/(1 + e^−x) + ½, with e^−x as 2^n · 2^f and a polynomial for |f| ≤ ½, within 3e-7 of e^−x.
static v4 sigmoid255(v4 x) {
  i4 high = x > all(80), low = x < all(-80);
  x = (v4)(((i4)x & ~(high | low)) | ((i4)all(80) & high) | ((i4)all(-80) & low));
  v4 t = x * all(-1.44269504f);
  v4 n = (t + all(12582912)) - all(12582912);
  v4 f = t - n;
  v4 p = all(1.5403530e-4f);
  p = p * f + all(1.3333558e-3f);
  p = p * f + all(9.6181291e-3f);
  p = p * f + all(5.5504109e-2f);
  p = p * f + all(2.4022651e-1f);
  p = p * f + all(6.9314718e-1f);
  p = p * f + all(1);
  i4 power = (__builtin_convertvector(n, i4) + 127) << 23;
  return all(255) / (all(1) + p * (v4)power) + all(0.5f);
}

// output applies the 3×3 convolution to C channels and the sigmoid, and writes bytes.
static void output(void) {
  u32 ci = H.widths[0], s = c4[0], line = (H.w + 2) * s;
  for (u32 r = 0; r < H.h; r++) {
    struct taps t;
    t.count = 9;
    for (int ky = 0; ky < 3; ky++)
      for (int kx = 0; kx < 3; kx++)
        t.x[3 * ky + kx] = padded + (u64)(r + ky) * line + kx * s, t.k[3 * ky + kx] = out + (u64)(3 * ky + kx) * ci * 4;
    row(&t, raw, H.w, 4, s, ci, 4);
    u8 *to = image + r * H.w * H.c;
    for (u32 x = 0; x < H.w; x++) {
      i4 bytes = __builtin_convertvector(sigmoid255(load(raw + 4 * x)), i4);
      for (u32 c = 0; c < H.c; c++) *to++ = (u8)bytes[c];
    }
  }
}

// draw renders the slots: ẑ, the style w = ReLU(Linear ẑ/gain), 4 × (ConvT → LeakyReLU → InstanceNorm → AdaIN), Conv 3×3.
void EXPORT(draw)(void) {
  bundle();
  for (u32 i = 0; i < H.n; i++) z[i] /= H.gain;
  linear(hidden, style, styleb, z, H.fc, n4, 0);
  for (u32 i = 0; i < H.n; i++) z[i] *= H.gain; // z stays ẑ
  u32 h = h16, w = w16, ci = H.widths[3], s = c4[3];
  const float *x = start;
  for (int l = 0; l < 4; l++) {
    u32 co = c4[3 - l];
    if (l > 0) {
      twice(padded, raw, up[l], h, w, ci, s, co);
      normal(raw, 2 * h, 2 * w, co, 1);
      x = raw;
    }
    h *= 2, w *= 2, ci = H.widths[3 - l], s = co;
    linear(affine, scale[l], scaleb[l], hidden, co, fc4, 1);
    linear(affine + co, shift[l], shiftb[l], hidden, co, fc4, 1);
    for (u32 o = 0; o < co; o++) affine[o] += 1;
    border(padded, x, h, w, co, affine, affine + co, 0);
  }
  output();
}
