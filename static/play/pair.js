// Remembers the initial pair of images shown while codes are first being counted. Counting may choose another pair; a user who left before
// that is told on return.

const entry = (key) => `slotscope pair ${key}`;

/** remember stores a model's pair, [a, b], in this browser; null removes it. */
export function remember(key, pair) {
  try {
    if (pair) localStorage.setItem(entry(key), pair.join(' '));
    else localStorage.removeItem(entry(key));
  } catch { /* storage unavailable: no message on return */ }
}

/** remembered returns the stored pair, or null. */
export function remembered(key) {
  try {
    const [, a, b] = /^(\d+) (\d+)$/.exec(localStorage.getItem(entry(key)) ?? '') ?? [];
    return a === undefined ? null : [Number(a), Number(b)];
  } catch {
    return null;
  }
}
