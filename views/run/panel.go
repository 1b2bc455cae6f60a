package run

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"slotscope/model"
	"slotscope/views"
)

// panels returns the charts of the series that the run's model measures, in display order.
func (v RunView) panels() []Panel {
	c := v.Run.Config
	if v.external() {
		return logged(v.Series)
	}
	return slices.Concat(decisive(c), measured(c), v.terms(), beside[c.Model], search(c), v.hardware(), statistics(c))
}

// atFirst is the number of charts of another program's run that start expanded.
const atFirst = 4

// logged returns the charts of a run that another program trained: one per series with points, under its logged name. Series about learning
// come before those about the machine and time.
func logged(series []string) []Panel {
	series = slices.Clone(series)
	slices.SortStableFunc(series, func(a, b string) int { return cmp.Compare(telling(a), telling(b)) })
	all := make([]Panel, len(series))
	for i, name := range series {
		all[i] = Panel{Title: name, Series: []string{name}, About: "As logged by the other program."}
		if i >= atFirst {
			all[i].Group = "More series"
		}
	}
	return all
}

// tells are words in series names, most informative about learning first.
var tells = [][]string{
	{"loss", "total", "elbo", "objective"},
	{"psnr", "infom", "accuracy", "acc", "score", "reward", "mse", "recon", "perplexity"},
	nil, // names without any of these words
	{"lr", "rate", "grad", "epoch", "step", "time", "timestamp", "runtime", "seconds"},
	{"system", "gpu", "cpu", "memory", "disk", "network"},
}

// telling returns the index in tells of the last listed word of name.
func telling(name string) int {
	place := slices.IndexFunc(tells, func(words []string) bool { return words == nil })
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if i := slices.IndexFunc(tells, func(words []string) bool { return slices.Contains(words, word) }); i >= 0 {
			place = i
		}
	}
	return place
}

// unlogged explains why a run that another program trained has no charts; "" if it has some.
func (v RunView) unlogged() string {
	switch {
	case !v.external() || len(v.Series) > 0:
		return ""
	case v.adopted():
		return "No curves: nothing was logged for this model. Scores and swaps are computed with the model itself."
	case v.Run.State.Ended():
		return "No curves: no points were logged."
	}
	return "No points yet. Reload this page once the first are logged."
}

// decisive returns the main charts, shown above all others: loss, code usage, PSNR and InfoM.
func decisive(c model.Config) []Panel {
	zero := 0.0
	use := Panel{Title: "Active latents", Unit: "of " + views.Count(c.M), Series: []string{"latent/active"}, Floor: &zero, About: "Latents whose mean varies by more than 0.01 within a batch."}
	if c.Discrete() {
		use = Panel{Title: "Perplexity", Unit: "of " + views.Count(c.Entries()),
			Series: []string{"perplexity/window", "perplexity/batch", "perplexity/used"},
			Labels: []string{"window", "batch", "used"}, Floor: &zero,
			About: "Effective number of entries in use, over a window of batches and in one batch, and the number used at least once in the window. A single batch under-reports."}
	}
	return []Panel{
		{Title: "Total loss", Unit: "weighted sum", Series: []string{"total"}, About: "The optimizer's objective: the weighted sum of all terms."},
		use,
		{Title: "PSNR", Unit: "dB", Series: []string{"psnr/eval"}, About: "Reconstructions against images, on a small fixed sample; the final evaluation uses the whole evaluation set."},
		{Title: "InfoM", Series: []string{"infom/eval"}, Floor: &zero, About: "Modularity of the slots on at most 2,000 images; 1 if each slot carries one factor only."},
	}
}

// measured returns the charts of disentanglement scores, measured every eval_every steps on at most 2,000 images.
func measured(c model.Config) []Panel {
	const group = "Disentanglement"
	zero := 0.0
	all := []Panel{
		{Group: group, Title: "InfoE and InfoC", Series: []string{"infoe/eval", "infoc/eval"}, Labels: []string{"InfoE", "InfoC"}, Floor: &zero,
			About: "On at most 2,000 images. With so few rows InfoE differs from the final evaluation; compare it only across steps."},
		{Group: group, Title: "Owned factors", Unit: "factors", Series: []string{"owned/factors"}, Floor: &zero,
			About: "Factors that own at least one slot: NMI ≥ 0.5, and at least 0.2 above the slot's second factor."},
	}
	if c.Model != "hrr" {
		return all
	}
	faith := func(names ...string) (series []string) {
		for _, name := range names {
			series = append(series, "faithfulness/"+name)
		}
		return series
	}
	return append(all,
		Panel{Group: group, Title: "HRR cosines", Series: faith("cos_bundle", "cos_retrieval", "cos_denoised"), Labels: []string{"ẑ", "ṽ", "v̄"},
			About: "Of z with the bundle ẑ of its own codes, and of retrievals ṽ and denoised retrievals v̄ with their entries. A true HRR has 1, 1/√(1+m) and 1."},
		Panel{Group: group, Title: "Codes recovered", Series: faith("reencode", "cleanup"), Labels: []string{"model", "plain"}, Floor: &zero,
			About: "Share of codes recovered unchanged from the bundle, by the model and by plain unbinding with the nearest entry. A true HRR has nearly 1."})
}

var reconstruction = Panel{Title: "Reconstruction", Unit: "nats per pixel and channel", Series: []string{"recon"}, About: "Binary cross-entropy of the logits."}

// ownTerms has the charts of each model's loss terms other than reconstruction.
var ownTerms = map[string][]Panel{
	"hrr": {
		{Title: "VQ", Unit: "squared distance", Series: []string{"vq"}, About: "From codebook entries to denoised retrievals."},
		{Title: "Commitment", Unit: "squared distance", Series: []string{"commit"}, About: "From denoised retrievals to their entries."},
		{Title: "Latent regularizer", Series: []string{"latent"}, About: "Deviation of z from norm² m and variance m/d."},
		{Title: "Value regularizer", Series: []string{"value"}, About: "Deviation of denoised retrievals from norm² 1 and variance 1/d."},
		{Title: "Codebook regularizer", Series: []string{"codebook"}, About: "Deviation of entries from norm² 1 and variance 1/d."},
		{Title: "Tie", Unit: "squared distance", Series: []string{"tie"}, About: "From z to the bundle of its own codes."},
		{Title: "Coherence", Unit: "squared cosine", Series: []string{"coherence"}, About: "Mean over pairs of distinct entries in use; random entries have 1/d."},
		{Title: "Orthogonality", Unit: "squared cosine", Series: []string{"orthogonality"}, About: "Mean over all pairs of entries, used or not."},
	},
	"vqvae": {
		{Title: "VQ", Unit: "squared distance per number", Series: []string{"vq"}, About: "From codebook entries to the parts of z assigned to them."},
		{Title: "Commitment", Unit: "squared distance per number", Series: []string{"commit"}, About: "From parts of z to their entries."},
		{Title: "Orthogonality", Unit: "squared cosine", Series: []string{"orthogonality"}, About: "Mean over all pairs of entries, used or not."},
	},
	"qlae": {
		{Title: "Quantization", Unit: "squared distance", Series: []string{"quantize"}, About: "From codebook values to the latents assigned to them."},
		{Title: "Commitment", Unit: "squared distance", Series: []string{"commit"}, About: "From latents to their values."},
	},
	"tripod": {
		{Title: "Multiinformation", Unit: "nats", Series: []string{"klm"}, About: "Dependence of the latents, by Gaussian kernels on the batch. Not 0 for independent latents."},
		{Title: "Hessian penalty", Series: []string{"nhp"}, About: "Share of mixed second derivatives of the decoder, summed over penalized layers."},
	},
	"betavae": {
		{Title: "Divergence", Unit: "nats per image", Series: []string{"kl"}, About: "KL of the posterior from N(0, I), summed over latents."},
	},
	"bioae": {
		{Title: "Nonnegativity", Series: []string{"nonneg"}, About: "Mean over latents and images of max(−z, 0)."},
		{Title: "Activity", Series: []string{"activity"}, About: "Mean over latents and images of z²."},
	},
	"factorvae": {
		{Title: "Divergence", Unit: "nats per image", Series: []string{"kl"}, About: "KL of the posterior from N(0, I), summed over latents."},
		{Title: "Total correlation", Unit: "nats per image", Series: []string{"tc"}, About: "As estimated by the discriminator: mean difference of its logits for joint samples."},
	},
	"annealedvae": {
		{Title: "Gap", Unit: "nats per image", Series: []string{"gap"}, About: "Distance between divergence and capacity."},
	},
	"dipvae1": dip("of the posterior means"),
	"dipvae2": dip("of samples from the posteriors"),
	"betatcvae": {
		{Title: "Mutual information", Unit: "nats per image", Series: []string{"mi"}, About: "Of image and latents; a batch of B images can show at most log B."},
		{Title: "Total correlation", Unit: "nats per image", Series: []string{"tc"}, About: "Dependence of the latents within a batch."},
		{Title: "Dimension-wise KL", Unit: "nats per image", Series: []string{"dwkl"}, About: "Of every latent from N(0, 1), summed over latents."},
	},
}

// beside has the charts of quantities in a model's objective that are not terms of its total.
var beside = map[string][]Panel{
	"factorvae": {
		{Group: "Discriminator", Title: "Loss", Unit: "nats", Series: []string{"discriminator"}, Target: new(math.Ln2), Aim: "chance", About: "Cross-entropy of classifying joint against permuted samples; log 2 at chance."},
		{Group: "Discriminator", Title: "Accuracy", Series: []string{"discriminator/accuracy"}, Target: new(0.5), Aim: "chance", About: "Share of joint and permuted samples classified correctly."},
		{Group: "Discriminator", Title: "Gradient norm", Series: []string{"discriminator/grad_norm"}, About: "Global norm; not clipped."},
	},
	"annealedvae": {
		{Group: "Capacity", Title: "Divergence", Unit: "nats per image", Series: []string{"kl", "kl/capacity"}, Labels: []string{"KL", "capacity"}, About: "KL of the posterior from N(0, I), and the capacity it is held at."},
	},
}

func dip(of string) []Panel {
	return []Panel{
		{Title: "Divergence", Unit: "nats per image", Series: []string{"kl"}, About: "KL of the posterior from N(0, I), summed over latents."},
		{Title: "Off-diagonal covariance", Series: []string{"offdiagonal"}, About: "Sum of squared covariances between latents, " + of + "."},
		{Title: "Variance", Series: []string{"diagonal"}, About: "Sum over latents of the squared distance of their variance from 1, " + of + "."},
	}
}

// weights returns the weight of each loss term. Divergences are also divided by the image's pixels times channels; see perPixel.
func weights(c model.Config) map[string]float64 {
	all := map[string]float64{"recon": c.LambdaRec, "vq": c.LambdaVQ, "quantize": c.LambdaVQ, "commit": c.LambdaCommit, "latent": c.LambdaLat, "value": c.LambdaVal,
		"codebook": c.LambdaCB, "tie": c.LambdaTie, "coherence": c.LambdaCoherence, "orthogonality": c.LambdaOrth, "kl": c.BetaKL, "mi": 1, "tc": c.BetaTC, "dwkl": 1,
		"nonneg": c.LambdaNonneg, "activity": c.LambdaActivity, "gap": c.GammaKL, "klm": c.LambdaKLM, "nhp": c.LambdaNHP, "offdiagonal": c.LambdaOD, "diagonal": c.LambdaD}
	if c.Model == "factorvae" {
		all["tc"] = c.GammaTC
	}
	return all
}

// perImage are the terms in nats per image; all others are means over pixels, channels or latents.
var perImage = []string{"kl", "mi", "tc", "dwkl", "gap", "offdiagonal", "diagonal"}

// terms returns the charts of the loss terms: first their weighted contributions in one chart, then each term unweighted. Terms of weight 0
// contribute nothing and are marked idle.
func (v RunView) terms() []Panel {
	const group = "Terms of the loss"
	c := v.Run.Config
	all := append([]Panel{reconstruction}, ownTerms[c.Model]...)
	zero := 0.0
	sum := Panel{Group: group, Title: "Weighted terms", Unit: "contribution to total", Floor: &zero, About: "Each term times its weight: its contribution to the total loss."}
	for i := range all {
		p := &all[i]
		p.Group = group
		name := p.Series[0]
		weight := weights(c)[name]
		p.Idle = weight == 0
		if p.Idle {
			continue
		}
		p.About += " Its weight is " + strconv.FormatFloat(weight, 'g', 4, 64) + "."
		sum.Series = append(sum.Series, name)
		sum.Labels = append(sum.Labels, p.Title)
		sum.Scale = append(sum.Scale, weight*v.perPixel(name))
	}
	if len(sum.Series) > 1 && !slices.Contains(sum.Scale, 0) {
		all = append([]Panel{sum}, all...)
	}
	return all
}

// perPixel returns the extra scale of a term: 1/(pixels · channels) for terms in nats per image, 0 if that number is unknown, otherwise 1.
func (v RunView) perPixel(term string) float64 {
	if !slices.Contains(perImage, term) {
		return 1
	}
	if v.Pixels == 0 {
		return 0
	}
	return 1 / float64(v.Pixels)
}

func search(c model.Config) []Panel {
	const group = "Speed and gradient"
	zero := 0.0
	var all []Panel
	grad := Panel{Group: group, Title: "Gradient norm", Unit: "before clipping", Series: []string{"grad_norm"}, About: "Global norm; above the dashed line, gradients are scaled down."}
	if c.Clip > 0 {
		grad.Target, grad.Aim = &c.Clip, "clip"
	}
	return append(all, grad,
		Panel{Group: group, Title: "Images per second", Unit: "images/s", Series: []string{"images_per_second"}, Floor: &zero, About: "Training images; pauses for checkpoints and evaluation are excluded."})
}

// statistics returns the charts of mean, variance and norm² of latents and codebook, with the model's targets.
func statistics(c model.Config) []Panel {
	switch {
	case c.Model == "hrr":
		m, d := float64(c.M), float64(c.D)
		return append(moments("latent", "Latent z", "Latent z against its targets", aim{m, "m"}, aim{m / d, "m/d"}, aim{0, "0"}),
			moments("codebook", "Codebook", "Codebook against its targets", aim{1, "1"}, aim{1 / d, "1/d"}, aim{0, "0"})...)
	case c.Variational():
		const group = "Means of the posteriors"
		zero := 0.0
		return append(moments("latent", "Means", group, aim{}, aim{}, aim{}),
			Panel{Group: group, Title: "Posterior variance", Series: []string{"latent/posterior_var"}, Target: new(1.0), Aim: "prior", Floor: &zero, About: "Mean over latents and images; a latent that stays at the prior carries no information."})
	}
	latent := moments("latent", "Latent z", "Latent z", aim{}, aim{}, aim{})
	if !c.Discrete() || c.Model == "tripod" { // Tripod's grid is fixed
		return latent
	}
	return append(latent, moments("codebook", "Codebook", "Codebook", aim{}, aim{}, aim{})...)
}

// aim is the target of a quantity and its label; the zero value means no target.
type aim struct {
	at   float64
	name string
}

func moments(prefix, title, group string, norm2, variance, mean aim) []Panel {
	panel := func(what, series string, to aim) Panel {
		p := Panel{Group: group, Title: title + ": " + what, Series: []string{prefix + series}}
		if to.name != "" {
			p.Target, p.Aim = &to.at, to.name
		}
		return p
	}
	return []Panel{panel("norm²", "/norm2", norm2), panel("variance", "/var", variance), panel("mean", "/mean", mean)}
}
