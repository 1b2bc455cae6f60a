// The home page's swap animation: A, A with one group of B, and B. The group changes automatically until paused.

const EVERY = 1800; // ms
const box = document.getElementById('swap');
if (box?.dataset.key) start(box, document.getElementById('swap-said'));

async function start(box, said) {
  const reply = await fetch(`/home/swap.json?v=${box.dataset.key}`).catch(() => null);
  if (!reply?.ok) return; // keep the current picture
  const { a, b, groups } = await reply.json();
  if (!groups.length) return;
  const images = await Promise.all([a, b, ...groups.map((g) => g.image)].map(loaded)).catch(() => null);
  if (!images) return;
  const [first, last, ...middles] = images;
  const row = document.createElement('div');
  row.className = 'live';
  box.replaceChildren(row);
  const text = document.createElement('span');
  const pause = Object.assign(document.createElement('button'), { type: 'button', className: 'plain' });
  pause.dataset.testid = 'home-pause';
  said.replaceChildren(text, pause);
  first.alt = 'Image A';
  last.alt = 'Image B';
  let at = 0;
  const show = () => {
    const { name } = groups[at];
    middles[at].alt = `A with B’s ${name}`;
    row.replaceChildren(first, middles[at], last);
    text.textContent = `A · A with B’s ${name} · B`;
  };
  let timer = 0;
  const run = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(() => { at = (at + 1) % groups.length; show(); }, EVERY) : 0;
    pause.textContent = on ? 'Pause' : 'Play';
    pause.setAttribute('aria-label', on ? 'Pause the swaps' : 'Play the swaps');
  };
  pause.addEventListener('click', () => run(!timer));
  show();
  run(!matchMedia('(prefers-reduced-motion: reduce)').matches);
}

async function loaded(src) {
  const image = Object.assign(new Image(128, 128), { src });
  await image.decode();
  return image;
}
