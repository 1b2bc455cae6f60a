// The view of a run's curves in the page's URL: ?smooth=0.6&x=time&log=1&ref=RUN&steps=100-2000&large=KEY&open=GROUP,GROUP&axis=KEY:log,all,0~3
// KEY names a chart; RUN is an earlier run whose curves are drawn as a reference, or "all". Invalid entries are ignored.

/** plain is the default axis settings of a chart: log, all (include outliers), y limits or null. */
export const plain = () => ({ log: false, all: false, y: null });

const isPlain = (a) => !a.log && !a.all && !a.y;

/** readView parses a view from a URL query. */
export function readView(query) {
  const q = new URLSearchParams(query);
  const view = { smooth: 0, timed: q.get('x') === 'time', log: q.get('log') === '1', range: null, ref: '', large: q.get('large') ?? '', open: [], axes: new Map() };
  const smooth = Number(q.get('smooth'));
  if (smooth > 0 && smooth <= 0.99) view.smooth = Math.round(smooth * 100) / 100;
  const steps = /^(\d+)-(\d+)$/.exec(q.get('steps') ?? '');
  if (steps && Number(steps[1]) >= 1 && Number(steps[2]) > Number(steps[1])) view.range = [Number(steps[1]), Number(steps[2])];
  if (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(q.get('ref') ?? '')) view.ref = q.get('ref');
  view.open = (q.get('open') ?? '').split(',').filter((name) => /^[a-z0-9-]+$/.test(name));
  for (const text of q.getAll('axis')) {
    const at = text.lastIndexOf(':');
    if (at < 1) continue;
    const axes = plain();
    for (const word of text.slice(at + 1).split(',')) {
      if (word === 'log') axes.log = true;
      else if (word === 'all') axes.all = true;
      else axes.y = limits(...word.split('~')) ?? axes.y;
    }
    if (!isPlain(axes)) view.axes.set(text.slice(0, at), axes);
  }
  return view;
}

const names = ['smooth', 'x', 'log', 'ref', 'steps', 'axis'];
const usual = ['smooth=0', 'x=step', 'log=0'];

/** unread lists the invalid entries of a query. */
export function unread(query) {
  return [...new URLSearchParams(query)]
    .filter(([name, value]) => names.includes(name) && value && !usual.includes(`${name}=${value}`) && !writeView(readView(new URLSearchParams([[name, value]]))))
    .map(([name, value]) => `${name}=${value}`);
}

/** sayUnread shows the invalid entries in paragraph p, which is hidden if there are none. */
export function sayUnread(p, query) {
  const all = unread(query);
  p.hidden = all.length === 0;
  p.textContent = p.hidden ? '' : `Ignored invalid settings in the URL: ${all.join(', ')}.`;
}

/** writeView returns the query of a view, "" for the default view. */
export function writeView(view) {
  const q = new URLSearchParams();
  if (view.smooth > 0) q.set('smooth', view.smooth);
  if (view.timed) q.set('x', 'time');
  if (view.log) q.set('log', '1');
  if (view.ref) q.set('ref', view.ref);
  if (view.range) q.set('steps', view.range.map(Math.round).join('-'));
  if (view.large) q.set('large', view.large);
  if (view.open.length) q.set('open', view.open.join(','));
  for (const [key, axes] of view.axes) {
    if (isPlain(axes)) continue;
    const words = [axes.log && 'log', axes.all && 'all', axes.y?.map((v) => v ?? '').join('~')];
    q.append('axis', `${key}:${words.filter(Boolean).join(',')}`);
  }
  const text = q.toString();
  return text && `?${text}`;
}

/** limits parses the ends of an axis; either may be empty. Returns null if neither is a number or they are in the wrong order. */
export function limits(lo = '', hi = '') {
  const end = (text) => (String(text).trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text));
  const [a, b] = [end(lo), end(hi)];
  if ((a === null && b === null) || (a !== null && b !== null && a >= b)) return null;
  return [a, b];
}
