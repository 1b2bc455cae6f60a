// Decoding on the server: through a WebSocket, or through image URLs while it is disconnected.

import { format } from './codes.js';

const AT_ONCE = 64; // tuples per message
const SLOWEST = 10_000; // maximum ms between attempts to reconnect, before jitter

export class Remote extends EventTarget {
  #asked = new Map(); // seq → {resolve, reject}
  #seq = 0;
  #socket = null;
  #attempt = 0;
  #timer = 0;

  constructor({ key, h, w, c }) {
    super();
    Object.assign(this, { key, h, w, c, state: 'connecting' });
    this.#connect();
    addEventListener('online', () => this.#retry());
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && this.#retry());
  }

  /** decode returns the images of jobs, {a} for a tuple. */
  async decode(lane, jobs, signal) {
    const pictures = [];
    for (let at = 0; at < jobs.length; at += AT_ONCE) {
      pictures.push(...(await this.#fetch(lane, jobs.slice(at, at + AT_ONCE).map(({ a }) => a), signal)));
    }
    return pictures;
  }

  async #fetch(lane, tuples, signal) {
    if (this.#socket?.readyState === WebSocket.OPEN) {
      try {
        return await this.#ask(lane, tuples, signal);
      } catch (err) {
        if (!(err instanceof Dropped)) throw err;
      }
    }
    return this.#load(lane, tuples, signal);
  }

  #ask(lane, tuples, signal) {
    signal.throwIfAborted();
    const seq = ++this.#seq;
    return new Promise((resolve, reject) => {
      this.#asked.set(seq, { resolve, reject });
      signal.addEventListener('abort', () => { this.#asked.delete(seq); reject(signal.reason); }, { once: true });
      this.#socket.send(JSON.stringify({ seq, lane, codes: tuples }));
    });
  }

  /** load fetches each image by its URL, a few at a time. */
  async #load(lane, tuples, signal) {
    const out = new Array(tuples.length);
    let next = 0;
    const worker = async () => {
      while (next < tuples.length) {
        const j = next++;
        out[j] = await this.#picture(lane, tuples[j], signal);
      }
    };
    await Promise.all(Array.from({ length: Math.min(6, tuples.length) }, worker));
    return out;
  }

  async #picture(lane, codes, signal) {
    const reply = await fetch(`/img/${this.key}/${format(codes)}.png?lane=${lane}`, { signal });
    if (!reply.ok) throw new Error(`The server could not decode this image (status ${reply.status}).`);
    const bitmap = await createImageBitmap(await reply.blob(), { colorSpaceConversion: 'none' });
    const canvas = new OffscreenCanvas(this.w, this.h);
    const ctx = canvas.getContext('2d', { willReadFrequently: true });
    ctx.drawImage(bitmap, 0, 0);
    const { data } = ctx.getImageData(0, 0, this.w, this.h);
    const out = new Uint8Array(this.h * this.w * this.c);
    for (let p = 0; p < this.h * this.w; p++) for (let ch = 0; ch < this.c; ch++) out[p * this.c + ch] = data[p * 4 + Math.min(ch, 2)];
    return out;
  }

  #connect() {
    const url = new URL(`/ws/play/${this.key}`, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => { this.#attempt = 0; this.#say('live'); };
    socket.onmessage = (e) => (typeof e.data === 'string' ? this.#refused(JSON.parse(e.data)) : this.#answered(e.data));
    socket.onclose = () => { this.#drop(); this.#again(); };
    this.#socket = socket;
  }

  #answered(buffer) {
    const head = new DataView(buffer);
    const [seq, count] = [head.getUint32(0, true), head.getUint16(4, true)];
    const size = head.getUint16(6, true) * head.getUint16(8, true) * head.getUint16(10, true);
    const pictures = Array.from({ length: count }, (_, j) => new Uint8Array(buffer, 12 + j * size, size));
    this.#settle(seq, (asked) => asked.resolve(pictures));
  }

  #refused({ seq, error }) { this.#settle(seq, (asked) => asked.reject(new Error(error))); }

  #settle(seq, how) {
    const asked = this.#asked.get(seq);
    this.#asked.delete(seq);
    if (asked) how(asked);
  }

  /** drop rejects the requests of a lost socket, which are then retried through image URLs. */
  #drop() {
    for (const asked of this.#asked.values()) asked.reject(new Dropped());
    this.#asked.clear();
  }

  #again() {
    this.#say('reconnecting');
    const wait = Math.min(SLOWEST, 500 * 2 ** this.#attempt++) * (0.75 + Math.random() / 2);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  #retry() {
    if (this.state !== 'reconnecting') return;
    clearTimeout(this.#timer);
    this.#attempt = 0;
    this.#connect();
  }

  #say(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event('state'));
  }
}

class Dropped extends Error {}
