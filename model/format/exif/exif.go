// Package exif applies the EXIF orientation of JPEG files, tag 0x0112.
package exif

import (
	"bytes"
	"encoding/binary"
	"image"
)

// Upright rotates and flips an image that was decoded from a file according to its EXIF orientation. It returns img itself if the file
// has no valid orientation or needs no change. Grey images stay grey; others become RGBA.
func Upright(img image.Image, file []byte) image.Image {
	o := orientation(file)
	if o < 2 {
		return img
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if o > 4 {
		size = image.Rect(0, 0, h, w)
	}
	from := func(x, y int) (int, int) { // the source of (x, y)
		switch o {
		case 2:
			return w - 1 - x, y
		case 3:
			return w - 1 - x, h - 1 - y
		case 4:
			return x, h - 1 - y
		case 5:
			return y, x
		case 6:
			return y, h - 1 - x
		case 7:
			return w - 1 - y, h - 1 - x
		}
		return w - 1 - y, x
	}
	if m, ok := img.(*image.Gray); ok {
		out := image.NewGray(size)
		for y := range size.Dy() {
			for x := range size.Dx() {
				fx, fy := from(x, y)
				out.SetGray(x, y, m.GrayAt(b.Min.X+fx, b.Min.Y+fy))
			}
		}
		return out
	}
	out := image.NewRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			fx, fy := from(x, y)
			out.Set(x, y, img.At(b.Min.X+fx, b.Min.Y+fy))
		}
	}
	return out
}

// orientation returns the EXIF orientation of a JPEG file, from 1 (upright) to 8, or 0 if it has no valid one.
func orientation(file []byte) int {
	if !bytes.HasPrefix(file, []byte{0xff, 0xd8}) {
		return 0
	}
	for b := file[2:]; len(b) >= 4 && b[0] == 0xff && b[1] != 0xda; {
		length := int(binary.BigEndian.Uint16(b[2:]))
		if length < 2 || 2+length > len(b) {
			return 0
		}
		if body, ok := bytes.CutPrefix(b[4:2+length], []byte("Exif\x00\x00")); ok && b[1] == 0xe1 {
			return tiffOrientation(body)
		}
		b = b[2+length:]
	}
	return 0
}

// tiffOrientation returns tag 0x0112 of the first directory of TIFF data, or 0.
func tiffOrientation(b []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(b, []byte("MM")) {
		order = binary.BigEndian
	}
	if len(b) < 8 {
		return 0
	}
	at := order.Uint32(b[4:])
	if at > uint32(len(b)) || len(b)-int(at) < 2 {
		return 0
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			return 0
		}
		if order.Uint16(entries) == 0x0112 {
			if o := int(order.Uint16(entries[8:])); o <= 8 {
				return o
			}
			return 0
		}
		entries = entries[12:]
	}
	return 0
}
