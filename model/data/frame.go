package data

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
)

// side is the height and width that images are scaled to, the input size of the paper's network.
const side = 64

// frame describes the layout of an image in a row of an array, and converts it to [side, side, c] bytes.
type frame struct {
	h, w, c int
	axes    string // of a row, the last fastest: h rows, w columns, c channels; empty for "hwc"
	size    int    // bytes of an element
	// level returns the brightness of an element, 0 to 255; nil if elements are bytes of brightness.
	level func(element []byte) byte
	// number returns the value of an element, which must lie between low and high; nil if values are not checked.
	number    func(element []byte) float64
	low, high float64
}

// check returns an error if a number of the row is out of range.
func (f frame) check(row []byte) error {
	if f.number == nil {
		return nil
	}
	for ; len(row) > 0; row = row[f.size:] {
		if v := f.number(row[:f.size]); !(v >= f.low && v <= f.high) {
			return fmt.Errorf("%v is outside the range %v to %v; choose another range in the option scale", v, f.low, f.high)
		}
	}
	return nil
}

// channels returns the number of channels to keep: one for grey, three for colour. Opacity is dropped.
func (f frame) channels() int {
	if f.c >= 3 {
		return 3
	}
	return 1
}

// asIs reports whether rows need no conversion.
func (f frame) asIs() bool {
	dx, dy, dc := f.strides()
	return f.h == side && f.w == side && f.level == nil && f.size == 1 && (f.c == 1 || f.c == 3 && dc == 1) && dx == f.c && dy == f.w*dx
}

// strides returns the bytes from an element to the next one in its row, in its column, and in its pixel.
func (f frame) strides() (dx, dy, dc int) {
	axes, step := cmp.Or(f.axes, "hwc"), f.size
	for i := len(axes) - 1; i >= 0; i-- {
		switch axes[i] {
		case 'h':
			dy, step = step, step*f.h
		case 'w':
			dx, step = step, step*f.w
		case 'c':
			dc, step = step, step*f.c
		}
	}
	return dx, dy, dc
}

// scales reports whether images change their size.
func (f frame) scales() bool { return f.h != side || f.w != side }

// canvas is the memory in which one goroutine scales images.
type canvas struct {
	from, to *image.RGBA
	scaler   draw.Scaler
}

// fill converts one row and writes the image to dst.
func (f frame) fill(c *canvas, dst, row []byte) {
	switch {
	case f.asIs():
		copy(dst, row)
	case !f.scales():
		f.each(row, func(x, y, channel int, v byte) { dst[(y*f.w+x)*f.channels()+channel] = v })
	default:
		c.prepare(f.w, f.h)
		f.each(row, func(x, y, channel int, v byte) { c.set(x, y, channel, f.channels(), v) })
		c.scale(dst, f.channels())
	}
}

// each visits every element of a row except opacity.
func (f frame) each(row []byte, set func(x, y, channel int, v byte)) {
	dx, dy, dc := f.strides()
	for y := range f.h {
		for x := range f.w {
			for channel := range f.channels() {
				element := row[y*dy+x*dx+channel*dc:]
				if f.level != nil {
					set(x, y, channel, f.level(element[:f.size]))
				} else {
					set(x, y, channel, element[0])
				}
			}
		}
	}
}

// prepare allocates memory for an image of w × h.
func (c *canvas) prepare(w, h int) {
	if c.from != nil && c.from.Rect == image.Rect(0, 0, w, h) {
		return
	}
	c.from = image.NewRGBA(image.Rect(0, 0, w, h))
	c.aim(w, h)
}

// aim prepares to scale from w × h.
func (c *canvas) aim(w, h int) {
	c.to = image.NewRGBA(image.Rect(0, 0, side, side))
	c.scaler = draw.CatmullRom.NewScaler(side, side, w, h)
}

func (c *canvas) set(x, y, channel, channels int, v byte) {
	p := c.from.Pix[y*c.from.Stride+4*x:]
	if channels == 1 {
		p[0], p[1], p[2] = v, v, v
	} else {
		p[channel] = v
	}
	p[3] = 255
}

// scale resizes the image to [side, side, channels] with the bicubic kernel with a = −½, widened when shrinking.
func (c *canvas) scale(dst []byte, channels int) {
	c.scaler.Scale(c.to, c.to.Rect, c.from, c.from.Rect, draw.Src, nil)
	unpack(dst, c.to.Pix, channels)
}

// unpack drops opacity, and the two redundant channels of grey images.
func unpack(dst, rgba []byte, channels int) {
	for i := 0; i < len(rgba)/4; i++ {
		copy(dst[i*channels:(i+1)*channels], rgba[4*i:])
	}
}

// picture converts a decoded image of any size and type to [side, side, channels]. It drops opacity before scaling.
func (c *canvas) picture(dst []byte, img image.Image, channels int) {
	opaque := opaque(img)
	b := opaque.Rect
	if b.Dx() == side && b.Dy() == side {
		for y := range side {
			unpack(dst[y*side*channels:(y+1)*side*channels], opaque.Pix[y*opaque.Stride:][:4*side], channels)
		}
		return
	}
	if c.from == nil || c.from.Rect.Size() != b.Size() {
		c.aim(b.Dx(), b.Dy())
	}
	c.from = opaque
	c.scale(dst, channels)
}

// opaque returns the image without opacity, with its colours as stored.
func opaque(img image.Image) *image.RGBA {
	var pix *image.RGBA
	switch m := img.(type) {
	case *image.RGBA:
		return m // of a PNG without opacity
	case *image.NRGBA:
		pix = &image.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
	case *image.Paletted:
		return ofPalette(m)
	case *image.NYCbCrA:
		return opaque(&m.YCbCr)
	case *image.NRGBA64:
		pix = image.NewRGBA(m.Rect)
		for i := range pix.Pix {
			pix.Pix[i] = m.Pix[i/(4*m.Rect.Dx())*m.Stride+2*(i%(4*m.Rect.Dx()))] // the upper byte
		}
	default:
		n := image.NewNRGBA(img.Bounds())
		draw.Draw(n, n.Rect, img, n.Rect.Min, draw.Src)
		pix = &image.RGBA{Pix: n.Pix, Stride: n.Stride, Rect: n.Rect}
	}
	for i := 3; i < len(pix.Pix); i += 4 {
		pix.Pix[i] = 255
	}
	return pix
}

// ofPalette returns the image with every pixel's palette colour, ignoring opacity.
func ofPalette(m *image.Paletted) *image.RGBA {
	var colours [256][3]byte
	for i, c := range m.Palette {
		switch c := c.(type) {
		case color.NRGBA:
			colours[i] = [3]byte{c.R, c.G, c.B}
		default:
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			colours[i] = [3]byte{n.R, n.G, n.B}
		}
	}
	pix := image.NewRGBA(m.Rect)
	for y := range m.Rect.Dy() {
		for x, index := range m.Pix[y*m.Stride:][:m.Rect.Dx()] {
			c := colours[index]
			copy(pix.Pix[y*pix.Stride+4*x:], []byte{c[0], c[1], c[2], 255})
		}
	}
	return pix
}

// fit returns a sentence on how images of the given size are scaled; empty if they are not.
func fit(h, w int) string {
	switch {
	case h == side && w == side:
		return ""
	case h == w:
		return fmt.Sprintf("Images are scaled from %d × %d to %d × %d.", w, h, side, side)
	}
	return fmt.Sprintf("Images are scaled from %d × %d to %d × %d, which changes their proportions.", w, h, side, side)
}

// unit returns the brightness of a number between 0 and 1.
func unit(v float64) byte { return byte(math.Round(255 * min(max(v, 0), 1))) }
