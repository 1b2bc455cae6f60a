package move

import "unsafe"

// word is a unit that the loops move at once; 16 bytes are used for complex128 and for runs of smaller elements.
type word interface {
	uint8 | uint16 | uint32 | uint64 | [2]uint64
}

// rowWalk returns the loop for a plane that is copied row by row.
func rowWalk(p *plane) func(p *plane, dst, src unsafe.Pointer, lo, hi int) {
	bytes := p.cols.n * p.width
	switch {
	case p.cols.dst == p.width && p.cols.src == p.width && bytes >= 24:
		return walkRuns
	case p.cols.dst == p.width && p.cols.src == 0 && bytes >= 128:
		return walkFills
	}
	switch p.width {
	case 1:
		return walkRows[uint8]
	case 2:
		return walkRows[uint16]
	case 4:
		return walkRows[uint32]
	case 8:
		return walkRows[uint64]
	}
	return walkRows[[2]uint64]
}

// walkRuns copies rows that are contiguous on both sides.
func walkRuns(p *plane, dst, src unsafe.Pointer, lo, hi int) {
	r, c := lo/p.cols.n, lo%p.cols.n
	for ; lo < hi; r, c = r+1, 0 {
		n := min(p.cols.n-c, hi-lo)
		d := unsafe.Add(dst, r*p.rows.dst+c*p.width)
		s := unsafe.Add(src, r*p.rows.src+c*p.width)
		copy(unsafe.Slice((*byte)(d), n*p.width), unsafe.Slice((*byte)(s), n*p.width))
		lo += n
	}
}

// walkFills repeats one element along every row.
func walkFills(p *plane, dst, src unsafe.Pointer, lo, hi int) {
	r, c := lo/p.cols.n, lo%p.cols.n
	for ; lo < hi; r, c = r+1, 0 {
		n := min(p.cols.n-c, hi-lo)
		d := unsafe.Add(dst, r*p.rows.dst+c*p.width)
		s := unsafe.Add(src, r*p.rows.src)
		fill(unsafe.Slice((*byte)(d), n*p.width), unsafe.Slice((*byte)(s), p.width))
		lo += n
	}
}

// fill repeats pattern over memory, whose length is a multiple of the pattern's. It doubles the filled part while that
// is small enough to stay in the L1 cache.
func fill(memory, pattern []byte) {
	n := copy(memory, pattern)
	for n < len(memory) {
		n += copy(memory[n:], memory[:min(n, 8192/len(pattern)*len(pattern))])
	}
}

// walkRows is the general loop: any strides on both sides.
func walkRows[T word](p *plane, dst, src unsafe.Pointer, lo, hi int) {
	r, c := lo/p.cols.n, lo%p.cols.n
	dc, sc := p.cols.dst, p.cols.src
	for ; lo < hi; r, c = r+1, 0 {
		n := min(p.cols.n-c, hi-lo)
		d := unsafe.Add(dst, r*p.rows.dst+c*dc)
		s := unsafe.Add(src, r*p.rows.src+c*sc)
		for i := range n {
			*(*T)(unsafe.Add(d, i*dc)) = *(*T)(unsafe.Add(s, i*sc))
		}
		lo += n
	}
}

// tileRows is the number of destination rows in a tile of a transposition: one cache line of float32.
const tileRows = 16

// tileCols is the number of destination columns in a tile.
const tileCols = 16

// tileWalk returns the loop for a plane whose rows are contiguous in the source and columns in the destination.
func tileWalk(width int) func(p *plane, dst, src unsafe.Pointer, lo, hi int) {
	switch width {
	case 1:
		return walkTiles[uint8]
	case 2:
		return walkTiles[uint16]
	case 4:
		return walkTiles4
	case 8:
		return walkTiles[uint64]
	}
	return walkTiles[[2]uint64]
}

// walkTiles transposes; lo and hi count bands of tileRows rows.
func walkTiles[T word](p *plane, dst, src unsafe.Pointer, lo, hi int) {
	for j := lo * tileRows; j < min(hi*tileRows, p.rows.n); j += tileRows {
		rows := min(tileRows, p.rows.n-j)
		for i := 0; i < p.cols.n; i += tileCols {
			d := unsafe.Add(dst, j*p.rows.dst+i*p.width)
			s := unsafe.Add(src, j*p.width+i*p.cols.src)
			tile[T](d, s, rows, min(tileCols, p.cols.n-i), p.rows.dst, p.cols.src)
		}
	}
}

// tile transposes rows × cols elements: dst[r·dstRow + c] = src[c·srcCol + r].
func tile[T word](dst, src unsafe.Pointer, rows, cols, dstRow, srcCol int) {
	width := int(unsafe.Sizeof(*(*T)(dst)))
	for r := range rows {
		d, s := unsafe.Add(dst, r*dstRow), unsafe.Add(src, r*width)
		for c := range cols {
			*(*T)(unsafe.Add(d, c*width)) = *(*T)(unsafe.Add(s, c*srcCol))
		}
	}
}

// walkTiles4 is walkTiles for elements of four bytes, two by two through 64-bit registers.
func walkTiles4(p *plane, dst, src unsafe.Pointer, lo, hi int) {
	dr, sc := p.rows.dst, p.cols.src
	for j := lo * tileRows; j < min(hi*tileRows, p.rows.n); j += tileRows {
		rows := min(tileRows, p.rows.n-j)
		for i := 0; i < p.cols.n; i += tileCols {
			cols := min(tileCols, p.cols.n-i)
			d, s := unsafe.Add(dst, j*dr+i*4), unsafe.Add(src, j*4+i*sc)
			even := cols &^ 1
			pairs(d, s, rows, even, dr, sc)
			if even < cols {
				tile[uint32](unsafe.Add(d, even*4), unsafe.Add(s, even*sc), rows, 1, dr, sc)
			}
		}
	}
}

// pairs transposes rows × cols elements of four bytes, cols even: two pairs of the source become two of the destination.
// It requires that the low half of a word comes first in memory, as on amd64 and arm64.
func pairs(dst, src unsafe.Pointer, rows, cols, dstRow, srcCol int) {
	even := rows &^ 1
	for r := 0; r < even; r += 2 {
		d0, s := unsafe.Add(dst, r*dstRow), unsafe.Add(src, r*4)
		d1 := unsafe.Add(d0, dstRow)
		for c := 0; c < cols; c += 2 {
			a, b := *(*uint64)(unsafe.Add(s, c*srcCol)), *(*uint64)(unsafe.Add(s, (c+1)*srcCol))
			*(*uint64)(unsafe.Add(d0, c*4)) = a&0xffffffff | b<<32
			*(*uint64)(unsafe.Add(d1, c*4)) = a>>32 | b&^0xffffffff
		}
	}
	if even < rows {
		tile[uint32](unsafe.Add(dst, even*dstRow), unsafe.Add(src, even*4), 1, cols, dstRow, srcCol)
	}
}
