// The playground's worker: holds one model and, once loaded, the probe. It decodes and reads images on request, the most urgent lane first. A
// request replaces the previous one in its lane, which gets an error as its reply; without jobs, it does only that.

const LANES = ['held', 'atlas', 'strip', 'rest', 'palette', 'beside', 'aside', 'pad', 'many', 'bench']; // most urgent first; other lanes come last
const TURN = 8; // ms of work before checking for new messages
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
  const replaced = waiting.get(data.lane);
  if (replaced) postMessage({ seq: replaced.seq, error: 'A newer request replaced this one.' });
  if (data.jobs.length) waiting.set(data.lane, { seq: data.seq, jobs: data.jobs, done: [] });
  else waiting.delete(data.lane);
  if (!working) work();
});

/** open imports codec.js by its full URL, because workers have no import map. */
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
 * measured returns the minimum time to decode an image in milliseconds. The minimum is least affected by other load. If every try is slower
 * than slowest, it tries for longer, because the machine may be busy.
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

/** work runs until no request is waiting, yielding every few milliseconds to receive messages. */
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

/** one runs the next job of a lane, and replies after the last. */
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
