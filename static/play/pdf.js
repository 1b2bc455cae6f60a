// A drawing as one page of PDF 1.4 with sharp pixels and selectable text. It uses fonts that every reader has: Helvetica, and ZapfDingbats for
// ticks and arrows. A line with other characters is drawn as an image.

const LATIN = new Map(Object.entries({ '’': 0x92, '‘': 0x91, '“': 0x93, '”': 0x94, '–': 0x96, '—': 0x97, '…': 0x85, '•': 0x95, '−': 0x2d }));
const DINGBATS = new Map(Object.entries({ '✓': 0x33, '✗': 0x37, '→': 0xd5 }));
const FINE = 4; // pixels per point of a line drawn as an image

/**
 * page returns a PDF of width × height points with things drawn in order, with the origin at the upper left: {text, x, y, size, bold, ink},
 * where ink is a grey level in 0–1, and {canvas, x, y, side}.
 */
export async function page(width, height, things, title) {
  const [streams, pictures] = [[], []];
  const show = async (canvas, x, y, w, h) => {
    const name = `/I${pictures.length}`;
    pictures.push([name, await picture(canvas)]);
    streams.push(`q ${w} 0 0 ${h} ${x} ${height - y - h} cm ${name} Do Q`);
  };
  for (const { text, x, y, size, bold, ink, canvas, side } of things) {
    const runs = canvas ? null : runsOf(text, bold);
    if (canvas) await show(canvas, x, y, side, side);
    else if (runs) streams.push(`BT ${ink} g ${x} ${height - y} Td ${runs.map(({ font, hex }) => `${font} ${size} Tf <${hex}> Tj`).join(' ')} ET`);
    else if (text) {
      const line = drawn(text, size, bold, ink);
      await show(line, x, y - size, line.width / FINE, line.height / FINE);
    }
  }
  const fonts = [['/H', 'Helvetica'], ['/B', 'Helvetica-Bold'], ['/Z', 'ZapfDingbats']];
  const first = 6; // number of the first image's object
  return file([
    '<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    `<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${width} ${height}]/Contents 4 0 R/Resources<</Font<<${fonts.map(([name, base]) => `${name}<</Type/Font/Subtype/Type1/BaseFont/${base}${name === '/Z' ? '' : '/Encoding/WinAnsiEncoding'}>>`).join('')}>>/XObject<<${pictures.map(([name], i) => `${name} ${first + i} 0 R`).join('')}>>>>>>`,
    stream('', latin(streams.join('\n'))), `<</Title<FEFF${Array.from(title, (c) => utf16(c)).join('')}>>>`,
    ...pictures.map(([, object]) => object),
  ]);
}

const hexOf = (n) => n.toString(16).padStart(2, '0');
const utf16 = (c) => Array.from({ length: c.length }, (_, i) => c.charCodeAt(i).toString(16).padStart(4, '0')).join('');
const latin = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));

/** runsOf splits a line by font, [{font, hex}]; null if a character is in no font. */
function runsOf(text, bold) {
  const runs = [];
  for (const c of text) {
    const code = c.codePointAt(0);
    const plain = LATIN.get(c) ?? ((code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0x100) ? code : undefined);
    const [font, byte] = plain === undefined ? ['/Z', DINGBATS.get(c)] : [bold ? '/B' : '/H', plain];
    if (byte === undefined) return null;
    if (runs.at(-1)?.font === font) runs.at(-1).hex += hexOf(byte);
    else runs.push({ font, hex: hexOf(byte) });
  }
  return runs;
}

/** drawn renders a line of text on a canvas. */
function drawn(text, size, bold, ink) {
  const canvas = document.createElement('canvas');
  const font = `${bold ? 600 : 400} ${size * FINE}px sans-serif`;
  const ctx = canvas.getContext('2d', { alpha: false });
  ctx.font = font;
  Object.assign(canvas, { width: Math.ceil(ctx.measureText(text).width) + 1, height: Math.ceil(1.3 * size * FINE) });
  ctx.fillStyle = '#fff';
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  Object.assign(ctx, { font, fillStyle: `rgb(${255 * ink} ${255 * ink} ${255 * ink})` });
  ctx.fillText(text, 0, size * FINE);
  return canvas;
}

async function picture(canvas) {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const rgb = new Uint8Array((data.length / 4) * 3);
  for (let p = 0, at = 0; p < data.length; p += 4) { rgb[at++] = data[p]; rgb[at++] = data[p + 1]; rgb[at++] = data[p + 2]; }
  const packed = await new Response(new Blob([rgb]).stream().pipeThrough(new CompressionStream('deflate'))).arrayBuffer();
  return stream(`/Type/XObject/Subtype/Image/Width ${canvas.width}/Height ${canvas.height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode`, new Uint8Array(packed));
}

const stream = (head, body) => ({ head: `<<${head}/Length ${body.length}>>\nstream\n`, body });

/** file joins objects with their cross-reference table; the first must be the catalog and the fifth the document information. */
export function file(objects) {
  const parts = [];
  let length = 0;
  const add = (part) => { const raw = typeof part === 'string' ? latin(part) : part; parts.push(raw); length += raw.length; };
  add('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n');
  const begins = objects.map((object, i) => {
    const at = length;
    add(`${i + 1} 0 obj\n`);
    if (typeof object === 'string') add(object);
    else { add(object.head); add(object.body); add('\nendstream'); }
    add('\nendobj\n');
    return at;
  });
  const table = length;
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${begins.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('')}`);
  add(`trailer\n<</Size ${objects.length + 1}/Root 1 0 R/Info 5 0 R>>\nstartxref\n${table}\n%%EOF\n`);
  return new Blob(parts, { type: 'application/pdf' });
}
