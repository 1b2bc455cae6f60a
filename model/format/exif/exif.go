// Package exif turns pictures as cameras say that they were held: EXIF, tag 0x0112 of a JPEG file.
package exif

import (
	"bytes"
	"encoding/binary"
	"image"
)

// Upright turns and mirrors a picture that was decoded from a file so that its top is up; one of a file without EXIF data, or without a
// valid orientation, is img itself. Grey pictures stay grey, others become RGBA.
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
	from := func(x, y int) (int, int) { // the place that comes to (x, y)
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

// orientation is the EXIF orientation of a JPEG file, 1, upright, to 8; 0 where it says none that is valid.
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

// tiffOrientation looks for tag 0x0112 in the first directory of TIFF data.
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
