// The pair of images that the playground begins with while codes are counted for the first time: the count may choose another, and whoever left
// before its end is told so on return.

const entry = (key) => `slotscope pair ${key}`;

/** remember keeps a model's pair, [a, b], in this browser; null forgets it. */
export function remember(key, pair) {
  try {
    if (pair) localStorage.setItem(entry(key), pair.join(' '));
    else localStorage.removeItem(entry(key));
  } catch { /* then nothing is said on return */ }
}

/** remembered is the pair that was kept, or null. */
export function remembered(key) {
  try {
    const [, a, b] = /^(\d+) (\d+)$/.exec(localStorage.getItem(entry(key)) ?? '') ?? [];
    return a === undefined ? null : [Number(a), Number(b)];
  } catch {
    return null;
  }
}
