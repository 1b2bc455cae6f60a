import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits, plain, readView, unread, writeView } from './address.js';

const start = { smooth: 0, timed: false, log: false, range: null, ref: '', large: '', open: [], axes: new Map() };

test('the default view has no query', () => {
  assert.deepEqual(readView(''), start);
  assert.equal(writeView(start), '');
});

test('views round-trip through the URL', () => {
  for (let n = 0; n < 500; n++) {
    const coin = () => Math.random() < 0.5;
    const view = { ...start, smooth: coin() ? Math.round(Math.random() * 99) / 100 : 0, timed: coin(), log: coin(), large: coin() ? 'psnr/eval' : '', open: coin() ? ['terms-of-the-loss', 'speed'] : [], axes: new Map() };
    if (coin()) view.ref = '20261122-025811-itosw4qg';
    if (coin()) view.range = [1 + Math.floor(Math.random() * 50), 100 + Math.floor(Math.random() * 1e6)];
    if (coin()) view.axes.set('total', { log: coin(), all: true, y: null });
    if (coin()) view.axes.set('perplexity/window', { ...plain(), y: [[-1.5, 3], [null, 1e-3], [0, null]][n % 3] });
    assert.deepEqual(readView(writeView(view)), view);
  }
});

test('invalid entries are ignored', () => {
  for (const q of ['?smooth=9', '?smooth=x', '?steps=9-3', '?steps=a-b', '?steps=-1-5', '?steps=0-5', '?x=moon', '?open=<b>,', '?axis=total', '?axis=:log', '?axis=total:', '?axis=total:3~1', '?axis=total:a~b', '?log=yes', '?ref=../etc', '?ref=']) {
    assert.deepEqual(readView(q), start, q);
    if (!/^\?open|=$/.test(q)) assert.deepEqual(unread(q), [q.slice(1)], q);
  }
  assert.deepEqual(unread('?smooth=0.50&x=step&log=0&steps=9-1&axis=total:log&axis=recon:3~1&ref=&open=a&mine=1'), ['steps=9-1', 'axis=recon:3~1']);
});

test('limits may be open at one end', () => {
  assert.deepEqual(limits('1', ''), [1, null]);
  assert.deepEqual(limits('', '2e3'), [null, 2000]);
  assert.deepEqual(limits('-1', '1'), [-1, 1]);
  for (const [lo, hi] of [['', ''], ['2', '1'], ['1', '1'], ['a', ''], ['Infinity', '']]) assert.equal(limits(lo, hi), null, `${lo}~${hi}`);
});
