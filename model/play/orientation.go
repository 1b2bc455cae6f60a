package play

import (
	"bytes"
	"encoding/binary"
	"image"
)

// orientation is the EXIF orientation of a JPEG file, 1 to 8; 1, upright, where it says none.
func orientation(raw []byte) int {
	const app1, scan = 0xe1, 0xda
	if !bytes.HasPrefix(raw, []byte{0xff, 0xd8}) {
		return 1
	}
	for rest := raw[2:]; len(rest) >= 4 && rest[0] == 0xff && rest[1] != scan; {
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if size < 2 || len(rest) < 2+size {
			return 1
		}
		if body, ok := bytes.CutPrefix(rest[4:2+size], []byte("Exif\x00\x00")); ok && rest[1] == app1 {
			return tiffOrientation(body)
		}
		rest = rest[2+size:]
	}
	return 1
}

// tiffOrientation is tag 0x0112 of a TIFF header's first directory.
func tiffOrientation(tiff []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(tiff, []byte("MM")) {
		order = binary.BigEndian
	}
	if len(tiff) < 8 {
		return 1
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 1
	}
	for entry := range uint64(order.Uint16(tiff[at:])) {
		from := at + 2 + 12*entry
		if from+12 > uint64(len(tiff)) {
			return 1
		}
		if order.Uint16(tiff[from:]) == 0x0112 {
			if o := int(order.Uint16(tiff[from+8:])); o >= 1 && o <= 8 {
				return o
			}
			return 1
		}
	}
	return 1
}

// upright turns and mirrors a picture of an EXIF orientation so that its top is up.
func upright(img image.Image, orientation int) image.Image {
	if orientation == 1 {
		return img
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			from := [...]image.Point{
				2: {w - 1 - x, y}, 3: {w - 1 - x, h - 1 - y}, 4: {x, h - 1 - y},
				5: {y, x}, 6: {y, h - 1 - x}, 7: {w - 1 - y, h - 1 - x}, 8: {w - 1 - y, x},
			}[orientation].Add(b.Min)
			out.Set(x, y, img.At(from.X, from.Y))
		}
	}
	return out
}
