// The comparison page: swaps of one image pair side by side, the run picker, and the rule for bold.

/** Swaps shows one image pair through several models: single swaps, or the interpolation from A to B. */
class Swaps {
  #ticket = 0;
  #answers = new Map(); // by row

  constructor(section) {
    this.section = section;
    this.form = section.querySelector('[data-part="pair"]');
    this.rows = [...section.querySelectorAll('[data-swap-run]')];
    if (!this.form) return;
    this.form.onsubmit = (e) => {
      e.preventDefault();
      this.show();
    };
    this.form.elements.random.onclick = () => {
      for (const name of ['a', 'b']) this.form.elements[name].value = Math.floor(Math.random() * (Number(this.form.elements[name].max) + 1));
      this.show();
    };
    this.form.onchange = (e) => e.target.name === 'view' && this.rows.forEach((row) => this.#draw(row));
    new IntersectionObserver((entries, seen) => {
      if (entries.some((e) => e.isIntersecting)) {
        seen.disconnect();
        this.show();
      }
    }).observe(section);
  }

  async show() {
    const ticket = ++this.#ticket;
    const { a, b } = this.form.elements;
    const q = new URLSearchParams({ a: a.value.trim(), b: b.value.trim() });
    this.#name(q);
    for (const row of this.rows) {
      const answer = await fetch(`/api/play/${row.dataset.swapRun}/swaps?${q}`).catch(() => null);
      const body = await answer?.json().catch(() => null);
      if (ticket !== this.#ticket) return;
      this.#answers.set(row, answer?.ok && body ? body : { error: body?.error ?? 'Could not decode the images: no response from the server.' });
      this.#draw(row);
    }
  }

  /** name shows the original images of the pair and sets its numbers in the download links. */
  #name(q) {
    const first = this.rows[0].dataset.swapRun;
    this.section.querySelector('[data-part="originals"]').replaceChildren(
      ...['a', 'b'].map((name) => picture(`/api/play/${first}/original.png?index=${encodeURIComponent(q.get(name))}`, `Image ${name.toUpperCase()}`)),
    );
    for (const link of this.section.querySelectorAll('[data-figure]')) {
      const url = new URL(link.href);
      for (const [name, number] of q) url.searchParams.set(name, number);
      link.href = url.pathname + url.search;
    }
  }

  #draw(row) {
    const body = this.#answers.get(row);
    const tiles = row.querySelector('[data-part="tiles"]');
    if (!body) return;
    if (body.error) tiles.textContent = body.error;
    else tiles.replaceChildren(...(this.form.elements.view.value === 'strip' ? stripOf(body) : swapsOf(body)));
  }
}

const share = (s) => `${Math.round(100 * s.changed)}%`;

/** swapsOf returns tiles of the reconstructions of A and B, then A with each slot of B. */
function swapsOf({ strip, swaps }) {
  return [
    tile(strip[0].image, 'A', 'pair'),
    tile(strip.at(-1).image, 'B', 'pair'),
    ...swaps.map((s) => tile(s.image, `slot ${s.slot}`, '', share(s), `A with slot ${s.slot} of B`)),
  ];
}

/** stripOf returns tiles of the interpolation from A to B. */
function stripOf({ strip }) {
  return strip.map((s, i) => (i === 0 ? tile(s.image, 'A', 'pair') : tile(s.image, `+ slot ${s.slot}`, '', share(s), `A with ${i} of ${strip.length - 1} slots of B`)));
}

function tile(src, text, className = '', changed = '', alt = text) {
  const figure = document.createElement('figure');
  figure.className = className;
  const caption = document.createElement('figcaption');
  caption.append(text);
  if (changed) {
    const part = document.createElement('span');
    part.textContent = changed;
    part.title = 'Share of pixels that change';
    caption.append(part);
  }
  figure.append(picture(src, changed ? `${alt}, ${changed} of pixels change` : alt), caption);
  return figure;
}

function picture(src, alt) {
  const img = new Image(64, 64);
  img.src = src;
  img.alt = alt;
  img.className = 'pixels';
  return img;
}

/** pick adds to the run picker a checkbox per group, a filter and a count. */
function pick(form) {
  const boxes = () => [...form.querySelectorAll('input[name="runs"]')];
  const tell = () => {
    for (const all of form.querySelectorAll('[data-part="pick-all"]')) {
      const own = [...all.closest('li').querySelectorAll('input[name="runs"]')];
      all.checked = own.every((b) => b.checked);
      all.indeterminate = !all.checked && own.some((b) => b.checked);
    }
    const n = boxes().filter((b) => b.checked).length;
    form.querySelector('[data-part="pick-count"]').textContent = n === 0 ? 'none selected' : n === 1 ? '1 run selected' : `${n} runs selected`;
  };
  form.onchange = (e) => {
    if (e.target.dataset.part === 'pick-all') {
      for (const b of e.target.closest('li').querySelectorAll('input[name="runs"]')) b.checked = e.target.checked;
    }
    tell();
  };
  form.querySelector('[data-part="pick-filter"]').oninput = (e) => {
    const words = e.target.value.toLowerCase().split(/\s+/);
    for (const li of form.querySelectorAll('li')) li.hidden = !words.every((w) => li.dataset.text.includes(w));
  };
  form.onsubmit = (e) => {
    const chosen = boxes().filter((b) => b.checked);
    if (chosen.length === 0) {
      e.preventDefault();
      form.querySelector('[data-part="pick-count"]').textContent = 'Select at least one run.';
      return;
    }
    e.preventDefault();
    location.href = `/compare?runs=${chosen.map((b) => b.value).join(',')}`;
  };
  tell();
}

/** followed gives a report download a name and follows its progress under that name. */
function followed(link) {
  const name = [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(16).padStart(8, '0')).join('');
  const url = new URL(link.href);
  url.searchParams.set('progress', name);
  link.href = url;
  import('./progress.js').then(({ follow }) => follow(document.querySelector('[data-part="progress"]'), name), () => {}); // the download works without it
}

if (typeof document !== 'undefined') {
  document.addEventListener('click', (e) => {
    const link = e.target.closest('a[download][href*="/api/report/"]');
    if (link) followed(link);
  });
  for (const section of document.querySelectorAll('[data-part="swaps"]')) new Swaps(section);
  for (const form of document.querySelectorAll('[data-part="picker"]')) pick(form);
  document.addEventListener('change', (e) => e.target.closest('[data-part="rule"]')?.requestSubmit());
}
