// Runs the ONNX models of bundles with onnxruntime and prints one JSON line per folder: the number of slots that differ from slots.raw, and the
// maximum difference of images from decoded.raw, in units of 1/255. $SLOTSCOPE_ONNXRUNTIME is a node_modules folder.
const fs = require('fs');
const path = require('path');
const ort = require(path.join(process.env.SLOTSCOPE_ONNXRUNTIME, 'onnxruntime-node'));

async function run(file, inputs) {
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 });
  return session.run(inputs);
}

function floats(file) {
  const raw = fs.readFileSync(file);
  return new Float32Array(raw.buffer, raw.byteOffset, raw.length / 4).slice();
}

async function check(dir) {
  const { n, m, discrete } = JSON.parse(fs.readFileSync(path.join(dir, 'shape.json')));
  const at = (name) => path.join(dir, 'onnx', name);
  const images = new ort.Tensor('float32', floats(path.join(dir, 'images.raw')), [n, 3, 64, 64]);
  const wanted = floats(path.join(dir, 'slots.raw'));
  const { z } = await run(at('encoder.onnx'), { images });
  let slots = z.data;
  if (discrete) slots = (await run(at('retrieval.onnx'), { z })).codes.data;
  let other = 0;
  for (let i = 0; i < wanted.length; i++) other += Math.abs(Number(slots[i]) - wanted[i]) > (discrete ? 0 : 1e-4);
  const input = discrete
    ? { codes: new ort.Tensor('int64', BigInt64Array.from(wanted, (v) => BigInt(v)), [n, m]) }
    : { numbers: new ort.Tensor('float32', wanted, [n, m]) };
  const drawn = (await run(at('decoder.onnx'), input)).images.data;
  const decoded = floats(path.join(dir, 'decoded.raw'));
  let apart = 0;
  for (let i = 0; i < decoded.length; i++) apart = Math.max(apart, Math.abs(Math.round(255 * drawn[i]) - Math.round(255 * decoded[i])));
  console.log(JSON.stringify({ slots: wanted.length, other, apart, same: slots.length === wanted.length && drawn.length === decoded.length }));
}

(async () => {
  for (const dir of process.argv.slice(2)) await check(dir);
})();
