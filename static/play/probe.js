// The probe: reads the factors from an image, with weights trained by evaluations on the dataset. model/play/reader.go writes its file.

const KERNEL = 4; // of convolutions, whose stride is 2 and padding 1
const CONVOLUTIONS = 3;

export class Probe {
  #opened = false;

  /** Opens the file, an ArrayBuffer. Its numbers are unpacked on the first read, because a page may leave that to its workers. */
  constructor(file) {
    this.file = file;
    const length = new DataView(file).getUint32(0, true);
    this.head = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 4, length)));
    this.start = 4 + length;
    const { matrices, sizes } = this.head;
    const numbers = [matrices.at(-2)[1], ...sizes, ...matrices.map(([, cols]) => cols)].reduce((a, b) => a + b, 0);
    const size = this.start + 4 * numbers + matrices.reduce((sum, [rows, cols]) => sum + rows * cols, 0);
    if (size !== file.byteLength) throw new Error('The probe’s file is damaged. Reload the page.');
  }

  #open() {
    this.#opened = true;
    const { file } = this;
    let at = this.start;
    const floats = (count) => {
      const out = new Float32Array(file.slice(at, at + 4 * count));
      at += 4 * count;
      return out;
    };
    const { matrices, sizes } = this.head;
    const total = sizes.reduce((a, b) => a + b, 0);
    this.biases = [floats(matrices.at(-2)[1]), floats(total)];
    this.matrices = matrices.map(([rows, cols]) => {
      const scale = floats(cols);
      const bytes = new Int8Array(file, at, rows * cols);
      at += rows * cols;
      return { rows, cols, data: Float32Array.from(bytes, (q, i) => q * scale[i % cols]) };
    });
  }

  /** read returns the class of every factor from pixels of h · w · c bytes. */
  read(pixels) {
    if (!this.#opened) this.#open();
    let { h, w, c } = this.head;
    let x = Float32Array.from(pixels, (v) => v / 255 - 0.5);
    for (const kernel of this.matrices.slice(0, CONVOLUTIONS)) {
      x = convolve(x, h, w, c, kernel);
      [h, w, c] = [h / 2, w / 2, kernel.cols];
    }
    const rest = this.matrices.slice(CONVOLUTIONS); // fc1, as one matrix or a product of two, and fc2
    for (const m of rest.slice(0, -1)) x = product(x, m);
    x = x.map((v, i) => leaky(v + this.biases[0][i]));
    x = product(x, rest.at(-1)).map((v, i) => v + this.biases[1][i]);
    let at = 0;
    return this.head.sizes.map((n) => {
      let best = at;
      for (let i = at; i < at + n; i++) if (x[i] > x[best]) best = i;
      at += n;
      return best - at + n;
    });
  }
}

const leaky = (v) => (v > 0 ? v : 0.1 * v);

function product(x, { rows, cols, data }) {
  const out = new Float32Array(cols);
  for (let i = 0, at = 0; i < rows; i++) {
    const v = x[i];
    for (let o = 0; o < cols; o++, at++) out[o] += v * data[at];
  }
  return out;
}

function convolve(x, h, w, c, { cols, data }) {
  const [oh, ow] = [h / 2, w / 2];
  const out = new Float32Array(oh * ow * cols);
  for (let y = 0; y < oh; y++) {
    for (let xx = 0; xx < ow; xx++) {
      const to = (y * ow + xx) * cols;
      for (let ky = 0; ky < KERNEL; ky++) {
        const iy = 2 * y - 1 + ky;
        if (iy < 0 || iy >= h) continue;
        for (let kx = 0; kx < KERNEL; kx++) {
          const ix = 2 * xx - 1 + kx;
          if (ix < 0 || ix >= w) continue;
          for (let ch = 0; ch < c; ch++) {
            const v = x[(iy * w + ix) * c + ch];
            const from = ((ky * KERNEL + kx) * c + ch) * cols;
            for (let o = 0; o < cols; o++) out[to + o] += v * data[from + o];
          }
        }
      }
      for (let o = to; o < to + cols; o++) out[o] = leaky(out[o]);
    }
  }
  return out;
}
