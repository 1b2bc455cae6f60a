// The page's address is its state: the same link gives the same pictures.

import { format, natural, same } from './codes.js';

/** query writes a state, leaving out what follows from the rest. */
export function query(state) {
  const q = [];
  if (state.a.index >= 0) q.push(`a=${state.a.index}`);
  if (state.b.index >= 0) q.push(`b=${state.b.index}`);
  q.push(`codes=${format(state.codes)}`);
  if (state.b.index < 0 || !same(state.bcodes, state.b.codes)) q.push(`bcodes=${format(state.bcodes)}`);
  if (!same(state.order, natural(state.order.length))) q.push(`order=${format(state.order)}`);
  return q.join('&');
}

export const equal = (x, y) => query(x) === query(y);
