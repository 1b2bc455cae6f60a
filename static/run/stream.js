// A run's WebSocket. It sends the page's last step and receives the points after it. After a disconnect it reconnects and continues from
// that step, so that the page misses nothing.

const first = 500; // ms before the first reconnect; doubled each time
const longest = 10_000;
const patience = 8_000; // ms to wait for the response to a hello

/** backoff returns the delay in ms before attempt n (0, 1, …): 0.5 s, doubling to 10 s, minus a random part of up to half. */
export function backoff(n, random = Math.random) {
  return Math.min(longest, first * 2 ** n) * (1 - random() / 2);
}

/**
 * Stream maintains a connection to url. position() returns {since, attempt}; on has the handlers of the frames hello, points, rewind,
 * status, error and bye, and state(name, detail) with name "connecting", "open", "waiting" (detail: ms) or "closed".
 */
export class Stream {
  #socket = null;
  #tries = 0;
  #timer = 0;
  #answer = 0;
  #over = false;

  constructor(url, position, on, env = globalThis) {
    this.url = url;
    this.position = position;
    this.on = on;
    this.env = env;
  }

  open() {
    if (this.#over || this.#socket) return;
    this.env.clearTimeout(this.#timer);
    this.on.state?.('connecting');
    const socket = new this.env.WebSocket(this.url);
    this.#socket = socket;
    socket.onopen = () => this.greet();
    socket.onmessage = (e) => this.#take(e.data);
    socket.onclose = () => this.#closed(socket);
  }

  /** greet sends the page's position; without a response in time the connection counts as dead. */
  greet() {
    if (this.#socket?.readyState !== 1) return;
    this.#socket.send(JSON.stringify({ type: 'hello', v: 1, ...this.position() }));
    this.env.clearTimeout(this.#answer);
    this.#answer = this.env.setTimeout(() => this.#drop(), patience);
  }

  /** wake is called when the page becomes visible or online: it connects at once, or checks an open connection. */
  wake() {
    this.#tries = 0;
    if (this.#socket) this.greet();
    else this.open();
  }

  /** end closes the connection permanently. */
  end() {
    this.#over = true;
    this.env.clearTimeout(this.#timer);
    this.#drop();
    this.on.state?.('closed');
  }

  #take(text) {
    const frame = JSON.parse(text);
    if (frame.type === 'hello') {
      this.#tries = 0;
      this.env.clearTimeout(this.#answer);
      this.on.state?.('open');
    }
    this.on[frame.type]?.(frame);
  }

  #drop() {
    const socket = this.#socket;
    if (!socket) return;
    this.#closed(socket);
    socket.close();
  }

  #closed(socket) {
    if (socket !== this.#socket) return;
    socket.onmessage = socket.onclose = null;
    this.#socket = null;
    this.env.clearTimeout(this.#answer);
    if (this.#over) return;
    const wait = backoff(this.#tries++);
    this.on.state?.('waiting', wait);
    this.#timer = this.env.setTimeout(() => this.open(), wait);
  }
}
