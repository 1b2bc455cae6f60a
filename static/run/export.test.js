import assert from 'node:assert/strict';
import { test } from 'node:test';
import { svg, ticks } from './export.js';

test('ticks are round numbers within the range', () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.1, 0.35, 5), [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]);
  assert.deepEqual(ticks(3, 3), [3]);
});

test('the SVG has every line, with gaps at missing values, and escapes text', () => {
  const text = svg({ title: 'a < b', unit: 'dB', across: 'step', x: [0, 4], y: [0, 2], log: false, lines: [{ label: 'x & y', stroke: 'rgb(0, 1, 2)', dash: [2, 3], width: 1.5, xs: [0, 1, 2, 3, 4], ys: [0, 1, null, 1, undefined] }] });
  assert.match(text, /a &lt; b/);
  assert.match(text, /x &amp; y/);
  assert.match(text, /stroke-dasharray="2 3"/);
  const [path] = text.match(/M[\d.]+ [\d.]+L[\d.]+ [\d.]+M[\d.]+ [\d.]+(?=")/) ?? [];
  assert.ok(path, 'two strokes');
});

test('a logarithmic axis has ticks at powers of ten', () => {
  const text = svg({ title: 't', unit: '', across: 'step', x: [0, 1], y: [0.01, 100], log: true, lines: [] });
  for (const mark of ['>0.01<', '>0.1<', '>1<', '>10<', '>100<']) assert.ok(text.includes(mark), mark);
});
