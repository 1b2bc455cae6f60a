package play

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"

	"slotscope/model/paper/ae"
)

// Frame is an image of an animation with its caption.
type Frame struct {
	Pixels  []byte // H × W × C
	Caption string
}

// Movie is a captioned animation of images at 4×. Each frame is shown for Hundredths of a second, or twice as long at Stops.
type Movie struct {
	Frames     []Frame
	Shape      ae.Image
	Hundredths int
	Stops      []int // indices of frames that are shown twice as long
}

const (
	movieScale = 4
	movieLine  = 18 // height of the caption in pixels
)

// draw renders a frame with its caption below it, on white.
func (m Movie) draw(f Frame) *image.RGBA {
	picture := Picture(f.Pixels, m.Shape, movieScale)
	out := image.NewRGBA(m.rect())
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(out, picture.Rect, picture, image.Point{}, draw.Src)
	m.write(out, f.Caption)
	return out
}

// rect returns the bounds of a frame with its caption.
func (m Movie) rect() image.Rectangle {
	return image.Rect(0, 0, m.Shape.W*movieScale, m.Shape.H*movieScale+movieLine)
}

func (m Movie) write(dst draw.Image, text string) {
	caption(dst, text, image.Pt(3, m.Shape.H*movieScale+13), m.Shape.W*movieScale-6)
}

// delay returns the duration of a frame in hundredths of a second.
func (m Movie) delay(at int) int {
	for _, stop := range m.Stops {
		if stop == at {
			return 2 * m.Hundredths
		}
	}
	return m.Hundredths
}

// GIF encodes the animation as a GIF with one palette per frame.
func (m Movie) GIF() ([]byte, error) {
	film := gif.GIF{}
	for at, f := range m.Frames {
		colors := append(color.Palette{color.White, color.Gray{40}}, quantize(f.Pixels, m.Shape.C, 254)...)
		frame := image.NewPaletted(m.rect(), colors) // white
		paintPaletted(frame, f.Pixels, m.Shape, movieScale)
		m.write(frame, f.Caption)
		film.Image, film.Delay = append(film.Image, frame), append(film.Delay, m.delay(at))
	}
	var buf bytes.Buffer
	if err := gif.EncodeAll(&buf, &film); err != nil {
		return nil, fmt.Errorf("encoding a GIF: %w", err)
	}
	return buf.Bytes(), nil
}

// signature is the first eight bytes of every PNG.
const signature = "\x89PNG\r\n\x1a\n"

// APNG encodes the animation as an animated PNG, in full colour, as specified by APNG 1.0: the chunks of each frame's PNG after one header.
// Programs without APNG support show the first frame.
func (m Movie) APNG() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(signature)
	sequence := uint32(0)
	for at, f := range m.Frames {
		img := m.draw(f)
		raw, err := PNG(img)
		if err != nil {
			return nil, err
		}
		chunks, err := chunksOf(raw)
		if err != nil {
			return nil, err
		}
		if at == 0 {
			chunk(&out, "IHDR", chunks["IHDR"])
			chunk(&out, "acTL", binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(m.Frames))), 0))
		}
		chunk(&out, "fcTL", m.control(sequence, img.Rect, m.delay(at)))
		sequence++
		if at == 0 {
			chunk(&out, "IDAT", chunks["IDAT"])
			continue
		}
		chunk(&out, "fdAT", append(binary.BigEndian.AppendUint32(nil, sequence), chunks["IDAT"]...))
		sequence++
	}
	chunk(&out, "IEND", nil)
	return out.Bytes(), nil
}

// control returns the body of an fcTL chunk: a frame's bounds and duration.
func (m Movie) control(sequence uint32, r image.Rectangle, hundredths int) []byte {
	b := binary.BigEndian.AppendUint32(nil, sequence)
	for _, v := range []int{r.Dx(), r.Dy(), 0, 0} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(hundredths))
	return append(binary.BigEndian.AppendUint16(b, 100), 0, 0) // delay in hundredths; no disposal, no blending
}

func chunk(out *bytes.Buffer, kind string, body []byte) {
	binary.Write(out, binary.BigEndian, uint32(len(body)))
	sum := crc32.NewIEEE()
	for _, part := range [][]byte{[]byte(kind), body} {
		out.Write(part)
		sum.Write(part)
	}
	binary.Write(out, binary.BigEndian, sum.Sum32())
}

// chunksOf splits a PNG into its chunks, joining those of the same kind.
func chunksOf(raw []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for raw = raw[len(signature):]; len(raw) >= 12; {
		n := int(binary.BigEndian.Uint32(raw))
		if len(raw) < 12+n {
			return nil, png.FormatError("a chunk is longer than the file")
		}
		kind := string(raw[4:8])
		out[kind] = append(out[kind], raw[8:8+n]...)
		raw = raw[12+n:]
	}
	return out, nil
}
