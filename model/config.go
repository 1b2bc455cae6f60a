package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config is everything chosen before a run starts; a run stores it, and it decides the run up to rounding.
// Fields describes each of its numbers; dimensions are the paper's letters.
type Config struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`
	Preset  string `json:"preset"`
	Engine  string `json:"engine"`
	// Precision is what products are computed in: Float32, BF16, BF16x3, or empty for TF32, which is float32 where no GPU computes.
	Precision string `json:"precision,omitempty"`
	Steps     int    `json:"steps"`
	Batch     int    `json:"batch"`
	Seed      int64  `json:"seed"`

	Widths [4]int `json:"widths"` // channels of Conv 1..4; the decoder mirrors them
	FC     int    `json:"fc"`     // width of FC 1 and of the style vector
	D      int    `json:"d"`      // dimension d of HRR's latent and of every codebook entry
	M      int    `json:"m"`      // number of slots m
	K      int    `json:"k"`      // codes k that a slot can take

	LambdaRec    float64 `json:"lambda_rec"`
	LambdaVQ     float64 `json:"lambda_vq"`
	LambdaCommit float64 `json:"beta"`
	LambdaLat    float64 `json:"lambda_lat"`
	LambdaVal    float64 `json:"lambda_val"`
	LambdaCB     float64 `json:"lambda_cb"`

	LambdaTie       float64 `json:"lambda_tie,omitempty"`
	LambdaCoherence float64 `json:"lambda_coherence,omitempty"`

	LambdaOrth float64 `json:"lambda_orth,omitempty"`

	LambdaNonneg   float64 `json:"lambda_nonneg,omitempty"`   // of BioAE
	LambdaActivity float64 `json:"lambda_activity,omitempty"` // of BioAE

	BetaKL float64 `json:"beta_kl"` // β of β-VAE
	BetaTC float64 `json:"beta_tc"` // β of β-TCVAE

	GammaTC    float64 `json:"gamma_tc,omitempty"`    // γ of FactorVAE
	DiscWidth  int     `json:"disc_width,omitempty"`  // of the discriminator's hidden layers
	DiscLayers int     `json:"disc_layers,omitempty"` // hidden ones
	DiscLR     float64 `json:"disc_lr,omitempty"`     // as a multiple of LR
	DiscBeta1  float64 `json:"disc_beta1,omitempty"`
	DiscBeta2  float64 `json:"disc_beta2,omitempty"`

	GammaKL     float64 `json:"gamma_kl,omitempty"`     // γ of AnnealedVAE
	Capacity    float64 `json:"capacity,omitempty"`     // C_max of AnnealedVAE, nats per image
	AnnealSteps int     `json:"anneal_steps,omitempty"` // until Capacity is reached

	LambdaKLM  float64 `json:"lambda_klm,omitempty"` // of Tripod
	LambdaNHP  float64 `json:"lambda_nhp,omitempty"` // of Tripod
	Probes     int     `json:"probes,omitempty"`     // of each kind, for the Hessian penalty
	EpsilonNHP float64 `json:"epsilon_nhp,omitempty"`
	LayersNHP  string  `json:"layers_nhp,omitempty"` // names joined by commas; empty for LayersNHP

	LambdaOD float64 `json:"lambda_od,omitempty"` // of DIP-VAE
	LambdaD  float64 `json:"lambda_d,omitempty"`  // of DIP-VAE

	LR          float64 `json:"lr"`
	LRSchedule  string  `json:"lr_schedule,omitempty"` // "" (constant), Cosine or WSD
	CodebookLR  float64 `json:"codebook_lr"`           // as a multiple of LR
	Beta1       float64 `json:"beta1"`
	Beta2       float64 `json:"beta2"`
	Epsilon     float64 `json:"epsilon"`
	WeightDecay float64 `json:"weight_decay"`
	DecayLR     float64 `json:"decay_lr,omitempty"`      // rate that WeightDecay counts in; 0 for LR
	NoBiasDecay bool    `json:"no_bias_decay,omitempty"` // WeightDecay acts on kernels and matrices alone
	Clip        float64 `json:"clip"`                    // limit of the gradient; 0 for none
	ClipBy      string  `json:"clip_by,omitempty"`       // "" (the gradient's global norm) or "value"

	VQGradient   string  `json:"vq_gradient,omitempty"`   // how the gradient passes the quantizer: "" (straight through) or "rotation"
	EMADecay     float64 `json:"ema_decay,omitempty"`     // of free entries as running means; 0 where they learn by gradient
	ResetBelow   float64 `json:"reset_below,omitempty"`   // share of an even use below which free entries are replaced; 0 for never
	VQDistance   string  `json:"vq_distance,omitempty"`   // over d: "" (HRR's sum, VQ-VAE's mean), "sum" or "mean"
	CodebookInit string  `json:"codebook_init,omitempty"` // of VQ-VAE: "" for U(±1/k), or UnitNorm

	Binding        string `json:"binding,omitempty"` // "" (circular convolution), "random", "permutation" or "concat"
	Inverse        string `json:"inverse"`           // s†: "involution", "exact" or "unit" (symbols projected to unit magnitude)
	SymbolInit     string `json:"symbol_init"`       // "gaussian" or "unit" (Ganesan et al.'s unit-magnitude projection)
	StaticCodebook bool   `json:"static_codebook"`   // seeds and generator are not learned
	LearnSymbols   bool   `json:"learn_symbols"`     // symbols are learned
	NoDenoiser     bool   `json:"no_denoiser"`       // v̄ = ṽ
	FreeCodebook   bool   `json:"free_codebook"`     // entries are learned vectors, without a generator

	CheckpointEvery int `json:"checkpoint_every"` // steps
	SampleEvery     int `json:"sample_every"`     // steps between reconstructions of the fixed sample images
	EvalEvery       int `json:"eval_every"`       // steps between PSNR evaluations on a fixed draw
	EvalImages      int `json:"eval_images"`      // images of the evaluation set

	Evaluate string `json:"evaluate,omitempty"` // effort of the evaluation that follows a finished training: Quick, Full, or empty for none

	StopWhen string `json:"stop_when,omitempty"` // conditions, as ParseConditions reads them, that end the run early; empty for none
	BestBy   string `json:"best_by,omitempty"`   // which measurement chooses the checkpoint that is kept as the best; empty for none
}

// UnitNorm is the initialisation of VQ-VAE's entries from U(±√(3/d)): their expected squared norm is 1.
const UnitNorm = "unit-norm"

// LayersNHP are the outputs of the decoder that Tripod's Hessian penalty reads by default: the style and up.0, which its authors read
// too, are piecewise linear in z on this network, so that their quotient is that of two kinks.
const LayersNHP = "up.1,up.2"

// Schedules of the learning rate beside the constant one.
const (
	Cosine = "cosine" // from LR to 0 over all steps
	WSD    = "wsd"    // LR for four fifths of the steps, then straight to 0: warmup-stable-decay (Hu et al. 2024) without warmup
)

// Kind is how a field is typed in.
type Kind int

const (
	Int Kind = iota
	Float
	Bool
	Choice
	Widths // four widths joined by commas
	Text
)

// Field describes one entry of Config, once, for the form, the command line, the API, validation and reports.
type Field struct {
	Name   string // as in JSON and after --set
	Label  string
	Symbol string // the paper's, where it has one
	Unit   string
	Source string // where the default comes from
	Help   string // one sentence
	Group  string // one of Groups
	Kind   Kind

	Choices  []string // of a Choice
	Min, Max float64  // inclusive bounds of an Int or Float
	Above    bool     // the value must lie above Min, not on it

	Models []string // those that have it; empty for all

	zero      string // how the empty value of a Choice is typed
	baselines string // Source for the baselines, where it is another

	at func(*Config) any // pointer to the entry
}

// Groups are the headings under which fields are shown, in order.
var Groups = []string{"run", "network", "objective", "optimizer", "ablation", "cadence"}

const (
	noEvaluation = "none"
	noCondition  = "none"

	tabHyper = "paper, Table “Model hyperparameters”"
	tabOptim = "paper, Table “Optimizer hyperparameters”"
	tabArch  = "paper, Table “Architecture”"
	negative = "paper, “Negative results”"
	hsu      = "ours, after Hsu et al. 2023; the paper does not say"
	ours     = "ours"
)

var fields = []Field{
	{Name: "dataset", Label: "Dataset", Group: "run", Kind: Choice, Source: ours, Help: "Training images.", at: func(c *Config) any { return &c.Dataset }},
	{Name: "model", Label: "Model", Group: "run", Kind: Choice, Choices: ModelNames(), Source: ours, Help: "Which model: the paper's HRR, or a baseline.", at: func(c *Config) any { return &c.Model }},
	{Name: "preset", Label: "Preset", Group: "run", Kind: Choice, Choices: PresetNames(), Source: ours, Help: "Width of the network, tiny, small or paper; sets the defaults of all other entries.", at: func(c *Config) any { return &c.Preset }},
	{Name: "engine", Label: "Engine", Group: "run", Kind: Choice, Choices: EngineNames(), Source: ours, Help: "Compute engine; auto uses an NVIDIA GPU if there is one, else the CPU engine.", at: func(c *Config) any { return &c.Engine }},
	{Name: "precision", Label: "Precision", Group: "run", Kind: Choice, Choices: PrecisionNames(), zero: TF32, Source: ours + ", as PyTorch does in convolutions", Help: "Precision of matrix products. TF32 keeps 10 bits of fraction on a GPU and is several times as fast as float32; CPU engines use float32 instead. bf16 keeps 7 bits in encoder and decoder during training; all else is float32. CPU engines without fast products of bf16 round to it and compute in float32, which takes a little longer than float32. bf16x3 is for processors with AMX: while a model learns, a product is the sum of three in bf16, of about 16 bits; where that is not faster than float32, the run says so and stops.", at: func(c *Config) any { return &c.Precision }},
	{Name: "steps", Label: "Steps", Unit: "gradient steps", Group: "run", Kind: Int, Min: 1, Max: 1e8, Source: tabOptim, Help: "Number of training steps, one batch each.", at: func(c *Config) any { return &c.Steps }},
	{Name: "batch", Label: "Batch", Symbol: "B", Unit: "images", Group: "run", Kind: Int, Min: 1, Max: 65536, Source: tabOptim, Help: "Images per step.", at: func(c *Config) any { return &c.Batch }},
	{Name: "seed", Label: "Seed", Group: "run", Kind: Int, Min: 0, Max: math.MaxInt32, Source: ours, Help: "Sets symbols, initial weights and the order of the images.", at: func(c *Config) any { return &c.Seed }},

	{Name: "widths", Label: "Widths", Unit: "channels", Group: "network", Kind: Widths, Min: 1, Max: 4096, Source: tabArch, Help: "Channels of Conv 1 to 4; the decoder mirrors them.", at: func(c *Config) any { return &c.Widths }},
	{Name: "fc", Label: "Hidden width", Unit: "units", Group: "network", Kind: Int, Min: 1, Max: 16384, Source: tabArch, Help: "Width of FC 1 and of the style vector.", at: func(c *Config) any { return &c.FC }},
	{Name: "d", Label: "Latent dimension", Symbol: "d", Group: "network", Kind: Int, Min: 2, Max: 16384, Source: tabHyper, Help: "Length of every codebook entry, and in HRR of z and of every symbol.", Models: []string{"hrr", "vqvae"}, baselines: hsu, at: func(c *Config) any { return &c.D }},
	{Name: "m", Label: "Slots", Symbol: "m", Group: "network", Kind: Int, Min: 1, Max: 64, Source: tabHyper, Help: "Number of slots: symbol-value pairs in HRR, latents in the others.", at: func(c *Config) any { return &c.M }},
	{Name: "k", Label: "Codebook entries", Symbol: "k", Group: "network", Kind: Int, Min: 2, Max: 65536, Source: tabHyper, Help: "Codes that a slot can take.", Models: []string{"hrr", "vqvae", "qlae", "tripod"}, baselines: hsu, at: func(c *Config) any { return &c.K }},

	{Name: "disc_width", Label: "Discriminator width", Unit: "units", Group: "network", Kind: Int, Min: 1, Max: 16384, Source: studyCode, Help: "Width of each hidden layer of the discriminator.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscWidth }},
	{Name: "disc_layers", Label: "Discriminator layers", Group: "network", Kind: Int, Min: 1, Max: 32, Source: studyCode, Help: "Hidden layers of the discriminator; the paper's text also allows 5.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscLayers }},

	{Name: "lambda_rec", Label: "Reconstruction weight", Symbol: "λ_rec", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Weight of the binary cross-entropy per pixel and channel.", baselines: ours, at: func(c *Config) any { return &c.LambdaRec }},
	{Name: "lambda_vq", Label: "VQ weight", Symbol: "λ_vq", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls codebook entries to the values that took them.", Models: []string{"hrr", "vqvae", "qlae"}, baselines: hsu, at: func(c *Config) any { return &c.LambdaVQ }},
	{Name: "beta", Label: "Commitment cost", Symbol: "β", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls values to the entries that they took.", Models: []string{"hrr", "vqvae", "qlae"}, baselines: hsu, at: func(c *Config) any { return &c.LambdaCommit }},
	{Name: "lambda_lat", Label: "Latent regularizer", Symbol: "λ_lat", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls z to norm² m and variance m/d.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaLat }},
	{Name: "lambda_val", Label: "Value regularizer", Symbol: "λ_val", Group: "objective", Kind: Float, Max: 1e6, Source: "paper, Algorithm 2 (ties it to λ_lat; no table lists it)", Help: "Pulls denoised retrievals to norm² 1 and variance 1/d.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaVal }},
	{Name: "lambda_cb", Label: "Codebook regularizer", Symbol: "λ_cb", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls codebook entries to norm² 1 and variance 1/d.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaCB }},
	{Name: "lambda_tie", Label: "Tie weight", Symbol: "λ_tie", Group: "objective", Kind: Float, Max: 1e6, Source: ours + "; 0 is the paper's objective", Help: "Pulls z to the bundle of its own codes, without which the encoder's z need not be an HRR.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaTie }},
	{Name: "lambda_coherence", Label: "Coherence weight", Symbol: "λ_coh", Group: "objective", Kind: Float, Max: 1e6, Source: ours + "; 0 is the paper's objective", Help: "Pushes the codebook entries in use apart: mean squared cosine between distinct entries.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaCoherence }},
	{Name: "lambda_orth", Label: "Orthogonality weight", Symbol: "λ_orth", Group: "objective", Kind: Float, Max: 1e6, Source: "Shin et al. 2021; 0 is the paper's objective", Help: "Pushes all codebook entries apart: squared cosines between them, used or not.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.LambdaOrth }},
	{Name: "beta_kl", Label: "KL weight", Symbol: "β", Group: "objective", Kind: Float, Max: 1e6, Source: tabSelected, Help: "Weight of the divergence from N(0, I) per pixel and channel.", Models: []string{"betavae", "factorvae", "dipvae1", "dipvae2"}, at: func(c *Config) any { return &c.BetaKL }},
	{Name: "beta_tc", Label: "Total correlation weight", Symbol: "β", Group: "objective", Kind: Float, Max: 1e6, Source: tabSelected, Help: "Weight of the total correlation per pixel and channel; the other parts of the divergence weigh 1. Mutual information is estimated within the batch, at most log(batch) nats.", Models: []string{"betatcvae"}, at: func(c *Config) any { return &c.BetaTC }},

	{Name: "gamma_tc", Label: "Total correlation weight", Symbol: "γ", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of the total correlation, by the discriminator, per pixel and channel. The divergence holds it once more.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.GammaTC }},
	{Name: "gamma_kl", Label: "Capacity weight", Symbol: "γ", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of the distance between divergence and capacity, per pixel and channel.", Models: []string{"annealedvae"}, at: func(c *Config) any { return &c.GammaKL }},
	{Name: "capacity", Label: "Capacity", Symbol: "C_max", Unit: "nats per image", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Divergence that the capacity grows to, from 0.", Models: []string{"annealedvae"}, at: func(c *Config) any { return &c.Capacity }},
	{Name: "anneal_steps", Label: "Capacity grows for", Unit: "steps", Group: "objective", Kind: Int, Min: 1, Max: 1e8, Source: studyCode, Help: "Steps until the capacity is reached.", Models: []string{"annealedvae"}, at: func(c *Config) any { return &c.AnnealSteps }},
	{Name: "lambda_od", Label: "Off-diagonal weight", Symbol: "λ_od", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of squared covariances between latents, per pixel and channel.", Models: []string{"dipvae1", "dipvae2"}, at: func(c *Config) any { return &c.LambdaOD }},
	{Name: "lambda_d", Label: "Diagonal weight", Symbol: "λ_d", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of the squared distance of variances from 1, per pixel and channel.", Models: []string{"dipvae1", "dipvae2"}, at: func(c *Config) any { return &c.LambdaD }},
	{Name: "lambda_klm", Label: "Multiinformation weight", Symbol: "λ_klm", Group: "objective", Kind: Float, Max: 1e6, Source: tripodCode, Help: "Weight of the kernel-based latent multiinformation.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.LambdaKLM }},
	{Name: "lambda_nhp", Label: "Hessian penalty weight", Symbol: "λ_nhp", Group: "objective", Kind: Float, Max: 1e6, Source: tripodCode, Help: "Weight of the normalized Hessian penalty on the decoder.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.LambdaNHP }},
	{Name: "probes", Label: "Probes", Symbol: "p", Group: "objective", Kind: Int, Min: 2, Max: 64, Source: tripodCode, Help: "Rademacher probes of the Hessian penalty, and as many normal ones; each adds two passes through the decoder.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.Probes }},
	{Name: "epsilon_nhp", Label: "Probe length", Symbol: "ε", Unit: "standard deviations", Group: "objective", Kind: Float, Max: 100, Above: true, Source: tripodCode, Help: "How far second differences reach; shorter ones lose digits.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.EpsilonNHP }},
	{Name: "layers_nhp", Label: "Penalized layers", Group: "objective", Kind: Choice, Choices: []string{LayersNHP, "up.1,up.2,up.3", "style,up.0,up.1,up.2"}, zero: LayersNHP, Source: "ours: the style and up.0, which Hsu et al. 2024 read too, have no curvature on this network", Help: "Outputs of the decoder that the Hessian penalty reads. With style and up.0 its value is decided by kinks and training is unstable.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.LayersNHP }},
	{Name: "lambda_nonneg", Label: "Nonnegativity weight", Symbol: "λ_nn", Group: "objective", Kind: Float, Max: 1e6, Source: lqCode, Help: "Price of negative latents: mean of max(−z, 0).", Models: []string{"bioae"}, at: func(c *Config) any { return &c.LambdaNonneg }},
	{Name: "lambda_activity", Label: "Activity weight", Symbol: "λ_act", Group: "objective", Kind: Float, Max: 1e6, Source: lqCode, Help: "Price of activity: mean of z². Shrinking z and growing the decoder's weights evades it, so keep some weight decay.", Models: []string{"bioae"}, at: func(c *Config) any { return &c.LambdaActivity }},

	{Name: "lr", Label: "Learning rate", Symbol: "η", Group: "optimizer", Kind: Float, Max: 10, Above: true, Source: tabOptim, Help: "AdamW's step size.", at: func(c *Config) any { return &c.LR }},
	{Name: "lr_schedule", Label: "Learning rate schedule", Group: "optimizer", Kind: Choice, Choices: []string{"constant", Cosine, WSD}, zero: "constant", Source: "ours; the paper does not say", Help: "Constant; a cosine from the learning rate to 0 at the last step; or wsd, constant for four fifths of the steps, then linear to 0.", at: func(c *Config) any { return &c.LRSchedule }},
	{Name: "codebook_lr", Label: "Codebook rate", Symbol: "η_cb/η", Unit: "× η", Group: "optimizer", Kind: Float, Max: 1000, Source: tabHyper, Help: "Learning rate of the codebook (in HRR of seeds and generator), as a multiple of η.", Models: []string{"hrr", "vqvae", "qlae"}, baselines: "paper, “Experiments”: the same optimizer for every model", at: func(c *Config) any { return &c.CodebookLR }},
	{Name: "disc_lr", Label: "Discriminator rate", Symbol: "η_D/η", Unit: "× η", Group: "optimizer", Kind: Float, Max: 1000, Above: true, Source: studyCode, Help: "Learning rate of the discriminator, as a multiple of η. It has an optimizer of its own, without decay and clip.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscLR }},
	{Name: "disc_beta1", Label: "Discriminator's first moment", Group: "optimizer", Kind: Float, Max: 0.999999, Source: studyCode, Help: "Decay of the mean of gradients in the discriminator's optimizer.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscBeta1 }},
	{Name: "disc_beta2", Label: "Discriminator's second moment", Group: "optimizer", Kind: Float, Max: 0.999999, Source: studyCode, Help: "Decay of the mean of squared gradients in the discriminator's optimizer.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscBeta2 }},
	{Name: "beta1", Label: "First moment", Symbol: "β₁", Group: "optimizer", Kind: Float, Max: 0.999999, Source: tabOptim, Help: "Decay of AdamW's mean of gradients.", at: func(c *Config) any { return &c.Beta1 }},
	{Name: "beta2", Label: "Second moment", Symbol: "β₂", Group: "optimizer", Kind: Float, Max: 0.999999, Source: tabOptim, Help: "Decay of AdamW's mean of squared gradients.", at: func(c *Config) any { return &c.Beta2 }},
	{Name: "epsilon", Label: "Epsilon", Symbol: "ε", Group: "optimizer", Kind: Float, Max: 1, Above: true, Source: tabOptim, Help: "Keeps AdamW's quotient finite.", at: func(c *Config) any { return &c.Epsilon }},
	{Name: "weight_decay", Label: "Weight decay", Symbol: "wd", Group: "optimizer", Kind: Float, Max: 100, Source: tabHyper, Help: "AdamW's decoupled decay per unit of learning rate; it acts on encoder and decoder.", baselines: "ours", at: func(c *Config) any { return &c.WeightDecay }},
	{Name: "decay_lr", Label: "Rate of the weight decay", Symbol: "η_wd", Group: "optimizer", Kind: Float, Max: 10, Source: "ours: the paper's learning rate, at which it chose its weight decay", Help: "Each step shrinks weights by η_wd·wd, whatever the learning rate; 0 takes the learning rate, as PyTorch does.", at: func(c *Config) any { return &c.DecayLR }},
	{Name: "no_bias_decay", Label: "No decay of biases", Group: "optimizer", Kind: Bool, Source: "ours; the paper does not say, PyTorch decays all", Help: "Weight decay acts on kernels and matrices alone, not on biases and gains.", at: func(c *Config) any { return &c.NoBiasDecay }},
	{Name: "clip", Label: "Gradient clip", Group: "optimizer", Kind: Float, Max: 1e9, Source: tabOptim, Help: "Limit of the gradient, by clip_by; 0 for no clipping.", at: func(c *Config) any { return &c.Clip }},
	{Name: "clip_by", Label: "Clip by", Group: "optimizer", Kind: Choice, Choices: []string{"norm", "value"}, zero: "norm", Source: "ours; the paper does not say", Help: "The limit holds for the global norm of the gradient, or for each of its numbers.", at: func(c *Config) any { return &c.ClipBy }},

	{Name: "vq_gradient", Label: "Gradient through the quantizer", Group: "ablation", Kind: Choice, Choices: []string{"straight-through", "rotation"}, zero: "straight-through", Source: "paper; rotation: Fifty et al. 2024", Help: "Straight-through: the gradient passes unchanged. Rotation: it is rotated and rescaled as the value is to its entry.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.VQGradient }},
	{Name: "ema_decay", Label: "Moving codebook", Group: "ablation", Kind: Float, Max: 0.999999, Source: "van den Oord et al. 2017, appendix A.1: 0.99; 0 is the paper's", Help: "Entries are running means of the values that took them, of this decay, instead of learning by gradient; 0 for none. HRR: of a free codebook.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.EMADecay }},
	{Name: "reset_below", Label: "Reset unused entries below", Unit: "of an even use", Group: "ablation", Kind: Float, Max: 1, Source: "Zeghidour et al. 2021; 0 is the paper's", Help: "Entries whose running use falls below this share of an even use take a value of the batch; 0 for never. HRR: of a free codebook.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.ResetBelow }},
	{Name: "vq_distance", Label: "VQ distance", Group: "ablation", Kind: Choice, Choices: []string{"own", "sum", "mean"}, zero: "own", Source: "HRR: paper, Algorithm 2; VQ-VAE: its published code", Help: "Squared distances of VQ and commitment terms over the d components: summed, averaged, or as the model's own source has it (HRR sum, VQ-VAE mean).", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.VQDistance }},
	{Name: "codebook_init", Label: "Codebook initialisation", Group: "ablation", Kind: Choice, Choices: []string{UnitNorm, "one-over-k"}, zero: "one-over-k", Source: "Hsu et al. 2023, latent_quantization; the paper does not say", Help: "Entries from U(±√(3/d)), whose norm is about 1, or from U(±1/k), as VQ-VAE's first code.", Models: []string{"vqvae"}, at: func(c *Config) any { return &c.CodebookInit }},
	{Name: "binding", Label: "Binding", Group: "ablation", Kind: Choice, Choices: []string{"circular", "random", "permutation", "concat"}, zero: "circular", Source: "paper, “Preliminaries of HRR vectors”; the others are controls of ours", Help: "How a slot's value enters z: circular convolution with its symbol, a frozen Gaussian matrix, a frozen permutation, or components of its own.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.Binding }},
	{Name: "inverse", Label: "Inverse s†", Group: "ablation", Kind: Choice, Choices: []string{"involution", "exact"}, Source: "paper, Algorithm 1", Help: "How a symbol is unbound: by its involution or its exact inverse.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.Inverse }},
	{Name: "symbol_init", Label: "Symbol initialisation", Group: "ablation", Kind: Choice, Choices: []string{"gaussian", "unit"}, Source: negative, Help: "N(0, 1/d), or projected to unit magnitude in the frequency domain (Ganesan et al. 2021).", Models: []string{"hrr"}, at: func(c *Config) any { return &c.SymbolInit }},
	{Name: "static_codebook", Label: "Static codebook", Group: "ablation", Kind: Bool, Source: negative, Help: "The codebook keeps its initial value.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.StaticCodebook }},
	{Name: "learn_symbols", Label: "Learnable symbols", Group: "ablation", Kind: Bool, Source: negative, Help: "Symbols are learned rather than frozen.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LearnSymbols }},
	{Name: "no_denoiser", Label: "No denoiser", Group: "ablation", Kind: Bool, Source: negative, Help: "Retrievals are quantized as unbinding returns them.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.NoDenoiser }},
	{Name: "free_codebook", Label: "Free codebook", Group: "ablation", Kind: Bool, Source: negative, Help: "Entries are learned vectors, without a generator.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.FreeCodebook }},

	{Name: "checkpoint_every", Label: "Checkpoint every", Unit: "steps", Group: "cadence", Kind: Int, Min: 1, Max: 1e8, Source: ours, Help: "Steps between checkpoints: the most work a crash can cost.", at: func(c *Config) any { return &c.CheckpointEvery }},
	{Name: "sample_every", Label: "Reconstructions every", Unit: "steps", Group: "cadence", Kind: Int, Min: 1, Max: 1e8, Source: ours, Help: "Steps between reconstructions of the fixed sample images.", at: func(c *Config) any { return &c.SampleEvery }},
	{Name: "eval_every", Label: "Evaluate every", Unit: "steps", Group: "cadence", Kind: Int, Min: 1, Max: 1e8, Source: ours, Help: "Steps between measurements of PSNR and quick InfoMEC on a small fixed set.", at: func(c *Config) any { return &c.EvalEvery }},
	{Name: "eval_images", Label: "Evaluation set", Unit: "images", Group: "cadence", Kind: Int, Min: 1, Max: 1e6, Source: "as in Hsu et al. 2023", Help: "Images that evaluations use, drawn with the run's seed.", at: func(c *Config) any { return &c.EvalImages }},
	{Name: "evaluate", Label: "Evaluation at the end", Group: "cadence", Kind: Choice, Choices: []string{noEvaluation, Quick, Full}, zero: noEvaluation, Source: ours, Help: "Measures the run when it has finished. full takes about half a minute for tiny on two free cores, and a minute more for the first run on a dataset, to train the probe that reads swaps; its scores can be compared with other runs'. quick takes 2,000 images and less of all else; compare its scores with other quick ones.", at: func(c *Config) any { return &c.Evaluate }},
	{Name: "stop_when", Label: "Stop early when", Group: "cadence", Kind: Text, zero: noCondition, Source: ours, Help: "Ends the run as finished once a condition holds: diverging, collapsing, or a limit such as infom<0.3@5000, from step 5,000 on. Commas between several; none trains every step.", at: func(c *Config) any { return &c.StopWhen }},
	{Name: "best_by", Label: "Keep the best by", Group: "cadence", Kind: Choice, Choices: bestChoices(), zero: noCondition, Source: ours, Help: "Saves and keeps the checkpoint with the highest value so far, measured every eval_every steps. One evaluation of few images is noisy, so the best is likely a little luckier than it is good.", at: func(c *Config) any { return &c.BestBy }},
}

// Fields describes every entry of Config, in the order in which it is shown.
func Fields() []Field { return slices.Clone(fields) }

// FieldsOf are those that a model has.
func FieldsOf(modelName string) []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return !f.Of(modelName) })
}

// Of says whether a model has the entry.
func (f Field) Of(modelName string) bool {
	return len(f.Models) == 0 || slices.Contains(f.Models, modelName)
}

// FieldByName finds the description of one entry.
func FieldByName(name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Get returns the entry as it is typed in a form.
func (f Field) Get(c Config) string {
	switch p := f.at(&c).(type) {
	case *string:
		if *p == "" {
			return f.zero
		}
		return *p
	case *int:
		return strconv.Itoa(*p)
	case *int64:
		return strconv.FormatInt(*p, 10)
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64)
	case *bool:
		return strconv.FormatBool(*p)
	case *[4]int:
		return fmt.Sprintf("%d,%d,%d,%d", p[0], p[1], p[2], p[3])
	}
	panic("model: field " + f.Name + " has a type that Get does not know")
}

// Set reads text into the entry; the error is a sentence for the one who typed it. Bounds are Validate's.
func (f Field) Set(c *Config, text string) error {
	text = strings.TrimSpace(text)
	switch p := f.at(c).(type) {
	case *string:
		*p = text
		if text == f.zero {
			*p = ""
		}
	case *int:
		v, err := wholeNumber(text)
		if err != nil {
			return err
		}
		*p = int(v)
	case *int64:
		v, err := wholeNumber(text)
		if err != nil {
			return err
		}
		*p = v
	case *float64:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%q is not a number", text)
		}
		*p = v
	case *bool:
		switch strings.ToLower(text) {
		case "true", "on", "1", "yes":
			*p = true
		case "", "false", "off", "0", "no":
			*p = false
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case *[4]int:
		return setWidths(p, text)
	}
	return nil
}

func wholeNumber(text string) (int64, error) {
	if v, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64); err == nil {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a whole number", text)
}

func setWidths(p *[4]int, text string) error {
	parts := strings.Split(text, ",")
	if len(parts) != len(p) {
		return fmt.Errorf("%q does not list four widths, as 64,128,256,512 does", text)
	}
	var w [4]int
	for i, part := range parts {
		v, err := wholeNumber(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		w[i] = int(v)
	}
	*p = w
	return nil
}

// Set assigns one entry by name; the error names unknown names and unreadable values.
func (c *Config) Set(name, text string) error {
	f, ok := FieldByName(name)
	if !ok {
		return Invalid{name: "unknown hyperparameter"}
	}
	if err := f.Set(c, text); err != nil {
		return Invalid{name: err.Error()}
	}
	return nil
}

// Validate returns every problem by field, or nil. Whether the dataset exists and how large it is, its opener checks.
func (c Config) Validate() Invalid {
	bad, known := Invalid{}, slices.Contains(ModelNames(), c.Model)
	for _, f := range fields {
		switch why := f.check(f.at(&c)); {
		case !known && len(f.Models) > 0: // whose limits they are is not known
		case !f.Of(c.Model) && known:
			if f.Get(c) != f.Get(Config{}) {
				bad[f.Name] = fmt.Sprintf("is not a hyperparameter of %s; it belongs to %s", c.Model, strings.Join(f.Models, ", "))
			}
		case why != "":
			bad[f.Name] = why
		}
	}
	if _, err := ParseConditions(c.StopWhen); err != nil {
		bad["stop_when"] = err.Error()
	}
	if c.StaticCodebook && c.FreeCodebook && c.LambdaVQ > 0 && c.CodebookLR == 0 {
		bad["codebook_lr"] = "a free codebook with rate 0 is a static one; choose one of the two"
	}
	if c.Model == "hrr" && (!c.FreeCodebook || c.StaticCodebook) {
		for name, v := range map[string]float64{"ema_decay": c.EMADecay, "reset_below": c.ResetBelow} {
			if v > 0 && bad[name] == "" {
				bad[name] = "moves entries themselves, which a generator makes or nothing may change; set free_codebook to true and static_codebook to false"
			}
		}
	}
	if c.Model == "factorvae" && bad["batch"] == "" && (c.Batch < 4 || c.Batch%2 != 0) {
		bad["batch"] = fmt.Sprintf("FactorVAE permutes latents of one half of a batch for its discriminator; %d is not an even number from 4 on", c.Batch)
	}
	if c.Model == "tripod" && (c.Precision == BF16 || c.Precision == BF16x3) {
		bad["precision"] = "Tripod's second differences need more digits than products of bf16 have; choose float32"
	}
	if c.Model == "tripod" && bad["batch"] == "" && c.Batch < 2 {
		bad["batch"] = "Tripod measures how latents vary over a batch; 1 image does not vary, so choose at least 2"
	}
	if why := c.symbolless(); why != "" && bad["binding"] == "" {
		bad["binding"] = why
	}
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// symbolless says which option needs symbols where the binding has none; "" where all fit.
func (c Config) symbolless() string {
	if c.Binding == "" {
		return ""
	}
	switch {
	case c.Inverse == "exact":
		return fmt.Sprintf("%s binding has no symbols to invert; set inverse to involution (the transpose)", c.Binding)
	case c.SymbolInit == "unit":
		return fmt.Sprintf("%s binding has no symbols to initialise; set symbol_init to gaussian", c.Binding)
	case c.LearnSymbols:
		return fmt.Sprintf("%s binding has no symbols to learn; set learn_symbols to false", c.Binding)
	case c.Binding == "concat" && c.D < c.M:
		return fmt.Sprintf("concat binding needs at least one component per slot; d is %d and m is %d", c.D, c.M)
	}
	return ""
}

func (f Field) check(p any) string {
	switch p := p.(type) {
	case *string:
		if *p == "" && f.zero != "" {
			return ""
		}
		if len(f.Choices) > 0 && !slices.Contains(f.Choices, *p) {
			return fmt.Sprintf("%q is not one of %s", *p, strings.Join(f.Choices, ", "))
		}
		if *p == "" {
			return "choose one"
		}
	case *int:
		return f.inBounds(float64(*p))
	case *int64:
		return f.inBounds(float64(*p))
	case *float64:
		return f.inBounds(*p)
	case *[4]int:
		for _, w := range p {
			if why := f.inBounds(float64(w)); why != "" {
				return why
			}
		}
	}
	return ""
}

func (f Field) inBounds(v float64) string {
	show := func(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
	switch {
	case math.IsNaN(v):
		return "is not a number"
	case f.Above && v <= f.Min:
		return fmt.Sprintf("%s is not above %s", show(v), show(f.Min))
	case v < f.Min:
		return fmt.Sprintf("%s is below the minimum %s", show(v), show(f.Min))
	case v > f.Max:
		return fmt.Sprintf("%s is above the maximum %s", show(v), show(f.Max))
	}
	return ""
}

// Float is an Int or Float entry as a number; NaN for other kinds.
func (f Field) Float(c Config) float64 {
	switch p := f.at(&c).(type) {
	case *int:
		return float64(*p)
	case *int64:
		return float64(*p)
	case *float64:
		return *p
	}
	return math.NaN()
}
