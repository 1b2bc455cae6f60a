package run

import (
	"slices"

	"slotscope/model"
	"slotscope/views"
)

// panels are the charts of a run, in the order of reading: those of the series that its model measures.
func (v RunView) panels() []Panel {
	c := v.Run.Config
	return slices.Concat(decisive, measured(c), termsOf(c.Model), search(c), v.hardware(), statistics(c))
}

var decisive = []Panel{
	{Title: "Total loss", Unit: "weighted sum", Series: []string{"total"}, Decides: true, About: "What the optimizer lowers: every term times its weight."},
	{Title: "PSNR", Unit: "dB", Series: []string{"psnr/eval"}, Decides: true, About: "Of reconstructions against the images, on a small fixed draw; the final evaluation uses the whole evaluation set."},
}

// measured are the charts of what the representation is worth, taken every eval_every steps from at most 2,000 images.
func measured(c model.Config) []Panel {
	const group = "Disentanglement while training"
	zero := 0.0
	all := []Panel{
		{Group: group, Title: "InfoMEC", Series: []string{"infom/eval", "infoe/eval", "infoc/eval"}, Labels: []string{"InfoM", "InfoE", "InfoC"}, Floor: &zero,
			About: "Of at most 2,000 images. With so few rows InfoE differs from the final evaluation's; compare it with itself."},
		{Group: group, Title: "Owned factors", Unit: "factors", Series: []string{"owned/factors"}, Floor: &zero,
			About: "Factors that own at least one slot: NMI of 0.5 or more, at least 0.2 above the slot's second factor."},
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
			About: "Between z and the bundle ẑ of its own codes, and of retrievals ṽ and denoised retrievals v̄ with the entries taken. A true HRR has 1, 1/√(1+m) and 1."},
		Panel{Group: group, Title: "Codes read back", Series: faith("reencode", "cleanup"), Labels: []string{"model", "plain"}, Floor: &zero,
			About: "Share of codes read back unchanged from the bundle: by the model, and by plain unbinding with the nearest entry. A true HRR has nearly 1."})
}

var reconstruction = Panel{Title: "Reconstruction", Unit: "nats per pixel and channel", Series: []string{"recon"}, About: "Binary cross-entropy of the logits."}

// terms are the charts of a model's loss, beside the reconstruction.
var terms = map[string][]Panel{
	"hrr": {
		{Title: "VQ", Unit: "squared distance", Series: []string{"vq"}, About: "From codebook entries to the denoised retrievals."},
		{Title: "Commitment", Unit: "squared distance", Series: []string{"commit"}, About: "From denoised retrievals to their entries."},
		{Title: "Latent regularizer", Series: []string{"latent"}, About: "How far z is from norm² m and variance m/d."},
		{Title: "Value regularizer", Series: []string{"value"}, About: "How far denoised retrievals are from norm² 1 and variance 1/d."},
		{Title: "Codebook regularizer", Series: []string{"codebook"}, About: "How far entries are from norm² 1 and variance 1/d."},
		{Title: "Tie", Unit: "squared distance", Series: []string{"tie"}, About: "From z to the bundle of its own codes."},
		{Title: "Coherence", Unit: "squared cosine", Series: []string{"coherence"}, About: "Mean over pairs of distinct entries in use; random entries have 1/d."},
	},
	"vqvae": {
		{Title: "VQ", Unit: "squared distance per number", Series: []string{"vq"}, About: "From codebook entries to the parts of z that took them."},
		{Title: "Commitment", Unit: "squared distance per number", Series: []string{"commit"}, About: "From parts of z to their entries."},
	},
	"qlae": {
		{Title: "Quantization", Unit: "squared distance", Series: []string{"quantize"}, About: "From codebook values to the latents that took them."},
		{Title: "Commitment", Unit: "squared distance", Series: []string{"commit"}, About: "From latents to their values."},
	},
	"betavae": {
		{Title: "Divergence", Unit: "nats per image", Series: []string{"kl"}, About: "KL of the posterior from N(0, I), summed over latents."},
	},
	"bioae": {
		{Title: "Nonnegativity", Series: []string{"nonneg"}, About: "Mean over latents and images of max(−z, 0)."},
		{Title: "Activity", Series: []string{"activity"}, About: "Mean over latents and images of z²."},
	},
	"betatcvae": {
		{Title: "Mutual information", Unit: "nats per image", Series: []string{"mi"}, About: "Of image and latents; a batch of B images shows log B at most."},
		{Title: "Total correlation", Unit: "nats per image", Series: []string{"tc"}, About: "How far the latents are from independent, within a batch."},
		{Title: "Dimension-wise KL", Unit: "nats per image", Series: []string{"dwkl"}, About: "Of every latent from N(0, 1), summed over latents."},
	},
}

func termsOf(name string) []Panel {
	all := append([]Panel{reconstruction}, terms[name]...)
	for i := range all {
		all[i].Group = "Terms of the loss"
	}
	return all
}

func search(c model.Config) []Panel {
	group, zero := "Speed", 0.0
	var all []Panel
	if c.Discrete() {
		group = "Codebook use and speed"
		all = append(all, Panel{Group: group, Title: "Perplexity", Unit: "of " + views.Count(c.Entries()),
			Series: []string{"perplexity/batch", "perplexity/window", "perplexity/used"},
			Labels: []string{"batch", "window", "used"}, Floor: &zero,
			About: "Entries in effective use: in one batch, over a window of batches, and the count used at least once there. One batch alone under-reports."})
	}
	grad := Panel{Group: group, Title: "Gradient norm", Unit: "before the clip", Series: []string{"grad_norm"}, About: "Global norm; above the dashed line the step is scaled down."}
	if c.Clip > 0 {
		grad.Target, grad.Aim = &c.Clip, "clip"
	}
	return append(all, grad,
		Panel{Group: group, Title: "Images per second", Unit: "images/s", Series: []string{"images_per_second"}, Floor: &zero, About: "Learned from; pauses for checkpoints and evaluation are not in it."})
}

// statistics are the charts of mean, variance and norm² of latents and codebook, with the targets that a model has for them.
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
			Panel{Group: group, Title: "Posterior variance", Series: []string{"latent/posterior_var"}, Target: new(1.0), Aim: "prior", Floor: &zero, About: "Mean over latents and images; a latent that stays at the prior says nothing."},
			Panel{Group: group, Title: "Active latents", Unit: "of " + views.Count(c.M), Series: []string{"latent/active"}, Floor: &zero, About: "Those whose mean varies by more than 0.01 within a batch."})
	}
	latent := moments("latent", "Latent z", "Latent z", aim{}, aim{}, aim{})
	if !c.Discrete() {
		return latent
	}
	return append(latent, moments("codebook", "Codebook", "Codebook", aim{}, aim{}, aim{})...)
}

// aim is where a quantity should go, and how that is called; the zero aim is none.
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
