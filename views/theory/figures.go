package theory

import (
	"fmt"
	"math"
	"slices"

	"slotscope/model/measure/figure"
	"slotscope/model/paper/theory"
)

// figures draws each figure of the page by name.
var figures = map[string]func(e Sizes, points []Point) figure.Figure{
	"capacity": capacityFigure, "least-d": leastDFigure, "least-k": leastKFigure,
	"snr": snrFigure, "covariance": covarianceFigure, "correlation": correlationFigure,
}

// FigureNamed returns the drawing of a figure of the page; false if there is none of that name.
func FigureNamed(name string) (func(Sizes, []Point) figure.Figure, bool) {
	draw, ok := figures[name]
	return draw, ok
}

// Palette colours by role: theory, its second term, samples. Trained models use the following colours.
const (
	firstColor, secondColor, sampleColor = 0, 5, 7
)

var pointColors = []int{2, 3, 1, 4, 6, 8}

// slotTicks are the ticks of the slot axis.
var slotTicks = []float64{1, 2, 4, 8, 16, 32, 64}

func slotAxis() figure.Axis {
	return figure.Axis{Label: "slots m", Log: true, Range: Limits["m"], Ticks: slotTicks}
}

// overSlots computes a line over every m of the axis.
func overSlots(name string, color int, at func(m int) float64) figure.Line {
	l := figure.Line{Name: name, Color: color}
	for m := int(Limits["m"][0]); m <= int(Limits["m"][1]); m++ {
		l.X, l.Y = append(l.X, float64(m)), append(l.Y, at(m))
	}
	return l
}

// dots returns the points of trained models.
func dots(points []Point, at func(p Point) (x, y float64)) []figure.Dot {
	var all []figure.Dot
	for i, p := range points {
		if p.Why != "" {
			continue
		}
		if x, y := at(p); !math.IsNaN(y) && y > 0 {
			all = append(all, figure.Dot{X: x, Y: y, Label: p.Label, Color: pointColors[i%len(pointColors)]})
		}
	}
	return all
}

func capacityFigure(e Sizes, points []Point) figure.Figure {
	channel := overSlots("channel, m·d/2·log(1+1/m)", firstColor, func(m int) float64 { return theory.CapacityOf(m, e.D, e.K).Channel })
	codebook := overSlots("codebook, m·log k", secondColor, func(m int) float64 { return theory.CapacityOf(m, e.D, e.K).Codebook })
	possible := figure.Line{Color: sampleColor, X: channel.X, Low: make([]float64, len(channel.X))}
	for i := range channel.X {
		possible.High = append(possible.High, min(channel.Y[i], codebook.Y[i]))
	}
	return figure.LineChart{
		Name: "capacity", Title: fmt.Sprintf("Capacity at d = %d, k = %d", e.D, e.K), Width: 360, Height: 230,
		X: slotAxis(), Y: figure.Axis{Label: "information, nats"},
		Lines:      []figure.Line{possible, channel, codebook},
		References: []figure.Reference{{Vertical: true, At: float64(e.M), Label: fmt.Sprintf("m = %d", e.M)}, {At: e.Rate, Label: "R"}},
		Dots:       jointDots(points),
		Note:       "Shaded: allowed by the bound in the paper’s Gaussian model. A model’s dot is the joint entropy of its codes, H(c₁…c_m); ≥ marks a lower bound, “outside” a model above the channel term of its size.",
	}.Draw()
}

// jointDots returns the points of trained models at the joint entropy of their codes.
func jointDots(points []Point) []figure.Dot {
	marked := slices.Clone(points)
	for i, p := range marked {
		if p.Joint != nil && p.Joint.LowerBound {
			marked[i].Label = "≥ " + marked[i].Label
		}
		if p.outside() {
			marked[i].Label += ", outside"
		}
	}
	return dots(marked, func(p Point) (float64, float64) {
		if p.Joint == nil {
			return float64(p.Config.M), math.NaN()
		}
		return float64(p.Config.M), p.Joint.Nats
	})
}

func leastDFigure(e Sizes, points []Point) figure.Figure {
	return figure.LineChart{
		Name: "least-d", Title: fmt.Sprintf("Minimum dimension for R = %s nats", figure.Number(e.Rate)), Width: 360, Height: 160,
		X: slotAxis(), Y: figure.Axis{Label: "dimension d", Log: true},
		Lines:      []figure.Line{overSlots("minimum d", firstColor, func(m int) float64 { return theory.LeastD(e.Rate, m) })},
		References: []figure.Reference{{Vertical: true, At: float64(e.M)}, {At: float64(e.D), Label: fmt.Sprintf("d = %d", e.D)}},
		Dots:       dots(points, func(p Point) (float64, float64) { return float64(p.Config.M), float64(p.Config.D) }),
	}.Draw()
}

func leastKFigure(e Sizes, points []Point) figure.Figure {
	return figure.LineChart{
		Name: "least-k", Title: fmt.Sprintf("Minimum codebook for R = %s nats", figure.Number(e.Rate)), Width: 360, Height: 160,
		X: slotAxis(), Y: figure.Axis{Label: "entries k", Log: true},
		Lines:      []figure.Line{overSlots("minimum k", secondColor, func(m int) float64 { return theory.LeastK(e.Rate, m) })},
		References: []figure.Reference{{Vertical: true, At: float64(e.M)}, {At: float64(e.K), Label: fmt.Sprintf("k = %d", e.K)}},
		Dots:       dots(points, func(p Point) (float64, float64) { return float64(p.Config.M), float64(p.Config.K) }),
	}.Draw()
}

// sampleSNR measures the SNR over at least 128 retrievals.
func sampleSNR(m, d int, variance float64) theory.Sampled {
	return theory.SampleSNR(m, d, (127+m)/m, variance, 1)
}

func snrFigure(e Sizes, points []Point) figure.Figure {
	sampled := figure.Line{Name: fmt.Sprintf("sampled at d = %d, variance %s/d", e.D, figure.Number(e.Variance)), Color: sampleColor, Markers: true, Dashed: true}
	for _, m := range slotTicks {
		sampled.X, sampled.Y = append(sampled.X, m), append(sampled.Y, sampleSNR(int(m), e.D, e.Variance).SNR)
	}
	return figure.LineChart{
		Name: "snr", Title: "Signal and noise of a retrieval", Width: 360, Height: 230,
		X: slotAxis(), Y: figure.Axis{Label: "SNR", Log: true},
		Lines:      []figure.Line{overSlots("1/m", firstColor, theory.SNR), sampled},
		References: []figure.Reference{{Vertical: true, At: float64(e.M), Label: fmt.Sprintf("m = %d", e.M)}},
		Dots:       dots(points, func(p Point) (float64, float64) { return float64(p.Config.M), mean(p.Trained.SNR) }),
		Note:       "Samples have at least 128 retrievals. A model’s dot is the mean over its slots, retrieved from ẑ, the bundle of its codes.",
	}.Draw()
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v)) // NaN if empty
}

func covarianceFigure(e Sizes, points []Point) figure.Figure {
	frobenius := figure.Line{Name: "1/√d", Color: firstColor}
	order := figure.Line{Name: "log d / d", Color: secondColor}
	sampledF := figure.Line{Name: "‖Σᵢⱼ‖_F sampled", Color: firstColor, Markers: true, Dashed: true}
	sampledOp := figure.Line{Name: "‖Σᵢⱼ‖_op sampled", Color: secondColor, Markers: true, Dashed: true}
	slots := min(max(e.M, 2), 8)
	for d := 16.0; d <= 4096; d *= 2 {
		frobenius.X, frobenius.Y = append(frobenius.X, d), append(frobenius.Y, 1/math.Sqrt(d))
		order.X, order.Y = append(order.X, d), append(order.Y, math.Log(d)/d)
		p := theory.SamplePairs(slots, int(d), 2, 1)
		sampledF.X, sampledF.Y = append(sampledF.X, d), append(sampledF.Y, math.Sqrt(p.Frobenius2))
		sampledOp.X, sampledOp.Y = append(sampledOp.X, d), append(sampledOp.Y, p.Operator)
	}
	sampledF.Name, sampledOp.Name = "Frobenius, sampled", "operator, sampled"
	return figure.LineChart{
		Name: "covariance", Title: "How strongly two retrievals are correlated", Width: 360, Height: 230,
		X: figure.Axis{Label: "dimension d", Log: true, Ticks: []float64{16, 64, 256, 1024, 4096}}, Y: figure.Axis{Label: "norm of Σᵢⱼ for two slots", Log: true},
		Lines:      []figure.Line{frobenius, sampledF, order, sampledOp},
		References: []figure.Reference{{Vertical: true, At: float64(e.D), Label: fmt.Sprintf("d = %d", e.D)}},
		Dots:       dots(points, func(p Point) (float64, float64) { return float64(p.Config.D), math.Sqrt(p.Trained.Pair.Frobenius2) }),
		Note:       "A model’s dot is its mean Frobenius norm over pairs of slots.",
	}.Draw()
}

func correlationFigure(e Sizes, points []Point) figure.Figure {
	values := theory.Draw(e.M, e.D, 1)
	delta := theory.DeltaOf(values)
	exact := figure.Line{Name: "total correlation", Color: firstColor}
	bound := figure.Line{Name: "its bound", Color: secondColor}
	order := figure.Line{Name: "m²/(τ⁴d) = d/ρ²", Color: sampleColor, Dashed: true}
	channel := figure.Line{Name: "channel with this noise", Color: 2}
	for i := range 61 {
		ratio := math.Pow(10, -3+float64(i)/10)
		tau2 := theory.Tau2(e.M, e.D, ratio)
		exact.X, exact.Y = append(exact.X, ratio), append(exact.Y, theory.TotalCorrelation(values, tau2))
		order.X, order.Y = append(order.X, ratio), append(order.Y, theory.Order(e.M, e.D, tau2))
		channel.X, channel.Y = append(channel.X, ratio), append(channel.Y, theory.ChannelAt(e.M, e.D, ratio))
		if b := delta.Bound(tau2); !math.IsInf(b, 0) {
			bound.X, bound.Y = append(bound.X, ratio), append(bound.Y, b)
		}
	}
	references := []figure.Reference{{Vertical: true, At: e.Ratio, Label: "ρ"}}
	if one := theory.Ratio(e.M, e.D, 1); one < Limits["rho"][1] {
		references = append(references, figure.Reference{Vertical: true, At: one, Label: "τ = 1"})
	}
	return figure.LineChart{
		Name: "correlation", Title: fmt.Sprintf("Total correlation of the retrievals, m = %d, d = %d", e.M, e.D), Width: 360, Height: 230,
		X: figure.Axis{Label: "posterior floor ρ = τ²·d/m", Log: true, Range: Limits["rho"]}, Y: figure.Axis{Label: "nats", Log: true, Range: [2]float64{1e-4, 1e4}},
		Lines:      []figure.Line{order, channel, exact, bound},
		References: references,
		Dots:       dots(points, func(p Point) (float64, float64) { return e.Ratio, p.Trained.TotalCorrelation }),
		Note:       "For values drawn as HRR vectors. At ρ = 1 the floor equals the retrieval noise. The bound is drawn only where it is not trivial.",
	}.Draw()
}
