package train

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
)

const (
	evalBatch   = 64 // images per call while evaluating
	sampleCount = 8  // images reconstructed for the run's page
)

// score measures the trained model's PSNR and writes scores.json.
func (s *session) score(ctx context.Context) error {
	n := min(s.cfg.EvalImages, s.set.Info().Len)
	s.Log.Info("evaluating", "images", n)
	psnr, err := s.psnr(ctx, n, func(done int) { s.Log.Debug("evaluated", "images", done, "of", n) })
	if err != nil {
		return err
	}
	s.Log.Info("scored", "psnr", psnr, "images", n)
	return s.Folder.SetScores(model.Scores{Version: model.ScoresVersion, Step: s.status.Step, Images: n, Seed: s.cfg.Seed, PSNR: psnr, Precision: s.engine.Precision})
}

// psnr returns the mean PSNR in dB over the first n images of the run's evaluation set.
func (s *session) psnr(ctx context.Context, n int, progress func(done int)) (float64, error) {
	index, err := data.Draw(s.cfg.Seed, min(n, s.set.Info().Len), s.set.Info().Len)
	if err != nil {
		return 0, err
	}
	var mse []float64
	for len(index) > 0 {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("evaluation: %w", err)
		}
		part := index[:min(evalBatch, len(index))]
		index = index[len(part):]
		_, e, err := s.reconstructions(part)
		if err != nil {
			return 0, err
		}
		mse = append(mse, e...)
		if progress != nil {
			progress(len(mse))
		}
	}
	return metric.MeanPSNR(mse), nil
}

// reconstructions reconstructs at most evalBatch images, padded with the first to a full batch so that one graph serves every call.
func (s *session) reconstructions(index []int) (images []byte, mse []float64, err error) {
	padded := append(make([]int, 0, evalBatch), index...)
	for len(padded) < evalBatch {
		padded = append(padded, index[0])
	}
	x, err := read(s.set, padded)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the evaluation set: %w", err)
	}
	y, mse, err := s.trainer.Reconstruct(x)
	if err != nil {
		return nil, nil, err
	}
	return y[:len(index)*len(x)/evalBatch], mse[:len(index)], nil
}

// sample writes an image of the run's sample images above their reconstructions.
func (s *session) sample() error {
	info := s.set.Info()
	index, err := data.Draw(s.cfg.Seed, min(sampleCount, info.Len), info.Len)
	if err != nil {
		return err
	}
	originals, err := read(s.set, index)
	if err != nil {
		return fmt.Errorf("reading the sample images: %w", err)
	}
	copies, _, err := s.reconstructions(index)
	if err != nil {
		return err
	}
	sheet := image.NewRGBA(image.Rect(0, 0, len(index)*info.W, 2*info.H))
	for i := range index {
		paste(sheet, originals, i, 0, info)
		paste(sheet, copies, i, info.H, info)
	}
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, sheet); err != nil {
		return fmt.Errorf("drawing the reconstructions of step %d: %w", s.status.Step, err)
	}
	return s.Folder.WriteSample(s.status.Step, encoded.Bytes())
}

// paste copies image i of a batch of bytes to column i of the sheet at row y.
func paste(sheet *image.RGBA, images []byte, i, y int, info data.Info) {
	src := images[i*info.H*info.W*info.C:]
	for row := range info.H {
		for col := range info.W {
			p := src[(row*info.W+col)*info.C:]
			at := sheet.PixOffset(i*info.W+col, y+row)
			for c := range 3 {
				sheet.Pix[at+c] = p[c%info.C]
			}
			sheet.Pix[at+3] = 255
		}
	}
}
