// The page's URL is its state: the same link shows the same images.

import { format, natural, same } from './codes.js';

/** query formats a state, omitting parameters that follow from the others. */
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
