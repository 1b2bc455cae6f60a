// Makes kinds.parquet with github.com/parquet-go/parquet-go v0.32.0: 300 rows, pages of version 2, a codec for each column.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
)

var _ = deprecated.Int96{}

func main() {
	type column struct {
		name  string
		node  parquet.Node
		codec compress.Codec
		value func(n int) parquet.Value
	}
	i64 := func(f func(n int) int64) func(int) parquet.Value {
		return func(n int) parquet.Value { return parquet.Int64Value(f(n)) }
	}
	i32 := func(f func(n int) int32) func(int) parquet.Value {
		return func(n int) parquet.Value { return parquet.Int32Value(f(n)) }
	}
	words := func(n int) parquet.Value {
		return parquet.ByteArrayValue([]byte(fmt.Sprintf("shape number %d of many", n*n%97)))
	}
	columns := []column{
		{"a_delta64", parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked), &parquet.Lz4Raw, i64(func(n int) int64 { return int64(n*n)*1e12 - 7 })},
		{"b_delta32", parquet.Encoded(parquet.Int(32), &parquet.DeltaBinaryPacked), &parquet.Brotli, i32(func(n int) int32 { return int32(n * 40_000_003) })},
		{"c_lengths", parquet.Encoded(parquet.String(), &parquet.DeltaLengthByteArray), &parquet.Lz4Raw, words},
		{"d_prefixes", parquet.Encoded(parquet.String(), &parquet.DeltaByteArray), &parquet.Zstd, words},
		{"e_split", parquet.Encoded(parquet.Leaf(parquet.FloatType), &parquet.ByteStreamSplit), &parquet.Snappy, func(n int) parquet.Value { return parquet.FloatValue(float32(n) / 10) }},
		{"f_splitd", parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.ByteStreamSplit), &parquet.Gzip, func(n int) parquet.Value { return parquet.DoubleValue(float64(n) / 10) }},
		{"g_decimal", parquet.Decimal(2, 9, parquet.Int32Type), &parquet.Brotli, i32(func(n int) int32 { return int32(n - 150) })},
		{"h_decimal", parquet.Decimal(3, 11, parquet.FixedLenByteArrayType(5)), &parquet.Uncompressed, func(n int) parquet.Value {
			var b [8]byte
			binary.BigEndian.PutUint64(b[:], uint64(int64(n-150)*1_000_003))
			return parquet.FixedLenByteArrayValue(b[3:])
		}},
		{"i_date", parquet.Date(), &parquet.Lz4Raw, i32(func(n int) int32 { return int32(19_000 + n) })},
		{"j_time", parquet.Timestamp(parquet.Millisecond), &parquet.Snappy, i64(func(n int) int64 { return time.Date(2024, 2, 29, 12, 0, n, 5e8, time.UTC).UnixMilli() })},
		{"k_unsigned", parquet.Uint(32), &parquet.Snappy, i32(func(n int) int32 { return int32(-1 - n) })},
		{"l_clock", parquet.Time(parquet.Microsecond), &parquet.Snappy, i64(func(n int) int64 { return int64(n) * 1_500_000 })},
	}
	group := parquet.Group{}
	for _, c := range columns {
		group[c.name] = parquet.Compressed(c.node, c.codec)
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	w := parquet.NewWriter(f, parquet.NewSchema("kinds", group), parquet.DataPageVersion(2), parquet.PageBufferSize(900))
	for n := range 300 {
		row := parquet.Row{}
		for k, c := range columns {
			row = append(row, c.value(n).Level(0, 0, k))
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	f.Close()
}
