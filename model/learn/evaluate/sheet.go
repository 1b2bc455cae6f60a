package evaluate

import (
	"image"
	"math"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/data"
)

// shownImages is the number of images shown under noise.
const shownImages = 4

// sheet collects the first images of the evaluation set: original, reconstructed, and reconstructed at every noise level.
type sheet struct {
	info    data.Info
	rows    int      // images
	columns [][]byte // each [rows, H, W, C]
}

// begin adds the images of the first batch and their reconstructions, [B, H, W, C] in [0, 1].
func (s *sheet) begin(e *evaluation, pixels []byte, reconstructed *tensors.Tensor) {
	if s.rows = min(shownImages, e.o.Noise, len(e.index)); s.rows <= 0 {
		return
	}
	s.info = e.info
	s.columns = append(s.columns, pixels[:s.size()])
	s.add(reconstructed)
}

func (s *sheet) size() int { return s.rows * s.info.H * s.info.W * s.info.C }

// add adds a column, [B, H, W, C] in [0, 1].
func (s *sheet) add(images *tensors.Tensor) {
	column := make([]byte, s.size())
	for i, v := range tensors.MustCopyFlatData[float32](images)[:len(column)] {
		column[i] = byte(math.Round(255 * min(max(float64(v), 0), 1)))
	}
	s.columns = append(s.columns, column)
}

// picture returns the sheet with one image per row; nil without noise.
func (s *sheet) picture() image.Image {
	if len(s.columns) == 0 {
		return nil
	}
	each := s.size() / s.rows
	var pixels []byte
	for r := range s.rows {
		for _, column := range s.columns {
			pixels = append(pixels, column[r*each:(r+1)*each]...)
		}
	}
	return s.info.Picture(pixels, len(s.columns), 1)
}
