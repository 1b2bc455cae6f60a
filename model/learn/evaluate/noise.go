package evaluate

import (
	"context"
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	store "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/measure/metric"
	"slotscope/model/paper/ae"
)

// strengths lists the signal-to-noise ratios to test, in dB (paper, “Robustness to noise”).
var strengths = []float64{20, 15, 10, 5, 0, -5, -10, -15, -20}

// Places where noise is added.
const (
	onLatent    = iota // on z, before retrieval or quantization
	onBundle           // on ẑ, decoded directly
	onCleanedUp        // on ẑ, cleaned up before decoding; models with codes only
)

// noise adds Gaussian noise to z and to ẑ, and measures changed codes, reconstructions and the probe's classes.
//
//	σ² = P / 10^(SNR/10)            P is mean z², or mean ẑ², over the evaluation set; E_s/N_0 = n·P / σ²
func (e *evaluation) noise(ctx context.Context) error {
	count := min(e.o.Noise, len(e.index))
	if count <= 0 || e.net.n == 0 {
		return nil
	}
	exec, err := e.disturbing()
	if err != nil {
		return err
	}
	defer exec.Finalize()
	places := []int{onLatent}
	if e.net.built != nil {
		places = append(places, onBundle)
	}
	if e.net.built != nil && e.slots.codes != nil {
		places = append(places, onCleanedUp)
	}
	points := make([][]disturbance, len(strengths)) // by strength and place
	for i := range points {
		for range places {
			points[i] = append(points[i], disturbance{flips: make([]int, e.net.m), right: make([]int, len(e.info.Factors))})
		}
	}
	for done := 0; done < count; done += batchSize {
		rows := min(batchSize, count-done)
		pixels, err := e.read(ctx, e.index[done:done+rows])
		if err != nil {
			return err
		}
		for i, snr := range strengths {
			if err := e.disturb(ctx, exec, pixels, done, rows, snr, points[i]); err != nil {
				return err
			}
		}
		e.o.Progress("adding noise", "images", float64(done+rows), float64(count))
	}
	e.scores.Noise = e.noiseOf(points, count)
	return nil
}

func (e *evaluation) noiseOf(points [][]disturbance, count int) *model.Noise {
	n := &model.Noise{
		Power: e.power, BundlePower: e.bundle, Components: e.net.n, Images: count, Shown: e.index[:min(count, shownImages)], Accuracy: e.probeReconstructions,
	}
	curves := []*[]model.NoisePoint{&n.Curve, &n.BundleRaw, &n.BundleClean}
	for i, at := range points {
		for place, d := range at {
			*curves[place] = append(*curves[place], e.point(d, place, strengths[i], count))
		}
	}
	return n
}

// disturbing returns the operation from images, z, slots, standard normal noise [B, n] and the two standard deviations to, for each place:
// slots [B, m], squared errors [B], reconstructions [B, H, W, C], and the classes that the probe reads [B, F], or the slots without a probe.
func (e *evaluation) disturbing() (exec operation, err error) {
	if e.net.adopted != nil {
		return asked(e.askDisturbed), nil
	}
	defer compute.Recovered("building the graph of noise", &err)
	n, m := e.net, e.net.model
	return store.NewExec(n.engine.Backend, n.store, func(_ *store.Context, in []*Node) (out []*Node) {
		images, z, slots, noise, onZ, onB := in[0], in[1], in[2], in[3], in[4], in[5]
		see := func(slots, logits *Node) {
			x := Sigmoid(logits)
			classes := slots
			if e.probe != nil {
				classes = e.probe.classes(x)
			}
			out = append(out, ConvertDType(slots, ae.SlotType(n.built)), meanSquare(x, ae.Unit(images)), x, classes)
		}
		noisy, logits := n.built.FromLatent(m, Add(z, Mul(noise, onZ)))
		see(noisy, logits)
		bundle := Add(n.built.Bundle(m, slots), Mul(noise, onB))
		see(slots, n.built.Render(m, bundle))
		if n.built.Discrete() {
			codes := e.cleanUp(bundle)
			see(codes, n.built.Decode(m, codes))
		}
		return out
	})
}

// cleanUp reads codes from a bundle by plain unbinding and the nearest entry; for baselines, by the nearest entry of each part.
func (e *evaluation) cleanUp(bundle *Node) *Node {
	n := e.net
	if h, ok := n.built.(*ae.HRR); ok {
		return h.CleanUp(n.model, bundle)
	}
	return n.built.Represent(n.model, n.built.Retrieve(n.model, bundle))
}

// disturbance accumulates the effect of one noise level at one place.
type disturbance struct {
	psnr  []float64
	flips []int // [m] images whose code changes
	right []int // [F] images whose factor the probe predicts correctly
}

// disturb adds noise to images done to done+rows. Every image and strength has its own noise, independent of what else is tested.
func (e *evaluation) disturb(ctx context.Context, exec operation, pixels []byte, done, rows int, snr float64, at []disturbance) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("evaluation: %w", err)
	}
	n := e.net.n
	z, noise := make([]float32, batchSize*n), make([]float32, batchSize*n)
	copy(z, e.z[done*n:(done+rows)*n])
	index := make([]int, rows)
	for b := range rows {
		rng := e.random(forNoise, uint64(done+b)<<16|uint64(uint16(int16(snr))))
		for i := range n {
			noise[b*n+i] = float32(rng.NormFloat64())
		}
		index[b] = done + b
	}
	sigma := func(power float64) float32 { return float32(math.Sqrt(power / math.Pow(10, snr/10))) }
	inputs := []any{
		e.net.images(pixels), tensors.FromFlatDataAndDimensions(z, batchSize, n), e.net.tensor(e.slots.take(index, e.net.m)),
		tensors.FromFlatDataAndDimensions(noise, batchSize, n), sigma(e.power), sigma(e.bundle),
	}
	return call("adding noise", exec, inputs, func(out []*tensors.Tensor) {
		if done == 0 {
			e.shown.add(out[2])
		}
		for place := range at {
			e.count(&at[place], out[4*place:4*place+4], done, rows)
		}
	})
}

// count adds the results of a batch at one place: slots, squared errors, reconstructions and classes.
func (e *evaluation) count(d *disturbance, out []*tensors.Tensor, done, rows int) {
	for _, mse := range tensors.MustCopyFlatData[float32](out[1])[:rows] {
		d.psnr = append(d.psnr, metric.PSNR(float64(mse)))
	}
	if e.slots.codes != nil {
		for at, code := range tensors.MustCopyFlatData[int32](out[0])[:rows*e.net.m] {
			if code != e.slots.codes[done*e.net.m+at] {
				d.flips[at%e.net.m]++
			}
		}
	}
	if e.probe == nil {
		return
	}
	f := len(d.right)
	for at, class := range tensors.MustCopyFlatData[int32](out[3])[:rows*f] {
		if int(class) == e.classes[done*f+at] {
			d.right[at%f]++
		}
	}
}

func (e *evaluation) point(d disturbance, place int, snr float64, images int) model.NoisePoint {
	p := model.NoisePoint{SNR: snr, EsN0: snr + 10*math.Log10(float64(e.net.n)), PSNR: meanInterval(d.psnr)}
	if e.slots.codes != nil && place != onBundle {
		p.Flipped = shares(d.flips, images)
	}
	if e.probe != nil {
		p.Accuracy = shares(d.right, images)
	}
	return p
}

func shares(counts []int, of int) []float64 {
	out := make([]float64, len(counts))
	for i, c := range counts {
		out[i] = float64(c) / float64(of)
	}
	return out
}
