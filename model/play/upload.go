package play

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // formats supported by Read
	_ "image/jpeg"
	_ "image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"slotscope/model"
	"slotscope/model/format/exif"
	"slotscope/model/paper/ae"
)

const (
	// MaxUpload is the maximum size of an uploaded image file in bytes.
	MaxUpload = 20 << 20
	// MaxSide is the maximum width and height of an uploaded image in pixels.
	MaxSide = 8192
	// maxPixels limits the memory of one decoded upload: 160 MB at four bytes per pixel.
	maxPixels = 40_000_000
)

// Read decodes a JPEG, PNG, GIF or WebP file into an image of the model's shape, rotated by its EXIF orientation. said is a sentence on how it
// was cropped and resized, or empty if it was not. Read checks the size in the header before it decodes pixels.
func Read(raw []byte, shape ae.Image) (pixels []byte, said string, err error) {
	cfg, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, "", refuse(raw, err)
	}
	if cfg.Width < 1 || cfg.Height < 1 {
		return nil, "", model.Invalid{"image": "the image has no pixels"}
	}
	if cfg.Width > MaxSide || cfg.Height > MaxSide || cfg.Width*cfg.Height > maxPixels {
		return nil, "", model.Invalid{"image": fmt.Sprintf("the image is %d × %d pixels; choose one of at most %d on each side and %d million in total",
			cfg.Width, cfg.Height, MaxSide, maxPixels/1_000_000)}
	}
	img, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, "", model.Invalid{"image": fmt.Sprintf("the %s file is damaged: %s", format, plain(err))}
	}
	img = exif.Upright(img, raw)
	return fit(img, shape), told(img.Bounds(), shape), nil
}

func refuse(raw []byte, err error) error {
	if len(raw) == 0 {
		return model.Invalid{"image": "the file is empty"}
	}
	if errors.Is(err, image.ErrFormat) {
		return model.Invalid{"image": "unsupported format; use JPEG, PNG, GIF or WebP"}
	}
	return model.Invalid{"image": "the image's header is damaged: " + plain(err)}
}

func plain(err error) string {
	if err.Error() == "unexpected EOF" || err.Error() == "EOF" {
		return "unexpected end of file"
	}
	return err.Error()
}

// told describes what fit does to an image of these bounds.
func told(b image.Rectangle, shape ae.Image) string {
	if b.Dx() == shape.W && b.Dy() == shape.H {
		return ""
	}
	if b.Dx() == b.Dy() {
		return fmt.Sprintf("Resized %d × %d to %d × %d.", b.Dx(), b.Dy(), shape.W, shape.H)
	}
	return fmt.Sprintf("Cropped %d × %d to the centre square and resized to %d × %d.", b.Dx(), b.Dy(), shape.W, shape.H)
}

// fit resizes the centre square of an image, over white, with the Catmull-Rom kernel and returns its channels.
func fit(img image.Image, shape ae.Image) []byte {
	b := img.Bounds()
	side := min(b.Dx(), b.Dy())
	left, top := b.Min.X+(b.Dx()-side)/2, b.Min.Y+(b.Dy()-side)/2
	small := image.NewRGBA(image.Rect(0, 0, shape.W, shape.H))
	draw.Draw(small, small.Rect, image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(small, small.Rect, img, image.Rect(left, top, left+side, top+side), draw.Over, nil)
	out := make([]byte, 0, shape.H*shape.W*shape.C)
	for y := range shape.H {
		for x := range shape.W {
			p := small.RGBAAt(x, y)
			if shape.C < 3 {
				out = append(out, color.GrayModel.Convert(p).(color.Gray).Y)
				continue
			}
			out = append(out, p.R, p.G, p.B)
		}
	}
	return out
}
