// One state machine for moving codes by dragging, clicking, tapping or keyboard.
//
//   idle ──down──▶ pressed ──6 px──▶ held (drag) ──up over a slot──▶ placed
//                     └────up─────▶ held (click) ──click a slot───▶ placed        Esc, a click elsewhere: cancelled
//   idle ──Enter──▶ held (keys) ──Enter on a slot──▶ placed
//
// Sources are cells (a slot of row a or b with its code), entries (a palette code of one slot) and groups (slots of one factor, whose codes
// are copied from the other row). Targets are cells and the enlarged image, which represents the source's slots.

export const THRESHOLD = 6; // px between a press and a drag

export const idle = { phase: 'idle' };

const same = (a, b) => !!a && !!b && a.kind === b.kind && a.row === b.row && a.slot === b.slot && a.group === b.group && (a.kind !== 'entry' || a.code === b.code);

/** target returns the slot (or, for a group, the slots) under the pointer that would receive the held code, or null. */
export function target(source, what, row = 'a') {
  if (!what || !source) return null;
  if (source.kind === 'group') {
    const to = { cell: what.row, image: row }[what.kind];
    return to ? { row: to, slot: source.slot, group: source.group } : null;
  }
  if (what.kind === 'cell') return { row: what.row, slot: what.slot };
  if (what.kind === 'image') return { row, slot: source.slot };
  return null;
}

const hold = (source, by, over = null) => ({ phase: 'held', source, by, over });

/**
 * step returns the next state and the effects of an event, in order:
 * {pick}, {over} (the slot under the held code changed), {place}, {cancel}.
 */
export function step(state, event) {
  switch (state.phase) {
    case 'idle': return fromIdle(state, event);
    case 'pressed': return fromPressed(state, event);
    default: return fromHeld(state, event);
  }
}

const stay = (state) => [state, []];
const isSource = (what) => !!what && ['cell', 'entry', 'group'].includes(what.kind);

function fromIdle(state, e) {
  if (e.type === 'down' && isSource(e.what)) return stay({ phase: 'pressed', source: e.what, x: e.x, y: e.y, before: null });
  if (e.type === 'key' && isSource(e.what)) return pick(e.what, 'keys');
  return stay(state);
}

function pick(source, by, over = null) {
  const next = hold(source, by, over);
  return [next, over ? [{ type: 'pick', ...next }, { type: 'over', ...next }] : [{ type: 'pick', ...next }]];
}

function fromPressed(state, e) {
  const { before } = state;
  switch (e.type) {
    case 'move': {
      if (Math.hypot(e.x - state.x, e.y - state.y) < THRESHOLD) return stay(state);
      return pick(state.source, 'drag', away(state.source, target(state.source, e.what, e.row)));
    }
    case 'up':
      if (!before) return pick(state.source, 'click');
      return clicked(before, state.source, e.row);
    case 'cancel':
      return before ? stay(before) : stay(idle);
  }
  return stay(state);
}

/** away returns over, or null if it is the slot from which the code was taken. */
const away = (source, over) => (over && source.kind === 'cell' && over.row === source.row && over.slot === source.slot ? null : over);

/** clicked handles a click on a source while a code is held: a slot receives it, the source itself cancels, another entry replaces it. */
function clicked(held, what, row) {
  if (what.kind === 'entry') {
    if (same(held.source, what)) return place(held, { row: row ?? 'a', slot: what.slot });
    return pick(what, held.by === 'keys' ? 'keys' : 'click');
  }
  if (same(held.source, what)) return cancel(held);
  if (what.kind === 'group') return pick(what, held.by === 'keys' ? 'keys' : 'click');
  return place(held, target(held.source, what, row));
}

const place = (held, to) => [idle, [{ type: 'place', source: held.source, by: held.by, to }]];
const cancel = (held) => [idle, [{ type: 'cancel', source: held.source, by: held.by }]];

function fromHeld(state, e) {
  switch (e.type) {
    case 'move': case 'hover': {
      const over = away(state.source, target(state.source, e.what, e.row));
      if (over?.row === state.over?.row && over?.slot === state.over?.slot) return stay(state);
      const next = { ...state, over };
      return [next, [{ type: 'over', ...next }]];
    }
    case 'up': {
      if (state.by !== 'drag') return stay(state);
      const to = away(state.source, target(state.source, e.what, e.row));
      return to ? place(state, to) : cancel(state);
    }
    case 'down':
      if (isSource(e.what)) return stay({ phase: 'pressed', source: e.what, x: e.x, y: e.y, before: state });
      if (e.what?.kind === 'image') return place(state, target(state.source, e.what, e.row));
      return cancel(state);
    case 'key':
      if (e.what?.kind === 'image') return place(state, target(state.source, e.what, e.row));
      return isSource(e.what) ? clicked(state, e.what, e.row) : stay(state);
    case 'cancel': case 'escape':
      return cancel(state);
  }
  return stay(state);
}
