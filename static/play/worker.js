// The playground's worker: it holds one model, and the probe once there is one. It decodes and reads what the page asks for, the most urgent
// lane first. A request takes the place of the one before in its lane; one without jobs only ends it.

const LANES = ['held', 'atlas', 'strip', 'rest', 'palette', 'beside', 'aside', 'pad', 'many', 'bench']; // others come after these
const TURN = 8; // ms of work between two looks at what has come in
const waiting = new Map(); // lane → {seq, jobs, done}
let codec = null;
let probe = null;
let working = false;

addEventListener('message', async ({ data }) => {
  if (data.open) return open(data.open);
  if (data.probe) return answer(data.seq, async () => { probe = new (await import(data.probe.script)).Probe(data.probe.file); });
  if (data.encode) return answer(data.seq, () => codec.encode(data.encode));
  if (data.represent) return answer(data.seq, () => ({ codes: codec.represent(data.represent) }));
  if (data.distances) return answer(data.seq, () => ({ distances: codec.distances(data.distances.slot, data.distances.code, data.distances.entries) }));
  if (data.jobs.length) waiting.set(data.lane, { seq: data.seq, jobs: data.jobs, done: [] });
  else waiting.delete(data.lane);
  if (!working) work();
});

/** open loads the module that codec.js is under an address of its own, for a worker has no import map. */
async function open({ script, module, weights, slowest }) {
  try {
    const { Codec } = await import(script);
    codec = new Codec(module, weights);
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

async function answer(seq, what) {
  try {
    postMessage({ seq, ...(await what()) });
  } catch (err) {
    postMessage({ seq, error: err.message });
  }
}

const next = () => LANES.find((lane) => waiting.has(lane)) ?? waiting.keys().next().value;
const pause = new MessageChannel();

/** work goes on until nothing waits; every few milliseconds it hears what has come in. */
function work() {
  working = true;
  const begun = performance.now();
  do {
    const lane = next();
    if (!lane) { working = false; return; }
    one(lane, waiting.get(lane));
  } while (performance.now() - begun < TURN);
  pause.port2.postMessage(0);
}
pause.port1.onmessage = work;

/** one does the next job of a lane, and answers after its last. */
function one(lane, { seq, jobs, done }) {
  try {
    const { a, b, t, read } = jobs[done.length];
    done.push(read ? probe.read(read) : t ? codec.blend(a, b, t) : codec.decode(a));
    if (done.length < jobs.length) return;
    postMessage({ seq, done }, done.flatMap((d) => d.buffer ?? []));
  } catch (err) {
    postMessage({ seq, error: err.message });
  }
  waiting.delete(lane);
}
