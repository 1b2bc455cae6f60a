// Makes duckdb.parquet: 24 images by the fixtures' formula, (7n + 3y + 5x + 11c) & 255, as PNG in a BLOB column, beside columns of the
// types DECIMAL, DATE, VARCHAR, TINYINT and BOOLEAN, written by DuckDB with its defaults.
//
//   npm install --prefix DIR @duckdb/node-api@1.5.6-r.1 && cp duckdb.mjs DIR && node DIR/duckdb.mjs duckdb.parquet
import { deflateSync, crc32 } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';

const side = 64;

/** chunk returns a chunk of a PNG file. */
function chunk(type, data) {
  const out = Buffer.alloc(12 + data.length);
  out.writeUInt32BE(data.length);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, 8 + data.length)), 8 + data.length);
  return out;
}

/** png returns image n as an RGB PNG. Its rows are stored as differences to the pixel on the left, which are all 5. */
function png(n) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side);
  head.writeUInt32BE(side, 4);
  head.set([8, 2], 8);
  const rows = Buffer.alloc(side * (1 + 3 * side), 5);
  for (let y = 0; y < side; y++) {
    const row = rows.subarray(y * (1 + 3 * side));
    row[0] = 1;
    for (let c = 0; c < 3; c++) row[1 + c] = 7 * n + 3 * y + 11 * c;
  }
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
}

const db = await (await DuckDBInstance.create(':memory:')).connect();
await db.run(`CREATE TABLE t (image BLOB, size DECIMAL(6, 2), mass DECIMAL(20, 1), taken DATE, label VARCHAR, class TINYINT, round BOOLEAN)`);
for (let n = 0; n < 24; n++) {
  await db.run(`INSERT INTO t VALUES (unhex('${png(n).toString('hex')}'), ${n % 3} + 0.25, ${n % 2} - 0.5, DATE '2024-02-28' + ${n % 4}::INTEGER,
    ['größe', 'cube', 'small ball'][${n % 3} + 1], ${n % 6}, ${n % 2} = 1)`);
}
await db.run(`COPY t TO '${process.argv[2]}' (FORMAT parquet)`);
