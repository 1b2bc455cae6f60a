// The playground's worker: it holds one model and decodes what the page asks for, one picture at a time, the most urgent lane
// first. A request takes the place of the one before in its lane.

const LANES = ['held', 'atlas', 'strip', 'palette', 'beside', 'aside', 'pad', 'many', 'bench'];
const waiting = new Map(); // lane → {seq, jobs, done}
let codec = null;
let working = false;

addEventListener('message', async ({ data }) => {
  if (data.open) return open(data.open);
  if (data.encode) return answer(data.seq, () => ({ ...codec.encode(data.encode) }));
  if (data.represent) return answer(data.seq, () => ({ codes: codec.represent(data.represent) }));
  if (data.distances) return answer(data.seq, () => ({ distances: codec.distances(data.distances.slot, data.distances.code, data.distances.entries) }));
  waiting.set(data.lane, { seq: data.seq, jobs: data.jobs, done: [] });
  if (!working) work();
});

/** open loads the module that codec.js is under an address of its own, for a worker has no import map. */
async function open({ script, wasm, weights, slowest }) {
  try {
    const { Codec, compile } = await import(script);
    codec = new Codec(await compile(wasm), weights);
    postMessage({ ready: { picture: measured(slowest) } });
  } catch (err) {
    postMessage({ refused: err.message });
  }
}

/**
 * measured is the least time of a picture in milliseconds: what else the machine does at the moment says little about it. Where each try took
 * longer than is of use, a busy machine gets more of them.
 */
function measured(slowest) {
  const codes = new Array(codec.m).fill(codec.real ? 1024 : 0);
  const begun = performance.now();
  let least = Infinity;
  for (let n = 0; n < 3 || (n < 30 && performance.now() - begun < (least > slowest ? 2000 : 250)); n++) {
    const start = performance.now();
    codec.decode(codes);
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

function answer(seq, what) {
  try {
    postMessage({ seq, ...what() });
  } catch (err) {
    postMessage({ seq, error: err.message });
  }
}

const next = () => LANES.find((lane) => waiting.has(lane));
const pause = new MessageChannel();

/** work decodes until nothing waits; between two pictures it hears what has come in. */
function work() {
  working = true;
  const lane = next();
  if (!lane) { working = false; return; }
  const task = waiting.get(lane);
  try {
    const { a, b, t } = task.jobs[task.done.length];
    task.done.push(t ? codec.blend(a, b, t) : codec.decode(a));
    if (task.done.length === task.jobs.length) {
      waiting.delete(lane);
      postMessage({ seq: task.seq, pictures: task.done }, task.done.map((p) => p.buffer));
    }
  } catch (err) {
    waiting.delete(lane);
    postMessage({ seq: task.seq, error: err.message });
  }
  pause.port2.postMessage(0);
}
pause.port1.onmessage = work;
