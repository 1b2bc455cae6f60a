// Exports a chart: SVG redrawn from its points, PNG from its canvas.

const size = { width: 720, height: 360, left: 64, right: 16, top: 34, bottom: 40 };

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const short = (v) => String(Number(v.toFixed(2)));

/** ticks returns about n round numbers within [lo, hi]. */
export function ticks(lo, hi, n = 6) {
  const raw = (hi - lo) / n;
  if (!(raw > 0) || !Number.isFinite(raw)) return [lo];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const out = [];
  for (let i = Math.ceil(lo / step); i * step <= hi + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

/** svg draws {title, unit, across, x: [lo, hi], y: [lo, hi], log, lines: [{label, stroke, dash, width, xs, ys}]}; null in ys breaks a line. */
export function svg({ title, unit, across, x, y, log, lines }) {
  const { width, height, left, right, top, bottom } = size;
  const scale = log ? Math.log10 : (v) => v;
  const [y0, y1] = y.map(scale);
  const px = (v) => left + ((v - x[0]) / (x[1] - x[0] || 1)) * (width - left - right);
  const py = (v) => height - bottom - ((scale(v) - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="${left}" y="20" font-weight="600">${escaped(title)}${unit ? ` <tspan fill="#555" font-weight="400">${escaped(unit)}</tspan>` : ''}</text>`,
    `<clipPath id="c"><rect x="${left}" y="${top}" width="${width - left - right}" height="${height - top - bottom}"/></clipPath>`,
  ];
  for (const v of ticks(x[0], x[1])) out.push(`<path d="M${short(px(v))} ${top}V${height - bottom}" stroke="#ddd"/><text x="${short(px(v))}" y="${height - bottom + 16}" text-anchor="middle" fill="#555">${v}</text>`);
  for (const v of log ? ticks(y0, y1).filter(Number.isInteger).map((e) => 10 ** e) : ticks(y[0], y[1])) out.push(`<path d="M${left} ${short(py(v))}H${width - right}" stroke="#ddd"/><text x="${left - 6}" y="${short(py(v) + 4)}" text-anchor="end" fill="#555">${v}</text>`);
  out.push(`<text x="${width - right}" y="${height - 6}" text-anchor="end" fill="#555">${escaped(across)}</text><g clip-path="url(#c)" fill="none">`);
  for (const l of lines) {
    let d = '';
    let on = false;
    for (const [i, v] of l.ys.entries()) {
      if (v === null || v === undefined) {
        if (v === null) on = false; // undefined: a step of another line
        continue;
      }
      d += `${on ? 'L' : 'M'}${short(px(l.xs[i]))} ${short(py(v))}`;
      on = true;
    }
    if (d) out.push(`<path d="${d}" stroke="${escaped(l.stroke)}" stroke-width="${l.width}" stroke-linecap="round"${l.dash.length ? ` stroke-dasharray="${l.dash.join(' ')}"` : ''}/>`);
  }
  out.push('</g>');
  const named = lines.filter((l) => l.label);
  let at = width - right;
  for (const l of named.toReversed()) {
    at -= 8 * l.label.length + 34;
    out.push(`<path d="M${at} 16h20" stroke="${escaped(l.stroke)}" stroke-width="2"${l.dash.length ? ` stroke-dasharray="${l.dash.join(' ')}"` : ''}/><text x="${at + 25}" y="20">${escaped(l.label)}</text>`);
  }
  return `${out.join('\n')}\n</svg>\n`;
}

/** save downloads a file. */
export function save(blob, name) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

/** png renders a plot's canvas on white below its title. */
export function png(canvas, title, { paper, ink, font }) {
  const ratio = devicePixelRatio;
  const out = document.createElement('canvas');
  const head = 30 * ratio;
  Object.assign(out, { width: canvas.width, height: canvas.height + head });
  const ctx = out.getContext('2d');
  ctx.fillStyle = paper;
  ctx.fillRect(0, 0, out.width, out.height);
  ctx.fillStyle = ink;
  ctx.font = font.replace(/^\d+px/, `600 ${13 * ratio}px`);
  ctx.textBaseline = 'middle';
  ctx.fillText(title, 12 * ratio, head / 2);
  ctx.drawImage(canvas, 0, head);
  return new Promise((done) => out.toBlob(done, 'image/png'));
}
