package play

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"sort"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"slotscope/model/paper/ae"
)

// Picture converts H × W × C bytes to an image, with each pixel enlarged to scale × scale. One channel is grey, three are RGB.
func Picture(pixels []byte, shape ae.Image, scale int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, shape.W*scale, shape.H*scale))
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			p := pixels[((y/scale)*shape.W+x/scale)*shape.C:]
			img.SetRGBA(x, y, colorOf(p, shape.C))
		}
	}
	return img
}

func colorOf(p []byte, c int) color.RGBA {
	if c < 3 {
		return color.RGBA{p[0], p[0], p[0], 255}
	}
	return color.RGBA{p[0], p[1], p[2], 255}
}

// PNG encodes an image. The result is deterministic.
func PNG(img image.Image) ([]byte, error) {
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		return nil, fmt.Errorf("encoding a PNG: %w", err)
	}
	return buf.Bytes(), nil
}

// Cell is one image of a Sheet with its caption; nil Pixels leave the image empty.
type Cell struct {
	Caption string
	Pixels  []byte
}

// Sheet draws rows of images at 2× on white, each with its caption below, as in a paper's figure.
func Sheet(rows [][]Cell, shape ae.Image) *image.RGBA {
	const scale, gap, line = 2, 8, 15
	cellW, cellH := shape.W*scale+gap, shape.H*scale+line+gap
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r))
	}
	sheet := image.NewRGBA(image.Rect(0, 0, columns*cellW+gap, len(rows)*cellH+gap))
	draw.Draw(sheet, sheet.Rect, image.White, image.Point{}, draw.Src)
	for y, r := range rows {
		for x, c := range r {
			at := image.Pt(gap+x*cellW, gap+y*cellH)
			if c.Pixels != nil {
				picture := Picture(c.Pixels, shape, scale)
				draw.Draw(sheet, picture.Rect.Add(at), picture, image.Point{}, draw.Src)
			}
			caption(sheet, c.Caption, at.Add(image.Pt(0, shape.H*scale+12)), shape.W*scale)
		}
	}
	return sheet
}

// caption draws text, truncated to width pixels.
func caption(dst draw.Image, text string, at image.Point, width int) {
	face := basicfont.Face7x13
	if most := width / face.Advance; len(text) > most {
		text = text[:most]
	}
	d := font.Drawer{Dst: dst, Src: image.NewUniform(color.Gray{40}), Face: face, Dot: fixed.P(at.X, at.Y)}
	d.DrawString(text)
}

// Film encodes frames of H × W × C bytes as a GIF at 4×, with one palette per frame. Each frame is shown for the given hundredths of a second,
// the first and the last for twice as long.
func Film(frames [][]byte, shape ae.Image, hundredths int) ([]byte, error) {
	const scale = 4
	film := gif.GIF{}
	for i, f := range frames {
		frame := image.NewPaletted(image.Rect(0, 0, shape.W*scale, shape.H*scale), quantize(f, shape.C, 256))
		paintPaletted(frame, f, shape, scale)
		delay := hundredths
		if i == 0 || i == len(frames)-1 {
			delay *= 2
		}
		film.Image, film.Delay = append(film.Image, frame), append(film.Delay, delay)
	}
	var buf bytes.Buffer
	if err := gif.EncodeAll(&buf, &film); err != nil {
		return nil, fmt.Errorf("encoding a GIF: %w", err)
	}
	return buf.Bytes(), nil
}

// paintPaletted draws pixels in the nearest colours of the palette, each enlarged to scale × scale, from the upper left. It looks up the nearest
// colour only once per source pixel.
func paintPaletted(dst *image.Paletted, pixels []byte, shape ae.Image, scale int) {
	for at := range shape.H * shape.W {
		nearest := byte(dst.Palette.Index(colorOf(pixels[at*shape.C:], shape.C)))
		x, y := at%shape.W*scale, at/shape.W*scale
		for dy := range scale {
			row := dst.Pix[dst.PixOffset(x, y+dy):]
			for dx := range scale {
				row[dx] = nearest
			}
		}
	}
}

// quantize returns at most n colours for an image by median cut: it splits the box with the longest side at the median of that side until
// there are n boxes, and returns their means.
func quantize(pixels []byte, c, n int) color.Palette {
	all := make([]color.RGBA, len(pixels)/c)
	for i := range all {
		all[i] = colorOf(pixels[i*c:], c)
	}
	boxes := [][]color.RGBA{all}
	for len(boxes) < n {
		widest, side, span := -1, 0, 0
		for b, box := range boxes {
			if s, w := longest(box); w > span {
				widest, side, span = b, s, w
			}
		}
		if widest < 0 {
			break
		}
		low, high := halve(boxes[widest], side)
		boxes[widest] = low
		boxes = append(boxes, high)
	}
	out := make(color.Palette, len(boxes))
	for b, box := range boxes {
		out[b] = mean(box)
	}
	return out
}

func channel(p color.RGBA, side int) int { return int([3]uint8{p.R, p.G, p.B}[side]) }

// longest returns the channel with the widest range in a box of colours, and the range.
func longest(box []color.RGBA) (side, span int) {
	for s := range 3 {
		low, high := 255, 0
		for _, p := range box {
			low, high = min(low, channel(p, s)), max(high, channel(p, s))
		}
		if high-low > span {
			side, span = s, high-low
		}
	}
	return side, span
}

func halve(box []color.RGBA, side int) (low, high []color.RGBA) {
	sort.SliceStable(box, func(a, b int) bool { return channel(box[a], side) < channel(box[b], side) })
	cut := len(box) / 2
	for cut < len(box)-1 && channel(box[cut], side) == channel(box[cut-1], side) {
		cut++
	}
	if channel(box[cut], side) == channel(box[cut-1], side) { // the upper half is one value: cut below it
		for cut = len(box) / 2; channel(box[cut], side) == channel(box[cut-1], side); cut-- {
		}
	}
	return box[:cut], box[cut:]
}

func mean(box []color.RGBA) color.RGBA {
	r, g, b := 0, 0, 0
	for _, p := range box {
		r, g, b = r+int(p.R), g+int(p.G), b+int(p.B)
	}
	n := len(box)
	return color.RGBA{uint8((r + n/2) / n), uint8((g + n/2) / n), uint8((b + n/2) / n), 255}
}
