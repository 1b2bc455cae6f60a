// Query completion: field names, then their values, in a list navigated with the arrow keys.
const most = 12;

/** part returns the text before the cursor that can be completed: a name, or a value after a name and an operator. */
export function part(text, cursor) {
  const before = text.slice(0, cursor);
  const word = /(?:^|[\s(])-?((?:[^\s()"]|"[^"]*")*)$/.exec(before)?.[1] ?? '';
  const at = cursor - word.length;
  const split = /^([^<>=!:,"]+)(<=|>=|!=|<|>|=|:)(.*)$/.exec(word);
  if (!split) return { at, name: null, typed: word };
  const typed = split[3].slice(split[3].lastIndexOf(',') + 1);
  return { at: cursor - typed.length, name: split[1], typed };
}

/** suggest lists completions of a part: those that start with the typed text, then those that contain it. */
export function suggest(fields, { name, typed }) {
  const lower = typed.toLowerCase();
  let all;
  if (name === null) {
    if (!typed) return [];
    all = fields.map((f) => ({ text: f.name, put: f.kind === 'flag' ? `${f.name} ` : f.name, about: `${f.label}${f.unit ? `, ${f.unit}` : ''} · ${f.group}`, find: `${f.name} ${f.label}`.toLowerCase() }));
  } else {
    const field = fields.find((f) => f.name === name.toLowerCase()) ?? fields.find((f) => f.name === name);
    all = (field?.choices ?? []).map((c) => ({ text: c, put: `${/[\s()",<>=!]/.test(c) ? `"${c}"` : c} `, about: '', find: c.toLowerCase() }));
  }
  const rank = (s) => (s.text.toLowerCase().startsWith(lower) ? 0 : s.find.includes(lower) ? 1 : 2);
  return all
    .map((s, i) => ({ s, i, r: rank(s) }))
    .filter((x) => x.r < 2 && x.s.text.toLowerCase() !== lower)
    .sort((x, y) => x.r - y.r || x.i - y.i)
    .slice(0, most)
    .map((x) => x.s);
}

/** Completion controls a text box and the list below it. */
export class Completion {
  #fields = null;
  #asked = false;
  #shown = [];
  #at = -1; // selected index, −1 if none

  constructor(box, list) {
    this.box = box;
    this.list = list;
    box.setAttribute('role', 'combobox');
    box.setAttribute('aria-autocomplete', 'list');
    box.setAttribute('aria-controls', list.id);
    box.setAttribute('aria-expanded', 'false');
    box.addEventListener('focus', () => this.#learn(), { once: true });
    box.addEventListener('input', () => (this.#fields ? this.#update() : this.#learn()));
    box.addEventListener('keydown', (e) => this.#key(e), true);
    box.addEventListener('blur', () => this.#close());
    list.addEventListener('pointerdown', (e) => {
      e.preventDefault(); // the box keeps the focus
      const option = e.target.closest('[role="option"]');
      if (option) this.#take(Number(option.dataset.n));
    });
  }

  async #learn() {
    if (this.#asked) return;
    this.#asked = true;
    const answer = await fetch('/api/runs/fields').catch(() => null);
    this.#asked = Boolean(answer?.ok); // otherwise the next key retries
    if (answer?.ok) this.#fields = (await answer.json()).fields;
    if (document.activeElement === this.box && this.box.value) this.#update();
  }

  #update() {
    const p = part(this.box.value, this.box.selectionStart);
    this.#shown = this.#fields ? suggest(this.#fields, p) : [];
    this.#at = -1;
    this.list.replaceChildren(...this.#shown.map((s, n) => option(s, n)));
    this.list.hidden = this.#shown.length === 0;
    this.#mark();
  }

  #close() {
    this.#shown = [];
    this.list.hidden = true;
    this.#mark();
  }

  #mark() {
    this.box.setAttribute('aria-expanded', String(!this.list.hidden));
    for (const li of this.list.children) li.setAttribute('aria-selected', String(Number(li.dataset.n) === this.#at));
    const on = this.list.children[this.#at];
    if (on && !this.list.hidden) this.box.setAttribute('aria-activedescendant', on.id);
    else this.box.removeAttribute('aria-activedescendant');
    on?.scrollIntoView({ block: 'nearest' });
  }

  #key(e) {
    const n = this.#shown.length;
    if (n === 0) return;
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      this.#at = (this.#at + (e.key === 'ArrowDown' ? 1 : this.#at < 0 ? n : n - 1)) % n;
      this.#mark();
    } else if ((e.key === 'Enter' || e.key === 'Tab') && this.#at >= 0) {
      this.#take(this.#at);
    } else if (e.key === 'Tab' && !e.shiftKey) {
      this.#take(0);
    } else if (e.key === 'Escape') {
      this.#close();
    } else {
      return;
    }
    e.preventDefault();
    e.stopImmediatePropagation();
  }

  #take(n) {
    const s = this.#shown[n];
    const p = part(this.box.value, this.box.selectionStart);
    const end = this.box.selectionStart;
    this.box.setRangeText(s.put, p.at, end, 'end');
    this.box.dispatchEvent(new Event('input'));
  }
}

function option(s, n) {
  const li = document.createElement('li');
  li.id = `completion-${n}`;
  li.setAttribute('role', 'option');
  li.dataset.n = n;
  const text = document.createElement('b');
  text.textContent = s.text;
  const about = document.createElement('span');
  about.className = 'quiet';
  about.textContent = s.about;
  li.append(text, about);
  return li;
}
