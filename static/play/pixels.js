// Painting pixels of h × w × c bytes onto canvases of exactly that size; style sheets enlarge them.

const canvases = new WeakMap(); // a server-rendered image → its replacement

/** shows reports whether an image is still the server's and shows codes. */
export const shows = (picture, codes) => picture instanceof HTMLImageElement && picture.isConnected && picture.dataset.codes === codes && picture.complete && picture.naturalWidth > 1; // a frozen page has one-pixel placeholders

/** canvasFor replaces a server-rendered image by a canvas of its size, with the same attributes. */
export function canvasFor(img, { h, w }) {
  if (img instanceof HTMLCanvasElement) return img;
  if (canvases.has(img)) return canvases.get(img);
  const canvas = document.createElement('canvas');
  canvas.width = w;
  canvas.height = h;
  for (const { name, value } of img.attributes) if (!['src', 'width', 'height', 'alt', 'loading', 'fetchpriority'].includes(name)) canvas.setAttribute(name, value);
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', img.alt);
  if (!img.alt) canvas.setAttribute('aria-hidden', 'true');
  const show = () => { if (!canvas.dataset.painted && img.naturalWidth) canvas.getContext('2d').drawImage(img, 0, 0, w, h); };
  if (img.complete) show(); else img.addEventListener('load', show, { once: true });
  canvases.set(img, canvas);
  img.replaceWith(canvas);
  return canvas;
}

const rgba = new WeakMap(); // pixels → ImageData

function imageData(pixels, { h, w, c }) {
  let data = rgba.get(pixels);
  if (!data) {
    data = new ImageData(w, h);
    for (let p = 0; p < h * w; p++) {
      for (let ch = 0; ch < 3; ch++) data.data[4 * p + ch] = pixels[p * c + Math.min(ch, c - 1)];
      data.data[4 * p + 3] = 255;
    }
    rgba.set(pixels, data);
  }
  return data;
}

/** pixelsOf returns the h · w · c bytes of an image of that size. */
export function pixelsOf(image, { h, w, c }) {
  const ctx = new OffscreenCanvas(w, h).getContext('2d', { willReadFrequently: true });
  ctx.drawImage(image, 0, 0, w, h);
  const { data } = ctx.getImageData(0, 0, w, h);
  const out = new Uint8Array(h * w * c);
  for (let p = 0; p < h * w; p++) for (let ch = 0; ch < c; ch++) out[p * c + ch] = data[p * 4 + ch];
  return out;
}

const shown = new WeakMap(); // canvas → its pixels

/** paint shows pixels. It keeps a server-rendered image of the same codes, because each canvas costs the browser a layer. */
export function paint(picture, pixels, shape, codes) {
  if (shows(picture, codes)) return;
  const canvas = canvasFor(picture, shape);
  if (codes && canvas.dataset.codes !== codes) canvas.dataset.codes = codes;
  if (shown.get(canvas) === pixels) return;
  shown.set(canvas, pixels);
  canvas.dataset.painted = 'yes';
  canvas.classList.remove('skeleton');
  canvas.getContext('2d').putImageData(imageData(pixels, shape), 0, 0);
}

/** psnr returns the peak signal-to-noise ratio of two images in dB, at most 100. */
export function psnr(x, y) {
  let square = 0;
  for (let i = 0; i < x.length; i++) square += (x[i] - y[i]) ** 2;
  return square === 0 ? 100 : Math.min(100, 10 * Math.log10((255 * 255 * x.length) / square));
}

/** spotlight paints the part of an image that a slot accounts for: opaque where map is high relative to scale, faint elsewhere. */
export function spotlight(canvas, pixels, map, scale, shape) {
  const { h, w } = shape;
  const out = new ImageData(imageData(pixels, shape).data.slice(), w, h);
  const full = Math.max(24, scale * 0.35); // from here on a pixel is opaque
  const alpha = Uint8Array.from({ length: 256 }, (_, d) => Math.round(255 * (0.14 + 0.86 * Math.min(1, d / full))));
  for (let p = 0; p < h * w; p++) out.data[4 * p + 3] = alpha[map[p]];
  canvas.getContext('2d').putImageData(out, 0, 0);
}

/** heat paints a difference map in one colour, opaque at scale. */
export function heat(canvas, map, scale, { h, w }, [r, g, b]) {
  const out = new ImageData(w, h);
  const alpha = Uint8Array.from({ length: 256 }, (_, d) => Math.round(255 * Math.sqrt(Math.min(1, d / Math.max(1, scale)))));
  const { data } = out;
  for (let p = 0, at = 0; p < h * w; p++) {
    data[at++] = r;
    data[at++] = g;
    data[at++] = b;
    data[at++] = alpha[map[p]];
  }
  canvas.getContext('2d').putImageData(out, 0, 0);
}

/** inkOf returns an element's text colour as [r, g, b]. */
export function inkOf(element) {
  const probe = new OffscreenCanvas(1, 1).getContext('2d');
  probe.fillStyle = getComputedStyle(element).color;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}
