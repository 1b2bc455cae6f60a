// The header of a run's page: state, step, rate, time left, last update and connection state.
import { count, duration, rate } from '../shared/format.js';

const ended = new Set(['stopped', 'finished', 'failed', 'interrupted']);

/** kept describes the checkpoint and points of an ended run, in the words of the server's page. */
export function kept(run) {
  if (run.config.model === 'external') return '';
  if (run.checkpoint > 0) return `The checkpoint at step ${count(run.checkpoint)} and the points up to step ${count(run.step)} are saved.`;
  if (run.step > 0) return `No checkpoint was saved; the points up to step ${count(run.step)} are.`;
  return 'The run ended before its first step.';
}

export class RunHead {
  #connection = 'connecting';
  #until = 0; // time of the next connection attempt, in ms
  #head = 0; // last stored step known to the page
  #have = 0; // last step shown

  constructor(root, run) {
    this.root = root;
    this.run = run;
    this.parts = Object.fromEntries([...root.querySelectorAll('[data-part]')].filter((el) => !el.closest('[data-panel]')).map((el) => [el.dataset.part, el]));
    setInterval(() => this.#tick(), 1000);
  }

  get live() {
    return !ended.has(this.run.state);
  }

  /** show displays a new state of the run. */
  show(run) {
    const before = this.run.state;
    this.run = run;
    const p = this.parts;
    p.state.textContent = run.state;
    p.state.dataset.state = run.state;
    p.step.textContent = count(run.step);
    p.of.textContent = count(run.config.steps);
    p.bar.value = run.step;
    p.bar.max = Math.max(1, run.config.steps);
    p.bar.classList.toggle('live', run.state === 'running' || run.state === 'stopping');
    p.rate.textContent = rate(run.images_per_second);
    p.left.textContent = run.state === 'running' && run.seconds_left > 0 ? duration(run.seconds_left) : '–';
    if (run.engine) p.engine.textContent = run.engine;
    p['engine-why'].textContent = run.engine_why;
    p['engine-why'].hidden = !run.engine_why;
    if (run.parameters > 0) p.parameters.textContent = run.parameters >= 1e6 ? `${(run.parameters / 1e6).toFixed(2)} M` : `${(run.parameters / 1e3).toFixed(1)} k`;
    p.checkpoint.textContent = count(run.checkpoint);
    p['from-checkpoint'].hidden = run.checkpoint === 0;
    p['from-start'].hidden = run.checkpoint > 0;
    this.#actions();
    this.#reason();
    if (before !== run.state) this.#title();
    this.#tick();
  }

  psnr(v, step) {
    if (v === null) return;
    this.parts.psnr.textContent = v.toFixed(2);
    this.parts['psnr-step'].textContent = `at step ${count(step)}`;
  }

  /** gaps shows how many steps are stored. */
  gaps(stored, head) {
    this.#head = Math.max(this.#head, head);
    const missing = head - stored;
    const el = this.parts.gaps;
    const thinned = stored < head / 5;
    el.dataset.gaps = missing;
    el.classList.toggle('bad', missing !== 0 && !thinned);
    el.textContent = head === 0 ? '' : `${count(stored)} of ${count(head)} steps stored${thinned ? '' : missing === 1 ? ', 1 gap' : `, ${count(missing)} gaps`}`;
  }

  behind(n) {
    this.#head = this.#have + Math.max(0, n);
    this.#tick();
  }

  arrived(step) {
    this.#have = step;
    this.#head = Math.max(this.#head, step);
    this.#tick();
  }

  connection(name, wait) {
    this.#connection = name;
    this.#until = name === 'waiting' ? Date.now() + wait : 0;
    if (name === 'open') this.problem('');
    this.#tick();
  }

  problem(text) {
    this.parts.connection.title = text;
  }

  deleted() {
    this.#connection = 'deleted';
    const p = this.parts;
    p.reason.hidden = false;
    p.reason.classList.add('bad');
    p['reason-text'].textContent = 'This run was deleted. The data on this page is no longer stored.';
    p.kept.textContent = '';
    this.#tick();
  }

  #tick() {
    const [state, text] = this.#chip();
    const chip = this.parts.connection;
    if (chip.textContent !== text) chip.textContent = text;
    chip.dataset.state = state;
    chip.hidden = !['reconnecting', 'catching'].includes(state) && this.#connection !== 'deleted';
    const started = Date.parse(this.run.started);
    const end = this.live ? Date.now() : Date.parse(this.run.ended);
    if (started > 0 && end > 0) this.parts.elapsed.textContent = duration(Math.max(0, (end - started) / 1000));
    const updated = Date.parse(this.run.updated);
    if (updated > 0) this.parts.updated.textContent = `${duration(Math.max(0, (Date.now() - updated) / 1000))} ago`;
  }

  #chip() {
    switch (this.#connection) {
      case 'deleted':
        return ['none', 'deleted'];
      case 'waiting': {
        const s = Math.max(0, Math.ceil((this.#until - Date.now()) / 1000));
        return ['reconnecting', s > 0 ? `reconnecting in ${s} s` : 'reconnecting'];
      }
      case 'open': {
        const behind = this.#head - this.#have;
        if (this.#have > 0 && behind > 50) return ['catching', `catching up, ${count(behind)} behind`];
        return this.live ? ['live', 'live'] : ['none', 'ended'];
      }
    }
    return ['none', 'connecting'];
  }

  #actions() {
    const { state } = this.run;
    const show = (action, yes) => {
      for (const el of this.root.querySelectorAll(`[data-action="${action}"]`)) el.hidden = !yes;
    };
    show('stop', state === 'running' || state === 'queued');
    show('play', this.run.checkpoint > 0);
    show('force', state === 'stopping');
    show('resume', ended.has(state));
    show('delete', ended.has(state));
    show('stop-first', !ended.has(state));
  }

  #reason() {
    const p = this.parts;
    const over = ended.has(this.run.state) && this.run.reason !== '';
    const waits = this.run.state === 'queued' && this.run.reason !== '';
    p.reason.hidden = !over && !waits;
    p.reason.classList.toggle('bad', this.run.state === 'failed');
    p.reason.classList.toggle('warn', this.run.state === 'interrupted');
    if (!over && !waits) return;
    p['reason-text'].textContent = this.run.reason;
    p.kept.textContent = waits ? '' : kept(this.run);
  }

  #title() {
    const plain = document.title.replace(/^\S+: /, '');
    document.title = this.live ? plain : `${this.run.state}: ${plain}`;
  }
}
