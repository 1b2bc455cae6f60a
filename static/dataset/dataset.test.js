import assert from 'node:assert/strict';
import test from 'node:test';
import { classesOf, describe, indexOf, nearest, nearOf, readIndex, readSeed, readTuple } from './dataset.js';

const sizes = [10, 10, 10, 8, 4, 15];
const data = {
  name: 'toy', len: 6,
  factors: [{ name: 'floor_hue', label: 'floor hue', values: ['0.0', '0.1'] }, { name: 'shape', label: 'shape', values: ['cube', 'cone', 'ball'] }],
};

test('the index rule, last factor fastest', () => {
  assert.equal(indexOf([2, 5, 7, 1, 2, 6], sizes), 123456);
  assert.deepEqual(classesOf(123456, sizes), [2, 5, 7, 1, 2, 6]);
  assert.deepEqual(classesOf(479999, sizes), [9, 9, 9, 7, 3, 14]);
  for (let i = 0; i < 480000; i += 997) assert.equal(indexOf(classesOf(i, sizes), sizes), i);
});

test('typed values are parsed or rejected with a sentence', () => {
  assert.deepEqual(readIndex(' 5 ', data), { index: 5 });
  assert.equal(readIndex('6', data).error, 'There is no image 6; toy has images 0 to 5.');
  assert.equal(readIndex('-1', data).error, 'There is no image -1; toy has images 0 to 5.');
  assert.equal(readIndex('five', data).error, '“five” is not an image number; toy has images 0 to 5.');
  assert.equal(readIndex('', data).index, undefined);
  assert.deepEqual(readTuple('1.2', data), { index: 5 });
  assert.deepEqual(readTuple('1, 2', data), { index: 5 });
  assert.equal(readTuple('2.0', data).error, 'There is no class 2 of floor_hue; its classes are 0 to 1.');
  assert.equal(readTuple('1', data).error, '1 class given for the 2 factors of toy; give one class per factor.');
  assert.equal(readTuple('1.x', data).error, '“x” is not a class; give one whole number per factor.');
  assert.deepEqual(readSeed('7'), { seed: 7 });
  for (const text of ['', '-1', '1.5', '2147483648', 'x']) assert.ok(readSeed(text).error, text);
});

test('describe returns an image in words', () => {
  assert.equal(describe(5, data), 'Image 5: floor hue 0.1, shape ball');
});

test('the strips around an image of a complete dataset', () => {
  const shown = { factors: [{ ...data.factors[0], shown: [0, 1] }, { ...data.factors[1], shown: [0, 2] }] };
  assert.deepEqual(nearOf([1, 1], shown), [[1, 4], [3, 5]]);
});

test('the nearest value with an image', () => {
  assert.equal(nearest(2, [0, 1, 2, 3], [7, 8, -1, 9]), 1);
  assert.equal(nearest(3, [0, 1, 2, 3], [7, 8, -1, 9]), 3);
  assert.equal(nearest(50, [0, 40, 80], [1, -1, 2]), 2);
  assert.equal(nearest(0, [0, 1], [-1, -1]), -1);
});

test('describe works without factors', () => {
  assert.equal(describe(3, { factors: [] }, []), 'Image 3');
});
