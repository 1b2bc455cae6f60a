// The tour: four steps, shown on the first visit or on request; and the legend of the page's symbols.

const SEEN = 'slotscope tour';

const STEPS = [
  ['#grid tr[data-row="a"]', 'An image is a few codes', 'A and B are each encoded as one code per slot. A column is a slot; slots of the same factor share a heading.'],
  ['#grid .groupswaps', 'Swap and see the effect', 'Each image is A with B’s codes for one group. Click it to apply the codes to A, or drag a code or a heading onto A.'],
  ['#facts', 'Check what changed', 'A probe reads the factors of the result: ✓ changed as intended, ✗ leaked. If the dataset has the true image, it is shown too.'],
  ['#palette', 'Every code has a meaning', 'Click a slot to see its codes. Try, name and pin them here. Further down you can interpolate from A to B.'],
];

const LEGEND = [
  ['Spotlight', 'A code’s thumbnail highlights the part of the image that it accounts for: the pixels that change when the other image’s code replaces it.'],
  ['↯', 'Re-encoding the decoded image gives another code.'],
  ['same', 'A and B have the same code in this slot.'],
  ['Colour under a code', 'Edited: differs from the encoded code.'],
  ['Differences', 'Maximum channel difference from A, same scale for all slots. The percentage counts pixels that changed by more than 8 of 255.'],
  ['✓ ✗', '✓: a factor changed as intended. ✗: a factor leaked, that is, changed when it should not have. A probe reads the factors from the image.'],
  ['hit, miss', 'PSNR against the dataset’s true image. A hit is at most 3 dB below A’s reconstruction and closer to the true image than A was. True images have a dashed border.'],
  ['Bars in a heading', 'NMI of the slot with each factor, in the dataset’s order, corrected for chance.'],
];

const make = (tag, props, ...children) => {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children);
  return e;
};

function seen() {
  try { return localStorage.getItem(SEEN) !== null; } catch { return true; } // without storage the tour would start on every visit
}

function remember() {
  try { localStorage.setItem(SEEN, 'seen'); } catch { /* then it does not start automatically */ }
}

/** first starts the tour on the first visit. */
export function first() {
  if (!seen()) tour();
}

/** tour shows the steps one after another without blocking the page. */
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

/** legend explains the page's symbols and offers the tour. */
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
