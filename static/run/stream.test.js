import assert from 'node:assert/strict';
import test from 'node:test';
import { Store } from './series.js';
import { backoff, Stream } from './stream.js';

test('backoff doubles from half a second to ten, with jitter', () => {
  assert.equal(backoff(0, () => 0), 500);
  assert.equal(backoff(3, () => 0), 4000);
  assert.equal(backoff(30, () => 0), 10_000);
  assert.equal(backoff(1, () => 1), 500);
});

/** bench is a fake browser: sockets in a list, timers run manually. */
function bench() {
  const timers = new Map();
  let id = 0;
  const env = {
    sockets: [],
    setTimeout: (fn, ms) => (timers.set(++id, { fn, ms }), id),
    clearTimeout: (t) => timers.delete(t),
    fire(below) {
      for (const [t, { fn, ms }] of [...timers]) {
        if (ms <= below && timers.delete(t)) fn();
      }
    },
    WebSocket: class {
      readyState = 0;
      sent = [];
      constructor() {
        env.sockets.push(this);
      }
      send(text) {
        this.sent.push(JSON.parse(text));
      }
      close() {
        this.readyState = 3;
      }
      accept() {
        this.readyState = 1;
        this.onopen();
      }
      say(frame) {
        this.onmessage?.({ data: JSON.stringify(frame) });
      }
      break() {
        this.readyState = 3;
        this.onclose?.();
      }
    },
  };
  return env;
}

test('after a disconnect it reconnects and continues from the last step', () => {
  const env = bench();
  const store = new Store();
  const states = [];
  const stream = new Stream('ws://x', () => ({ since: store.head, attempt: store.attempt }), {
    points: (f) => store.append(f),
    state: (name) => states.push(name),
  }, env);
  stream.open();
  env.sockets[0].accept();
  env.sockets[0].say({ type: 'hello', head: 2, attempt: 1 });
  env.sockets[0].say({ type: 'points', from: 0, to: 2, attempt: 1, series: { total: [[1, 1], [2, 2]] } });
  env.sockets[0].break();
  assert.equal(env.sockets.length, 1, 'it waits before reconnecting');
  env.fire(500);
  env.sockets[1].accept();
  assert.deepEqual(env.sockets[1].sent[0], { type: 'hello', v: 1, since: 2, attempt: 1 });
  assert.deepEqual(states, ['connecting', 'open', 'waiting', 'connecting']);
});

test('a connection without a response to hello counts as dead; its frames are ignored', () => {
  const env = bench();
  let heard = 0;
  const stream = new Stream('ws://x', () => ({ since: 0, attempt: 0 }), { status: () => heard++ }, env);
  stream.open();
  env.sockets[0].accept();
  const old = env.sockets[0];
  env.fire(8000);
  old.say({ type: 'status', run: {} });
  assert.equal(heard, 0);
  env.fire(500);
  assert.equal(env.sockets.length, 2);
});

test('wake connects at once; end is permanent', () => {
  const env = bench();
  const stream = new Stream('ws://x', () => ({ since: 0, attempt: 0 }), {}, env);
  stream.open();
  env.sockets[0].break();
  stream.wake();
  assert.equal(env.sockets.length, 2);
  stream.end();
  env.fire(60_000);
  assert.equal(env.sockets.length, 2);
});

test('after any disconnects, the page ends with all points of the store', () => {
  let seed = 7;
  const random = () => ((seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31);
  for (let trial = 0; trial < 50; trial++) {
    const env = bench();
    const store = new Store();
    const stream = new Stream('ws://x', () => ({ since: store.head, attempt: store.attempt }), { points: (f) => store.append(f) || stream.greet() }, env);
    stream.open();
    const total = 200;
    while (store.head < total) {
      const socket = env.sockets.at(-1);
      if (socket.readyState === 3) env.fire(10_000);
      else if (socket.readyState === 0) socket.accept();
      else if (random() < 0.2) socket.break();
      else {
        const since = socket.sent.at(-1).since;
        const at = socket.at?.since === since && socket.at.n === socket.sent.length ? socket.at.to : since;
        const to = Math.min(total, at + 1 + Math.floor(random() * 9));
        socket.at = { since, n: socket.sent.length, to };
        const samples = [];
        for (let s = at + 1; s <= to; s++) samples.push([s, s * s]);
        socket.say({ type: 'points', from: at, to, attempt: 1, series: { total: samples } });
      }
    }
    assert.deepEqual(store.get('total').steps, Array.from({ length: total }, (_, i) => i + 1));
  }
});
