// The tour: four steps on the first visit, never again unless asked for; and the legend of the page's marks.

const SEEN = 'slotscope tour';

const STEPS = [
  ['#grid tr[data-row="a"]', 'A picture is a few codes', 'A and B each became one code per slot. A column is a slot; slots of the same factor stand under one heading.'],
  ['#grid .groupswaps', 'Swap, and see what follows', 'Each picture is A with B’s codes of one group. Click it to put the codes into A, or drag a code or a heading onto A.'],
  ['#facts', 'What changed, as fact', 'A probe reads the factors of the result: ✓ changed as intended, ✗ leaked. The true picture stands beside it where the dataset has it.'],
  ['#palette', 'Every code has a meaning', 'Click a slot for the codes that it can take: try them here, name them, pin them. Further down: what lies between A and B.'],
];

const LEGEND = [
  ['Spotlight', 'In a code’s small picture, what this code accounts for is bright: the pixels that change when the other picture’s code takes its place. The rest is faded.'],
  ['↯', 'The code does not come back when the decoded picture is encoded again.'],
  ['same', 'A and B have the same code in this slot.'],
  ['Colour under a code', 'Edited: another code than the picture was encoded with.'],
  ['Differences', 'The largest difference of a channel from A, one scale for all slots. The percentage counts pixels that changed by more than 8 of 255.'],
  ['✓ ✗', 'A factor changed as intended, or a factor leaked: it changed and should not have. A probe reads both from the picture.'],
  ['hit, miss', 'A hit is at most 3 dB below A’s reconstruction, against the dataset’s true picture, and nearer to it than A was. Dashed pictures are the true ones.'],
  ['Bars in a heading', 'NMI of the slot with each factor, in the dataset’s order, above chance.'],
];

const make = (tag, props, ...children) => {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children);
  return e;
};

function seen() {
  try { return localStorage.getItem(SEEN) !== null; } catch { return true; } // a page that cannot remember would ask each time
}

function remember() {
  try { localStorage.setItem(SEEN, 'seen'); } catch { /* it is not begun by itself then */ }
}

/** first begins the tour on the first visit. */
export function first() {
  if (!seen()) tour();
}

/** tour shows the steps one after another beside the page; nothing else waits for it. */
export function tour() {
  remember();
  document.getElementById('tour')?.remove();
  const title = make('h2', {});
  const text = make('p', {});
  const count = make('span', { className: 'quiet' });
  const next = make('button', { type: 'button', className: 'primary' });
  const skip = make('button', { type: 'button', className: 'plain', textContent: 'Skip' });
  const card = make('section', { id: 'tour' }, title, text, make('div', { className: 'row spread' }, count, make('span', { className: 'row' }, skip, next)));
  card.dataset.testid = 'play-tour';
  card.setAttribute('aria-label', 'Tour');
  let at = -1;
  const end = () => {
    mark(null);
    card.remove();
  };
  const mark = (selector) => {
    for (const e of document.querySelectorAll('[data-toured]')) e.removeAttribute('data-toured');
    document.querySelector(selector)?.setAttribute('data-toured', '');
  };
  const go = (asked) => {
    at++;
    if (at === STEPS.length) return end();
    const [selector, heading, said] = STEPS[at];
    mark(selector);
    if (asked) document.querySelector(selector)?.scrollIntoView({ block: 'nearest' });
    title.textContent = heading;
    text.textContent = said;
    count.textContent = `${at + 1} of ${STEPS.length}`;
    next.textContent = at === STEPS.length - 1 ? 'Done' : 'Next';
    skip.hidden = at === STEPS.length - 1;
  };
  next.addEventListener('click', () => go(true));
  skip.addEventListener('click', end);
  card.addEventListener('keydown', (e) => { if (e.key === 'Escape') end(); });
  go(false);
  document.getElementById('play').prepend(card);
}

/** legend shows what the page's marks mean, and offers the tour again. */
export function legend() {
  const list = make('dl', { className: 'facts' });
  for (const [name, text] of LEGEND) list.append(make('dt', { textContent: name }), make('dd', { textContent: text }));
  const close = make('button', { type: 'button', className: 'primary', textContent: 'Close' });
  const again = make('button', { type: 'button', textContent: 'Take the tour' });
  const dialog = make('dialog', { className: 'naming legend' }, make('h2', { id: 'legend-title', textContent: 'Legend' }), list, make('div', { className: 'row' }, close, again));
  dialog.dataset.testid = 'play-legend';
  dialog.setAttribute('aria-labelledby', 'legend-title');
  close.addEventListener('click', () => dialog.close());
  again.addEventListener('click', () => { dialog.close(); tour(); });
  dialog.addEventListener('close', () => dialog.remove());
  document.getElementById('play').append(dialog);
  dialog.showModal();
}
