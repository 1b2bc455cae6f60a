package evaluate

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/measure/metric"
)

// strengths are the signal-to-noise ratios that are tried, in dB (paper, “Robustness to noise”).
var strengths = []float64{20, 15, 10, 5, 0, -5, -10, -15, -20}

// noise adds Gaussian noise to z, before unbinding or quantizing, and looks at reconstructions and codes.
//
//	σ² = P / 10^(SNR/10)            P = mean z² over the evaluation set
func (e *evaluation) noise(ctx context.Context) error {
	count := min(e.o.Noise, len(e.index))
	if count <= 0 {
		return nil
	}
	e.scores.Noise = &model.Noise{Power: e.power, Images: count, Shown: e.index[:min(count, shownImages)]}
	points := make([]disturbance, len(strengths))
	for i := range points {
		points[i].flips = make([]int, e.net.m)
	}
	for done := 0; done < count; done += batchSize {
		rows := min(batchSize, count-done)
		pixels, err := e.read(ctx, e.index[done:done+rows])
		if err != nil {
			return err
		}
		for i, snr := range strengths {
			if err := e.disturb(ctx, pixels, done, rows, snr, &points[i]); err != nil {
				return err
			}
		}
		e.o.Progress("adding noise", "images", float64(done+rows), float64(count))
	}
	for i, p := range points {
		e.scores.Noise.Curve = append(e.scores.Noise.Curve, p.point(strengths[i], count, e.net.built.Discrete()))
	}
	return nil
}

// disturbance is what one strength of noise does.
type disturbance struct {
	psnr  []float64
	flips []int // [m] images whose code changes
}

// disturb adds noise to the latents of images done to done+rows. Every image and strength has its own noise, whatever is tried
// beside it.
func (e *evaluation) disturb(ctx context.Context, pixels []byte, done, rows int, snr float64, d *disturbance) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("evaluation: %w", err)
	}
	n, m := e.net.n, e.net.m
	z, noise := make([]float32, batchSize*n), make([]float32, batchSize*n)
	copy(z, e.z[done*n:(done+rows)*n])
	sigma := math.Sqrt(e.power / math.Pow(10, snr/10))
	for b := range rows {
		rng := e.random(forNoise, uint64(done+b)<<16|uint64(uint16(int16(snr))))
		for i := range n {
			noise[b*n+i] = float32(sigma * rng.NormFloat64())
		}
	}
	inputs := []any{e.net.images(pixels), tensors.FromFlatDataAndDimensions(z, batchSize, n), tensors.FromFlatDataAndDimensions(noise, batchSize, n)}
	return call("adding noise", e.net.disturbed, inputs, func(out []*tensors.Tensor) {
		for _, mse := range tensors.MustCopyFlatData[float32](out[1])[:rows] {
			d.psnr = append(d.psnr, metric.PSNR(float64(mse)))
		}
		if done == 0 {
			e.shown.add(out[2])
		}
		if e.slots.codes == nil {
			return
		}
		for at, code := range tensors.MustCopyFlatData[int32](out[0])[:rows*m] {
			if code != e.slots.codes[done*m+at] {
				d.flips[at%m]++
			}
		}
	})
}

func (d disturbance) point(snr float64, images int, discrete bool) model.NoisePoint {
	p := model.NoisePoint{SNR: snr, PSNR: meanInterval(d.psnr)}
	if discrete {
		for _, f := range d.flips {
			p.Flipped = append(p.Flipped, float64(f)/float64(images))
		}
	}
	return p
}
