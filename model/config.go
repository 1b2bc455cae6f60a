package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config holds every hyperparameter of a run. It is stored with the run and determines the run up to rounding.
// Fields describes each entry; dimensions use the paper's letters.
type Config struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`
	Preset  string `json:"preset"`
	Engine  string `json:"engine"`
	// Precision of matrix products: Float32, BF16, BF16x3, or empty for TF32, which means float32 on CPU engines.
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

	LambdaNonneg   float64 `json:"lambda_nonneg,omitempty"`   // BioAE
	LambdaActivity float64 `json:"lambda_activity,omitempty"` // BioAE

	BetaKL float64 `json:"beta_kl"` // β of β-VAE
	BetaTC float64 `json:"beta_tc"` // β of β-TCVAE

	GammaTC    float64 `json:"gamma_tc,omitempty"`    // γ of FactorVAE
	DiscWidth  int     `json:"disc_width,omitempty"`  // width of the discriminator's hidden layers
	DiscLayers int     `json:"disc_layers,omitempty"` // hidden layers of the discriminator
	DiscLR     float64 `json:"disc_lr,omitempty"`     // multiple of LR
	DiscBeta1  float64 `json:"disc_beta1,omitempty"`
	DiscBeta2  float64 `json:"disc_beta2,omitempty"`

	GammaKL     float64 `json:"gamma_kl,omitempty"`     // γ of AnnealedVAE
	Capacity    float64 `json:"capacity,omitempty"`     // C_max of AnnealedVAE, nats per image
	AnnealSteps int     `json:"anneal_steps,omitempty"` // steps until Capacity is reached

	LambdaKLM  float64 `json:"lambda_klm,omitempty"` // Tripod
	LambdaNHP  float64 `json:"lambda_nhp,omitempty"` // Tripod
	Probes     int     `json:"probes,omitempty"`     // number of each kind in the Hessian penalty
	EpsilonNHP float64 `json:"epsilon_nhp,omitempty"`
	LayersNHP  string  `json:"layers_nhp,omitempty"` // comma-separated names; empty for LayersNHP

	LambdaOD float64 `json:"lambda_od,omitempty"` // DIP-VAE
	LambdaD  float64 `json:"lambda_d,omitempty"`  // DIP-VAE

	LR          float64 `json:"lr"`
	LRSchedule  string  `json:"lr_schedule,omitempty"` // "" (constant), Cosine or WSD
	CodebookLR  float64 `json:"codebook_lr"`           // multiple of LR
	Beta1       float64 `json:"beta1"`
	Beta2       float64 `json:"beta2"`
	Epsilon     float64 `json:"epsilon"`
	WeightDecay float64 `json:"weight_decay"`
	DecayLR     float64 `json:"decay_lr,omitempty"`      // learning rate that WeightDecay is multiplied by; 0 for LR
	NoBiasDecay bool    `json:"no_bias_decay,omitempty"` // WeightDecay applies to kernels and matrices only
	Clip        float64 `json:"clip"`                    // gradient limit; 0 for no clipping
	ClipBy      string  `json:"clip_by,omitempty"`       // "" (the gradient's global norm) or "value"

	VQGradient   string  `json:"vq_gradient,omitempty"`   // gradient through the quantizer: "" (straight-through) or "rotation"
	EMADecay     float64 `json:"ema_decay,omitempty"`     // decay of free entries kept as moving averages; 0 if they learn by gradient
	ResetBelow   float64 `json:"reset_below,omitempty"`   // share of uniform use below which free entries are replaced; 0 for never
	VQDistance   string  `json:"vq_distance,omitempty"`   // reduction over d: "" (HRR's sum, VQ-VAE's mean), "sum" or "mean"
	CodebookInit string  `json:"codebook_init,omitempty"` // VQ-VAE: "" for U(±1/k), or UnitNorm

	Binding        string `json:"binding,omitempty"` // "" (circular convolution), "random", "permutation" or "concat"
	Inverse        string `json:"inverse"`           // s†: "involution" or "exact"
	SymbolInit     string `json:"symbol_init"`       // "gaussian" or "unit" (Ganesan et al.'s unit-magnitude projection)
	StaticCodebook bool   `json:"static_codebook"`   // seeds and generator are frozen
	LearnSymbols   bool   `json:"learn_symbols"`     // symbols are learned
	NoDenoiser     bool   `json:"no_denoiser"`       // v̄ = ṽ
	FreeCodebook   bool   `json:"free_codebook"`     // entries are learned vectors, without a generator

	CheckpointEvery int `json:"checkpoint_every"` // steps
	SampleEvery     int `json:"sample_every"`     // steps between reconstructions of the fixed sample images
	EvalEvery       int `json:"eval_every"`       // steps between PSNR evaluations on a fixed draw
	EvalImages      int `json:"eval_images"`      // images of the evaluation set

	Evaluate string `json:"evaluate,omitempty"` // effort of the evaluation after training: Quick, Full, or empty if none

	StopWhen string `json:"stop_when,omitempty"` // conditions that end the run early, parsed by ParseConditions; empty if none
	BestBy   string `json:"best_by,omitempty"`   // measurement that selects the best checkpoint; empty if none

	Resident      string `json:"resident,omitempty"`       // dataset in the engine's memory: Always, Never, or empty if it fits on a GPU
	StepsPerCall  int    `json:"steps_per_call,omitempty"` // steps that one call of the engine takes; 0 for the engine's default
	Devices       int    `json:"devices,omitempty"`        // devices that share every batch; 0 for one
	Deterministic bool   `json:"deterministic,omitempty"`  // a GPU repeats results bit for bit
}

// WithoutComputing returns the configuration without the fields of which Field.Computing is true. Two runs that are equal so learn the same.
func (c Config) WithoutComputing() Config {
	c.Engine, c.Resident, c.StepsPerCall, c.Devices, c.Deterministic = "", "", 0, 0, false
	return c
}

// Values of Resident.
const (
	Always = "always"
	Never  = "never"
)

// UnitNorm is the initialisation of VQ-VAE's entries from U(±√(3/d)): their expected squared norm is 1.
const UnitNorm = "unit-norm"

// LayersNHP lists the decoder outputs that Tripod's Hessian penalty reads by default. It omits style and up.0, which Tripod's authors
// also read: in this network both are piecewise linear in z, so their quotient would compare kinks only.
const LayersNHP = "up.1,up.2"

// Learning rate schedules other than constant.
const (
	Cosine = "cosine" // cosine from LR to 0 over all steps
	WSD    = "wsd"    // LR for 4/5 of the steps, then linear to 0: warmup-stable-decay (Hu et al. 2024) without warmup
)

// Kind is the input type of a field.
type Kind int

const (
	Int Kind = iota
	Float
	Bool
	Choice
	Widths // four comma-separated widths
	Text
)

// Field describes one entry of Config for the form, the command line, the API, validation and reports.
type Field struct {
	Name   string // as in JSON and after --set
	Label  string
	Symbol string // the paper's symbol, if it has one
	Unit   string
	Source string // where the default comes from
	Help   string // one sentence
	Group  string // one of Groups
	Kind   Kind

	Choices  []string // allowed values of a Choice
	Min, Max float64  // inclusive bounds of an Int or Float
	Above    bool     // Min is exclusive

	Models []string // models that have this field; empty for all

	zero      string // text for the empty value
	baselines string // Source for the baselines, if different

	at func(*Config) any // pointer to the entry
}

// Groups lists the headings of fields in display order.
var Groups = []string{"run", "network", "objective", "optimizer", "ablation", "cadence", "compute"}

const (
	noEvaluation = "none"
	noCondition  = "none"
	ifItFits     = "auto"

	tabHyper = "paper, Table “Model hyperparameters”"
	tabOptim = "paper, Table “Optimizer hyperparameters”"
	tabArch  = "paper, Table “Architecture”"
	negative = "paper, “Negative results”"
	hsu      = "ours, after Hsu et al. 2023; not specified in the paper"
	ours     = "ours"
)

var fields = []Field{
	{Name: "dataset", Label: "Dataset", Group: "run", Kind: Choice, Source: ours, Help: "Training images.", at: func(c *Config) any { return &c.Dataset }},
	{Name: "model", Label: "Model", Group: "run", Kind: Choice, Choices: ModelNames(), Source: ours, Help: "Model to train: the paper's HRR or a baseline.", at: func(c *Config) any { return &c.Model }},
	{Name: "preset", Label: "Preset", Group: "run", Kind: Choice, Choices: PresetNames(), Source: ours, Help: "Network width (tiny, small or paper); sets the defaults of all other hyperparameters.", at: func(c *Config) any { return &c.Preset }},
	{Name: "engine", Label: "Engine", Group: "run", Kind: Choice, Choices: EngineNames(), Source: ours, Help: "Compute engine; auto uses an NVIDIA GPU if available, otherwise the CPU engine.", at: func(c *Config) any { return &c.Engine }},
	{Name: "precision", Label: "Precision", Group: "run", Kind: Choice, Choices: PrecisionNames(), zero: TF32, Source: ours + ", as PyTorch does in convolutions", Help: "Precision of matrix products. tf32: 10-bit mantissa on a GPU; on a CPU bf16x3 during training if that is faster, otherwise float32. bf16: 7 bits in the autoencoder's convolutions and linear layers during training, faster on GPUs and on CPUs with AVX512_BF16 or AMX. bf16x3: three bf16 products for each float32 product, for CPUs with AMX.", at: func(c *Config) any { return &c.Precision }},
	{Name: "steps", Label: "Steps", Unit: "gradient steps", Group: "run", Kind: Int, Min: 1, Max: 1e8, Source: tabOptim, Help: "Number of training steps; each uses one batch.", at: func(c *Config) any { return &c.Steps }},
	{Name: "batch", Label: "Batch", Symbol: "B", Unit: "images", Group: "run", Kind: Int, Min: 1, Max: 65536, Source: tabOptim, Help: "Images per step.", at: func(c *Config) any { return &c.Batch }},
	{Name: "seed", Label: "Seed", Group: "run", Kind: Int, Min: 0, Max: math.MaxInt32, Source: ours, Help: "Determines the symbols, initial weights and image order.", at: func(c *Config) any { return &c.Seed }},

	{Name: "widths", Label: "Widths", Unit: "channels", Group: "network", Kind: Widths, Min: 1, Max: 4096, Source: tabArch, Help: "Channels of Conv 1 to 4; the decoder mirrors them.", at: func(c *Config) any { return &c.Widths }},
	{Name: "fc", Label: "Hidden width", Unit: "units", Group: "network", Kind: Int, Min: 1, Max: 16384, Source: tabArch, Help: "Width of FC 1 and of the style vector.", at: func(c *Config) any { return &c.FC }},
	{Name: "d", Label: "Latent dimension", Symbol: "d", Group: "network", Kind: Int, Min: 2, Max: 16384, Source: tabHyper, Help: "Length of each codebook entry; in HRR also of z and of each symbol.", Models: []string{"hrr", "vqvae"}, baselines: hsu, at: func(c *Config) any { return &c.D }},
	{Name: "m", Label: "Slots", Symbol: "m", Group: "network", Kind: Int, Min: 1, Max: 64, Source: tabHyper, Help: "Number of slots: symbol-value pairs in HRR, latents in the other models.", at: func(c *Config) any { return &c.M }},
	{Name: "k", Label: "Codebook entries", Symbol: "k", Group: "network", Kind: Int, Min: 2, Max: 65536, Source: tabHyper, Help: "Number of codes each slot can take.", Models: []string{"hrr", "vqvae", "qlae", "tripod"}, baselines: hsu, at: func(c *Config) any { return &c.K }},

	{Name: "disc_width", Label: "Discriminator width", Unit: "units", Group: "network", Kind: Int, Min: 1, Max: 16384, Source: studyCode, Help: "Width of each hidden layer of the discriminator.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscWidth }},
	{Name: "disc_layers", Label: "Discriminator layers", Group: "network", Kind: Int, Min: 1, Max: 32, Source: studyCode, Help: "Hidden layers of the discriminator; the paper's text also allows 5.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscLayers }},

	{Name: "lambda_rec", Label: "Reconstruction weight", Symbol: "λ_rec", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Weight of the binary cross-entropy per pixel and channel.", baselines: ours, at: func(c *Config) any { return &c.LambdaRec }},
	{Name: "lambda_vq", Label: "VQ weight", Symbol: "λ_vq", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls codebook entries toward the values assigned to them.", Models: []string{"hrr", "vqvae", "qlae"}, baselines: hsu, at: func(c *Config) any { return &c.LambdaVQ }},
	{Name: "beta", Label: "Commitment cost", Symbol: "β", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls values toward their assigned codebook entries.", Models: []string{"hrr", "vqvae", "qlae"}, baselines: hsu, at: func(c *Config) any { return &c.LambdaCommit }},
	{Name: "lambda_lat", Label: "Latent regularizer", Symbol: "λ_lat", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls z toward squared norm m and variance m/d.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaLat }},
	{Name: "lambda_val", Label: "Value regularizer", Symbol: "λ_val", Group: "objective", Kind: Float, Max: 1e6, Source: "paper, Algorithm 2 (tied to λ_lat; not listed in any table)", Help: "Pulls denoised retrievals toward squared norm 1 and variance 1/d.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaVal }},
	{Name: "lambda_cb", Label: "Codebook regularizer", Symbol: "λ_cb", Group: "objective", Kind: Float, Max: 1e6, Source: tabHyper, Help: "Pulls codebook entries toward squared norm 1 and variance 1/d.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaCB }},
	{Name: "lambda_tie", Label: "Tie weight", Symbol: "λ_tie", Group: "objective", Kind: Float, Max: 1e6, Source: ours + "; 0 is the paper's objective", Help: "Pulls z toward the bundle of its own codes; without it, the encoder's z need not be an HRR.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaTie }},
	{Name: "lambda_coherence", Label: "Coherence weight", Symbol: "λ_coh", Group: "objective", Kind: Float, Max: 1e6, Source: ours + "; 0 is the paper's objective", Help: "Pushes codebook entries in use apart: mean squared cosine between distinct entries.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LambdaCoherence }},
	{Name: "lambda_orth", Label: "Orthogonality weight", Symbol: "λ_orth", Group: "objective", Kind: Float, Max: 1e6, Source: "Shin et al. 2021; 0 is the paper's objective", Help: "Pushes all codebook entries apart, used or not: squared cosines between them.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.LambdaOrth }},
	{Name: "beta_kl", Label: "KL weight", Symbol: "β", Group: "objective", Kind: Float, Max: 1e6, Source: tabSelected, Help: "Weight of the KL divergence from N(0, I), per pixel and channel.", Models: []string{"betavae", "factorvae", "dipvae1", "dipvae2"}, at: func(c *Config) any { return &c.BetaKL }},
	{Name: "beta_tc", Label: "Total correlation weight", Symbol: "β", Group: "objective", Kind: Float, Max: 1e6, Source: tabSelected, Help: "Weight of the total correlation, per pixel and channel; the other parts of the KL divergence have weight 1. Mutual information is estimated within the batch, so it is at most log(batch) nats.", Models: []string{"betatcvae"}, at: func(c *Config) any { return &c.BetaTC }},

	{Name: "gamma_tc", Label: "Total correlation weight", Symbol: "γ", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of the total correlation estimated by the discriminator, per pixel and channel. The KL divergence includes it once more.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.GammaTC }},
	{Name: "gamma_kl", Label: "Capacity weight", Symbol: "γ", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of the distance between KL divergence and capacity, per pixel and channel.", Models: []string{"annealedvae"}, at: func(c *Config) any { return &c.GammaKL }},
	{Name: "capacity", Label: "Capacity", Symbol: "C_max", Unit: "nats per image", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Final capacity (target KL divergence); it grows linearly from 0.", Models: []string{"annealedvae"}, at: func(c *Config) any { return &c.Capacity }},
	{Name: "anneal_steps", Label: "Annealing steps", Unit: "steps", Group: "objective", Kind: Int, Min: 1, Max: 1e8, Source: studyCode, Help: "Steps until the capacity reaches its final value.", Models: []string{"annealedvae"}, at: func(c *Config) any { return &c.AnnealSteps }},
	{Name: "lambda_od", Label: "Off-diagonal weight", Symbol: "λ_od", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of squared covariances between latents, per pixel and channel.", Models: []string{"dipvae1", "dipvae2"}, at: func(c *Config) any { return &c.LambdaOD }},
	{Name: "lambda_d", Label: "Diagonal weight", Symbol: "λ_d", Group: "objective", Kind: Float, Max: 1e6, Source: studyCode, Help: "Weight of the squared difference between variances and 1, per pixel and channel.", Models: []string{"dipvae1", "dipvae2"}, at: func(c *Config) any { return &c.LambdaD }},
	{Name: "lambda_klm", Label: "Multiinformation weight", Symbol: "λ_klm", Group: "objective", Kind: Float, Max: 1e6, Source: tripodCode, Help: "Weight of the kernel-based latent multiinformation.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.LambdaKLM }},
	{Name: "lambda_nhp", Label: "Hessian penalty weight", Symbol: "λ_nhp", Group: "objective", Kind: Float, Max: 1e6, Source: tripodCode, Help: "Weight of the normalized Hessian penalty on the decoder.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.LambdaNHP }},
	{Name: "probes", Label: "Probes", Symbol: "p", Group: "objective", Kind: Int, Min: 2, Max: 64, Source: tripodCode, Help: "Number of Rademacher probes in the Hessian penalty, and of Gaussian ones; each adds two decoder passes.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.Probes }},
	{Name: "epsilon_nhp", Label: "Probe length", Symbol: "ε", Unit: "standard deviations", Group: "objective", Kind: Float, Max: 100, Above: true, Source: tripodCode, Help: "Step length of the second differences; shorter steps lose precision.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.EpsilonNHP }},
	{Name: "layers_nhp", Label: "Penalized layers", Group: "objective", Kind: Choice, Choices: []string{LayersNHP, "up.1,up.2,up.3", "style,up.0,up.1,up.2"}, zero: LayersNHP, Source: "ours; Hsu et al. 2024 also read style and up.0, which have no curvature in this network", Help: "Decoder outputs that the Hessian penalty reads. With style and up.0, kinks dominate its value and training is unstable.", Models: []string{"tripod"}, at: func(c *Config) any { return &c.LayersNHP }},
	{Name: "lambda_nonneg", Label: "Nonnegativity weight", Symbol: "λ_nn", Group: "objective", Kind: Float, Max: 1e6, Source: lqCode, Help: "Penalty on negative latents: mean of max(−z, 0).", Models: []string{"bioae"}, at: func(c *Config) any { return &c.LambdaNonneg }},
	{Name: "lambda_activity", Label: "Activity weight", Symbol: "λ_act", Group: "objective", Kind: Float, Max: 1e6, Source: lqCode, Help: "Penalty on activity: mean of z². A model can evade it by shrinking z and growing the decoder's weights, so keep some weight decay.", Models: []string{"bioae"}, at: func(c *Config) any { return &c.LambdaActivity }},

	{Name: "lr", Label: "Learning rate", Symbol: "η", Group: "optimizer", Kind: Float, Max: 10, Above: true, Source: tabOptim, Help: "AdamW's step size.", at: func(c *Config) any { return &c.LR }},
	{Name: "lr_schedule", Label: "Learning rate schedule", Group: "optimizer", Kind: Choice, Choices: []string{"constant", Cosine, WSD}, zero: "constant", Source: "ours; not specified in the paper", Help: "constant; cosine, from the learning rate to 0 at the last step; or wsd, constant for 4/5 of the steps, then linear to 0.", at: func(c *Config) any { return &c.LRSchedule }},
	{Name: "codebook_lr", Label: "Codebook learning rate", Symbol: "η_cb/η", Unit: "× η", Group: "optimizer", Kind: Float, Max: 1000, Source: tabHyper, Help: "Learning rate of the codebook (in HRR, of seeds and generator), as a multiple of η.", Models: []string{"hrr", "vqvae", "qlae"}, baselines: "paper, “Experiments”: same optimizer for every model", at: func(c *Config) any { return &c.CodebookLR }},
	{Name: "disc_lr", Label: "Discriminator learning rate", Symbol: "η_D/η", Unit: "× η", Group: "optimizer", Kind: Float, Max: 1000, Above: true, Source: studyCode, Help: "Learning rate of the discriminator, as a multiple of η. Its optimizer is separate, without weight decay or clipping.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscLR }},
	{Name: "disc_beta1", Label: "Discriminator first moment", Group: "optimizer", Kind: Float, Max: 0.999999, Source: studyCode, Help: "Decay of the gradient mean in the discriminator's optimizer.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscBeta1 }},
	{Name: "disc_beta2", Label: "Discriminator second moment", Group: "optimizer", Kind: Float, Max: 0.999999, Source: studyCode, Help: "Decay of the squared-gradient mean in the discriminator's optimizer.", Models: []string{"factorvae"}, at: func(c *Config) any { return &c.DiscBeta2 }},
	{Name: "beta1", Label: "First moment", Symbol: "β₁", Group: "optimizer", Kind: Float, Max: 0.999999, Source: tabOptim, Help: "Decay of AdamW's gradient mean.", at: func(c *Config) any { return &c.Beta1 }},
	{Name: "beta2", Label: "Second moment", Symbol: "β₂", Group: "optimizer", Kind: Float, Max: 0.999999, Source: tabOptim, Help: "Decay of AdamW's squared-gradient mean.", at: func(c *Config) any { return &c.Beta2 }},
	{Name: "epsilon", Label: "Epsilon", Symbol: "ε", Group: "optimizer", Kind: Float, Max: 1, Above: true, Source: tabOptim, Help: "Added to AdamW's denominator to keep updates finite.", at: func(c *Config) any { return &c.Epsilon }},
	{Name: "weight_decay", Label: "Weight decay", Symbol: "wd", Group: "optimizer", Kind: Float, Max: 100, Source: tabHyper, Help: "AdamW's decoupled weight decay, per unit of learning rate; applies to the encoder and decoder.", baselines: "ours", at: func(c *Config) any { return &c.WeightDecay }},
	{Name: "decay_lr", Label: "Weight decay rate", Symbol: "η_wd", Group: "optimizer", Kind: Float, Max: 10, Source: "ours: the paper's learning rate, for which it selected the weight decay", Help: "Each step shrinks weights by η_wd·wd, independent of the learning rate; 0 uses the learning rate, as PyTorch does.", at: func(c *Config) any { return &c.DecayLR }},
	{Name: "no_bias_decay", Label: "No bias decay", Group: "optimizer", Kind: Bool, Source: "ours; not specified in the paper, PyTorch decays all", Help: "Applies weight decay to kernels and matrices only, not to biases and gains.", at: func(c *Config) any { return &c.NoBiasDecay }},
	{Name: "clip", Label: "Gradient clip", Group: "optimizer", Kind: Float, Max: 1e9, Source: tabOptim, Help: "Gradient limit, applied as set by clip_by; 0 disables clipping.", at: func(c *Config) any { return &c.Clip }},
	{Name: "clip_by", Label: "Clip by", Group: "optimizer", Kind: Choice, Choices: []string{"norm", "value"}, zero: "norm", Source: "ours; not specified in the paper", Help: "norm limits the gradient's global norm; value limits each component.", at: func(c *Config) any { return &c.ClipBy }},

	{Name: "vq_gradient", Label: "Quantizer gradient", Group: "ablation", Kind: Choice, Choices: []string{"straight-through", "rotation"}, zero: "straight-through", Source: "paper; rotation: Fifty et al. 2024", Help: "straight-through passes the gradient unchanged; rotation rotates and rescales it by the transform that maps the value to its entry.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.VQGradient }},
	{Name: "ema_decay", Label: "EMA codebook decay", Group: "ablation", Kind: Float, Max: 0.999999, Source: "van den Oord et al. 2017, appendix A.1: 0.99; 0 in the paper", Help: "Makes entries moving averages, with this decay, of the values assigned to them, instead of learning them by gradient; 0 disables it. HRR: free codebook only.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.EMADecay }},
	{Name: "reset_below", Label: "Reset unused entries below", Unit: "of uniform use", Group: "ablation", Kind: Float, Max: 1, Source: "Zeghidour et al. 2021; 0 in the paper", Help: "Replaces entries whose running use falls below this share of uniform use with a value from the batch; 0 disables it. HRR: free codebook only.", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.ResetBelow }},
	{Name: "vq_distance", Label: "VQ distance", Group: "ablation", Kind: Choice, Choices: []string{"own", "sum", "mean"}, zero: "own", Source: "HRR: paper, Algorithm 2; VQ-VAE: its published code", Help: "How the VQ and commitment terms combine squared distances over the d components: sum, mean, or own, as in the model's source (HRR sum, VQ-VAE mean).", Models: []string{"hrr", "vqvae"}, at: func(c *Config) any { return &c.VQDistance }},
	{Name: "codebook_init", Label: "Codebook initialisation", Group: "ablation", Kind: Choice, Choices: []string{UnitNorm, "one-over-k"}, zero: "one-over-k", Source: "Hsu et al. 2023, latent_quantization; not specified in the paper", Help: "unit-norm draws entries from U(±√(3/d)), with norm about 1; one-over-k draws them from U(±1/k), as in the first VQ-VAE code.", Models: []string{"vqvae"}, at: func(c *Config) any { return &c.CodebookInit }},
	{Name: "binding", Label: "Binding", Group: "ablation", Kind: Choice, Choices: []string{"circular", "random", "permutation", "concat"}, zero: "circular", Source: "paper, “Preliminaries of HRR vectors”; the others are our controls", Help: "How a slot's value enters z: circular convolution with its symbol, a frozen Gaussian matrix, a frozen permutation, or its own components of z.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.Binding }},
	{Name: "inverse", Label: "Inverse s†", Group: "ablation", Kind: Choice, Choices: []string{"involution", "exact"}, Source: "paper, Algorithm 1", Help: "How a symbol is unbound: with its involution or its exact inverse.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.Inverse }},
	{Name: "symbol_init", Label: "Symbol initialisation", Group: "ablation", Kind: Choice, Choices: []string{"gaussian", "unit"}, Source: negative, Help: "N(0, 1/d), or projected to unit magnitude in the frequency domain (Ganesan et al. 2021).", Models: []string{"hrr"}, at: func(c *Config) any { return &c.SymbolInit }},
	{Name: "static_codebook", Label: "Static codebook", Group: "ablation", Kind: Bool, Source: negative, Help: "Freezes the codebook at its initial value.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.StaticCodebook }},
	{Name: "learn_symbols", Label: "Learnable symbols", Group: "ablation", Kind: Bool, Source: negative, Help: "Learns the symbols instead of freezing them.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.LearnSymbols }},
	{Name: "no_denoiser", Label: "No denoiser", Group: "ablation", Kind: Bool, Source: negative, Help: "Quantizes retrievals directly, without denoising.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.NoDenoiser }},
	{Name: "free_codebook", Label: "Free codebook", Group: "ablation", Kind: Bool, Source: negative, Help: "Learns entries as free vectors, without a generator.", Models: []string{"hrr"}, at: func(c *Config) any { return &c.FreeCodebook }},

	{Name: "checkpoint_every", Label: "Checkpoint every", Unit: "steps", Group: "cadence", Kind: Int, Min: 1, Max: 1e8, Source: ours, Help: "Steps between checkpoints; a crash loses at most this many.", at: func(c *Config) any { return &c.CheckpointEvery }},
	{Name: "sample_every", Label: "Reconstructions every", Unit: "steps", Group: "cadence", Kind: Int, Min: 1, Max: 1e8, Source: ours, Help: "Steps between reconstructions of the fixed sample images.", at: func(c *Config) any { return &c.SampleEvery }},
	{Name: "eval_every", Label: "Evaluate every", Unit: "steps", Group: "cadence", Kind: Int, Min: 1, Max: 1e8, Source: ours, Help: "Steps between measurements of PSNR and quick InfoMEC on a small fixed set.", at: func(c *Config) any { return &c.EvalEvery }},
	{Name: "eval_images", Label: "Evaluation set", Unit: "images", Group: "cadence", Kind: Int, Min: 1, Max: 1e6, Source: "as in Hsu et al. 2023", Help: "Number of images used by evaluations, drawn with the run's seed.", at: func(c *Config) any { return &c.EvalImages }},
	{Name: "evaluate", Label: "Final evaluation", Group: "cadence", Kind: Choice, Choices: []string{noEvaluation, Quick, Full}, zero: noEvaluation, Source: ours, Help: "Evaluates the run when it finishes. full takes about 30 s for tiny on two free cores, plus 1 min for the first run on a dataset, to train the probe that reads swaps; its scores can be compared across runs. quick uses 2,000 images and less of everything else; compare its scores only with other quick ones.", at: func(c *Config) any { return &c.Evaluate }},
	{Name: "stop_when", Label: "Stop early when", Group: "cadence", Kind: Text, zero: noCondition, Source: ours, Help: "Ends the run as finished once a condition holds: diverging, collapsing, or a limit such as infom<0.3@5000 (checked from step 5,000). Separate conditions with commas; none trains for all steps.", at: func(c *Config) any { return &c.StopWhen }},
	{Name: "best_by", Label: "Keep best by", Group: "cadence", Kind: Choice, Choices: bestChoices(), zero: noCondition, Source: ours, Help: "Keeps the checkpoint with the highest value so far, measured every eval_every steps. Each measurement uses few images and is noisy, so the best value is likely slightly optimistic.", at: func(c *Config) any { return &c.BestBy }},

	{Name: "resident", Label: "Dataset on the device", Group: "compute", Kind: Choice, Choices: []string{ifItFits, Always, Never}, zero: ifItFits, Source: ours, Help: "Copies the dataset to the GPU's memory before training. auto copies it if it takes at most 40% of that memory; never leaves the memory to the batch; always fails the run if it does not fit.", at: func(c *Config) any { return &c.Resident }},
	{Name: "steps_per_call", Label: "Steps per call", Unit: "steps", Group: "compute", Kind: Int, Min: 0, Max: 64, Source: ours, Help: "Training steps that one call of the engine takes; 0 uses 4 on a GPU and 1 on other engines.", at: func(c *Config) any { return &c.StepsPerCall }},
	{Name: "devices", Label: "Devices", Group: "compute", Kind: Int, Min: 1, Max: 64, zero: "1", Source: ours, Help: "Number of this machine's GPUs that share every batch; it must divide the batch size. A server gives each run one GPU, so use more only in a shell or a SLURM job.", at: func(c *Config) any { return &c.Devices }},
	{Name: "deterministic", Label: "Deterministic GPU", Group: "compute", Kind: Bool, Source: ours, Help: "Makes repeated runs on the same kind of GPU equal bit for bit, with slower operations. On the CPU engine they always are.", at: func(c *Config) any { return &c.Deterministic }},
}

// Fields returns the description of every entry of Config, in display order.
func Fields() []Field { return slices.Clone(fields) }

// FieldsOf returns the fields of a model.
func FieldsOf(modelName string) []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return !f.Of(modelName) })
}

// Of reports whether a model has the field.
func (f Field) Of(modelName string) bool {
	return len(f.Models) == 0 || slices.Contains(f.Models, modelName)
}

// Computing reports whether the field only says how a run is computed: the engine and group compute. What a run learns stays the same up
// to rounding, so these fields count neither in comparisons of configurations nor in IDs of runs.
func (f Field) Computing() bool { return f.Name == "engine" || f.Group == "compute" }

// FieldByName returns the field with a name.
func FieldByName(name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Get returns the field's value as text, in the form that Set reads.
func (f Field) Get(c Config) string {
	switch p := f.at(&c).(type) {
	case *string:
		if *p == "" {
			return f.zero
		}
		return *p
	case *int:
		if *p == 0 && f.zero != "" {
			return f.zero
		}
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
	panic("model: field " + f.Name + " has a type that Get does not support")
}

// Set parses text into the field; its error is shown to the user. Validate checks bounds.
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
		if text == f.zero {
			*p = 0
		}
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
			return fmt.Errorf("%q is not a boolean (true or false)", text)
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
		return fmt.Errorf("%q does not list four widths; write them as in 64,128,256,512", text)
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

// Set assigns one field by name; it returns an Invalid for an unknown name or an unreadable value.
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

// Validate returns every problem by field, or nil. It does not check the dataset's existence or size; opening the dataset does.
func (c Config) Validate() Invalid {
	bad, known := Invalid{}, slices.Contains(ModelNames(), c.Model)
	for _, f := range fields {
		switch why := f.check(f.at(&c)); {
		case !known && len(f.Models) > 0: // the model is unknown, so its limits are too
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
		bad["codebook_lr"] = "a free codebook with rate 0 is static; set free_codebook to false or raise the rate"
	}
	if c.Model == "hrr" && (!c.FreeCodebook || c.StaticCodebook) {
		for name, v := range map[string]float64{"ema_decay": c.EMADecay, "reset_below": c.ResetBelow} {
			if v > 0 && bad[name] == "" {
				bad[name] = "needs a codebook whose entries are free and not static; set free_codebook to true and static_codebook to false"
			}
		}
	}
	if c.Model == "factorvae" && bad["batch"] == "" && (c.Batch < 4 || c.Batch%2 != 0) {
		bad["batch"] = fmt.Sprintf("FactorVAE permutes the latents of half a batch for its discriminator; %d is not an even number of at least 4", c.Batch)
	}
	if c.Model == "tripod" && (c.Precision == BF16 || c.Precision == BF16x3) {
		bad["precision"] = "Tripod's second differences need more precision than bf16 products have; choose float32"
	}
	if c.Model == "tripod" && bad["batch"] == "" && c.Batch < 2 {
		bad["batch"] = "Tripod measures how latents vary over a batch; choose at least 2 images"
	}
	if c.Devices > 1 && bad["devices"] == "" {
		if c.Batch%c.Devices != 0 {
			bad["devices"] = fmt.Sprintf("%d devices cannot share a batch of %d images equally; choose a divisor of the batch size", c.Devices, c.Batch)
		}
		if c.Resident == Always {
			bad["resident"] = "a dataset can lie on one device only; set resident to auto or never, or devices to 1"
		}
	}
	if why := c.symbolless(); why != "" && bad["binding"] == "" {
		bad["binding"] = why
	}
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// symbolless returns why an option does not fit a binding other than circular convolution, which has no symbols; "" if all options fit.
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
		if *p == 0 && f.zero != "" {
			return ""
		}
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

// Float returns an Int or Float field as a number, NaN for other kinds.
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
