// Refreshes the server-rendered parts while a run is active: the log, the checkpoints and the overview above the charts.
const logEvery = 4000; // ms

export class Renewal {
  #logAsked = 0;
  #overviewAt = -1; // step of the last overview request
  #asking = false;

  constructor(root, run, store) {
    this.root = root;
    this.id = run.id;
    this.store = store;
    this.state = run.state;
    this.newest = run.checkpoint;
  }

  /** follow handles a new state of the run. */
  follow(run) {
    this.#log(run);
    this.#checkpoints(run);
    if (run.state !== this.state) this.overview();
    this.state = run.state;
  }

  /** tick refreshes the overview if it may have changed. */
  tick(run) {
    const under = 'evaluating' in this.root.querySelector('[data-part="overview"]').dataset;
    if (this.store.head !== this.#overviewAt || run.state === 'queued' || under) this.overview();
  }

  /** overview replaces the overview with the server's; expanded sections stay expanded. */
  async overview() {
    if (this.#asking || document.hidden) return;
    this.#asking = true;
    this.#overviewAt = this.store.head;
    const fresh = await this.#drawn('/overview', '[data-part="overview"]');
    this.#asking = false;
    const old = this.root.querySelector('[data-part="overview"]');
    if (!fresh || fresh.innerHTML === old.innerHTML) return;
    for (const part of old.querySelectorAll('details[open]')) fresh.querySelector(`.${part.className}`)?.setAttribute('open', '');
    const focused = old.contains(document.activeElement) ? document.activeElement.closest('details')?.className : null;
    old.replaceWith(fresh);
    if (focused) fresh.querySelector(`.${focused} summary`)?.focus();
  }

  /** checkpoints replaces the list with the server's when there is a new checkpoint. */
  async #checkpoints(run) {
    if (run.checkpoint === this.newest) return;
    this.newest = run.checkpoint;
    const fresh = await this.#drawn('', '[data-part="checkpoints"]');
    if (fresh) this.root.querySelector('[data-part="checkpoints"]').replaceWith(fresh);
  }

  async #drawn(path, part) {
    const answer = await fetch(`/runs/${this.id}${path}`).catch(() => null);
    if (answer?.ok) return new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector(part);
  }

  async #log(run) {
    const now = Date.now();
    if (now - this.#logAsked < logEvery && run.state === 'running') return;
    this.#logAsked = now;
    const answer = await fetch(`/api/runs/${this.id}/log?lines=200`).catch(() => null);
    if (!answer?.ok) return;
    const text = await answer.text();
    const log = this.root.querySelector('[data-part="log"]');
    if (text === log.textContent) return;
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 30;
    log.textContent = text;
    if (atEnd) log.scrollTop = log.scrollHeight;
  }
}
