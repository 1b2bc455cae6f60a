package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// EvalOptions holds the amounts that an evaluation measured, as set by the flags of `slotscope eval`.
type EvalOptions struct {
	Images    int  `json:"images"`               // evaluation set
	Noise     int  `json:"noise"`                // images of it used for the noise test
	Pairs     int  `json:"pairs"`                // image pairs whose slots were swapped
	Probe     int  `json:"probe"`                // training steps of the probe
	KeptProbe bool `json:"kept_probe,omitempty"` // only an already trained probe was used
	Trees     int  `json:"trees"`                // per random forest
	HeldOut   bool `json:"held_out"`             // images outside the run's selection of the dataset were measured
}

// EvalFlags returns the flags of `slotscope eval` that repeat the evaluation.
func (s Scores) EvalFlags() []string {
	var flags []string
	add := func(name string, value int) { flags = append(flags, "--"+name, strconv.Itoa(value)) }
	if s.Effort != "" {
		flags = append(flags, "--effort", s.Effort)
	}
	if s.Options == nil {
		add("images", s.Images)
		return flags
	}
	add("images", s.Options.Images)
	add("noise", s.Options.Noise)
	add("pairs", s.Options.Pairs)
	if !s.Options.KeptProbe {
		add("probe", s.Options.Probe)
	}
	add("trees", s.Options.Trees)
	if !s.Options.HeldOut {
		flags = append(flags, "--heldout=false")
	}
	return flags
}

// ScoresVersion is the version of Scores that this program writes. Version 0 had only step, images and PSNR.
const ScoresVersion = 1

// ScoresFormat is the version of a Scores file. Reading a newer one than ScoresVersion fails, because its fields may mean something else.
type ScoresFormat int

// UnmarshalJSON reads a version up to ScoresVersion.
func (v *ScoresFormat) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 0 {
		return fmt.Errorf("version: %s is not a whole number ≥ 0", b)
	}
	if n > ScoresVersion {
		return fmt.Errorf("version %d is newer than this program's (%d); update Slotscope to read it", n, ScoresVersion)
	}
	*v = ScoresFormat(n)
	return nil
}

// Scores holds a run's measurements on its evaluation set, stored in scores.json in the run's folder. The fields Version to PSNR are
// written when training ends; `slotscope eval` fills the others, which are nil if they do not apply to the model.
//
// Shapes use the paper's letters: m slots, k entries, F factors. Rows and columns by factor always include all F; those of factors
// that were left out hold undefined scores.
type Scores struct {
	Version ScoresFormat `json:"version"`
	Step    int          `json:"step"`
	Images  int          `json:"images"` // drawn at random with the seed
	Seed    int64        `json:"seed"`
	PSNR    float64      `json:"psnr"` // dB, mean over images

	PSNRInterval *Interval     `json:"psnr_interval,omitempty"` // interval of the mean over images, dB
	Metrics      *Metrics      `json:"metrics,omitempty"`
	Field        *FieldScores  `json:"field,omitempty"` // the literature's other scores; nil if not measured
	Usage        *Usage        `json:"usage,omitempty"` // nil for models without a codebook
	Noise        *Noise        `json:"noise,omitempty"`
	Swap         *Swap         `json:"swap,omitempty"`
	Faithfulness *Faithfulness `json:"faithfulness,omitempty"` // nil for baselines
	SwapTruth    *SwapTruth    `json:"swap_truth,omitempty"`
	NoTruth      string        `json:"no_truth,omitempty"`   // why SwapTruth is missing if the dataset does not allow it: a sentence
	HeldOut      *HeldOut      `json:"held_out,omitempty"`   // nil for runs trained on a whole dataset
	Probe        string        `json:"probe,omitempty"`      // checkpoint.Sum of the probe used for Noise, Swap and SwapTruth; empty without one, and from earlier program versions
	NoFactors    string        `json:"no_factors,omitempty"` // why Metrics and Swap are missing if they cannot be measured: a sentence

	Options *EvalOptions `json:"options,omitempty"` // options of the evaluation; nil from earlier program versions

	Effort    string  `json:"effort,omitempty"`    // of the evaluation: Quick or Full; empty from earlier program versions, which were full
	Seconds   float64 `json:"seconds,omitempty"`   // duration of the evaluation
	Engine    string  `json:"engine,omitempty"`    // that the evaluation ran on
	Precision string  `json:"precision,omitempty"` // of the training steps: float32, tf32 or bf16
	Revision  string  `json:"revision,omitempty"`  // of the program that evaluated
}

// Evaluated reports whether `slotscope eval` has measured the scores that the dataset allows.
func (s Scores) Evaluated() bool { return s.Metrics != nil || s.NoFactors != "" }

// Full reports whether the scores are of a full evaluation, which a quick one must not replace unless the user asks for it.
func (s Scores) Full() bool { return s.Evaluated() && s.Effort != Quick }

// HeldOut holds measurements on the images outside a run's selection of a dataset, which may include factor combinations that the
// model has never seen.
type HeldOut struct {
	Dataset   string   `json:"dataset"` // including the selection of these images
	Images    int      `json:"images"`  // drawn at random with the seed
	PSNR      Interval `json:"psnr"`    // dB, mean over images
	Metrics   *Metrics `json:"metrics,omitempty"`
	Usage     *Usage   `json:"usage,omitempty"`      // nil for models without a codebook
	NoFactors string   `json:"no_factors,omitempty"` // as in Scores

	Recombination   *Recombination `json:"recombination,omitempty"`    // nil if not measured
	NoRecombination string         `json:"no_recombination,omitempty"` // why Recombination is missing if the selection does not allow it: a sentence
}

// Score is a number that may be undefined: NaN in memory, null in JSON. Infinities are also written as null.
type Score float64

// Undefined returns the score for a value that cannot be measured.
func Undefined() Score { return Score(math.NaN()) }

// Defined reports whether the score is a finite number.
func (s Score) Defined() bool { return !math.IsNaN(float64(s)) && !math.IsInf(float64(s), 0) }

// MarshalJSON writes a number or null.
func (s Score) MarshalJSON() ([]byte, error) {
	if !s.Defined() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(s), 'g', -1, 64), nil
}

// UnmarshalJSON reads a number or null.
func (s *Score) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*s = Undefined()
		return nil
	}
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("%s is neither a number nor null", b)
	}
	*s = Score(v)
	return nil
}

// Interval is a value with its 95% confidence interval.
type Interval struct {
	Value Score `json:"value"`
	Low   Score `json:"low"`
	High  Score `json:"high"`
}

// Metrics holds InfoMEC and DCI for n rows of latents and factors.
type Metrics struct {
	Discrete bool     `json:"discrete"` // latents are codes, otherwise numbers
	Rows     int      `json:"rows"`     // n
	Latents  int      `json:"latents"`  // m
	Factors  []string `json:"factors"`  // [F] names
	Values   []int    `json:"values"`   // [F] distinct values among the rows
	Codes    []int    `json:"codes"`    // [m] distinct codes among the rows; nil for numbers
	Seed     int64    `json:"seed"`     // seed of forests, splits and shuffles

	InfoM Score `json:"infom"` // modularity
	InfoE Score `json:"infoe"` // explicitness, fitted and measured on the same rows
	InfoC Score `json:"infoc"` // compactness

	InfoEFactors         []Score `json:"infoe_factors"`          // [F]
	InfoEHeldOut         Score   `json:"infoe_heldout"`          // fitted on nine rows in ten, measured on the tenth; may be negative
	InfoEHeldOutFactors  []Score `json:"infoe_heldout_factors"`  // [F]
	InfoEShuffled        Score   `json:"infoe_shuffled"`         // InfoE with the latents' rows shuffled: chance level
	InfoEShuffledFactors []Score `json:"infoe_shuffled_factors"` // [F]

	NMI           [][]Score `json:"nmi"`            // [F][m] I(s; z) / H(s)
	ActiveLatents []bool    `json:"active_latents"` // [m] latents used by InfoM and InfoC
	KeptFactors   []int     `json:"kept_factors"`   // factors with at least two values among the rows

	DCI DCI `json:"dci"`

	Ownership *Ownership `json:"ownership,omitempty"` // nil if not measured
}

// DCI holds the scores of random forests on three views of the latents.
type DCI struct {
	Trees   int      `json:"trees"`             // of each forest
	OneHot  DCIScore `json:"rf_onehot"`         // one feature per (slot, code) pair, as the paper must have used; undefined for numbers
	SlotSum DCIScore `json:"rf_onehot_slotsum"` // the same forests, importances summed over each slot's features
	Slots   DCIScore `json:"rf_slots"`          // one feature per slot: the latent, or the code's index
}

// DCIScore holds disentanglement, informativeness and completeness for one view.
type DCIScore struct {
	D Score `json:"D"`
	I Score `json:"I"`
	C Score `json:"C"`

	Importance [][]Score `json:"importance,omitempty"` // [m][F], each factor's column summing to 1
	Accuracy   []Score   `json:"accuracy,omitempty"`   // [F] on held-out rows; I is their mean
}

// Usage counts how often each slot uses each codebook entry.
type Usage struct {
	Counts     [][]int   `json:"counts"`     // [m][k] images
	Used       []int     `json:"used"`       // [m] entries used at least once
	Perplexity []float64 `json:"perplexity"` // [m] effective number of entries
	Entries    int       `json:"entries"`    // entries used at least once by any slot
	Codebook   float64   `json:"codebook"`   // perplexity over all slots

	Names []CodeNames `json:"names,omitempty"` // [m] meaning of each slot's codes

	Joint *JointEntropy `json:"joint,omitempty"` // joint entropy of the slots' codes; nil if not measured
}

// JointEntropy holds the joint entropy and the redundancy of the slots' codes, in nats, by plug-in estimates over the evaluation set.
type JointEntropy struct {
	Images     int       `json:"images"`
	Tuples     int       `json:"tuples"`      // distinct tuples of codes
	Nats       float64   `json:"nats"`        // H(c_1 … c_m), at most Ceiling
	Slots      []float64 `json:"slots"`       // [m] H(c_i)
	Redundancy float64   `json:"redundancy"`  // Σ H(c_i) − H(c_1 … c_m) ≥ 0
	Ceiling    float64   `json:"ceiling"`     // ln of Images, which Nats cannot exceed
	Coverage   float64   `json:"coverage"`    // 1 − share of images whose tuple no other image takes
	LowerBound bool      `json:"lower_bound"` // Coverage is below 0.9: Nats is too low and Redundancy too high by an unknown amount
}

// CodeNames maps the codes of one slot to values of the slot's own factor.
type CodeNames struct {
	Factor int        `json:"factor"` // first factor that the slot is named after; −1 for mixed and unused slots
	Codes  []CodeName `json:"codes"`  // codes in use, most used first
}

// CodeName is a code and the most frequent factor value among the images with that code.
type CodeName struct {
	Code  int     `json:"code"`
	Count int     `json:"count"` // images with the code
	Value int     `json:"value"` // index among the factor's values
	Share float64 `json:"share"` // share of those images with the value: P(value | code)
}

// Noise measures the effect of Gaussian noise on codes and reconstructions, at three places: on the encoder's z before retrieval or
// quantization, and on ẑ before decoding, with or without cleanup. All three use the same draws, scaled to their signal.
type Noise struct {
	Power       float64      `json:"power"`                  // of z: mean z² over images and components
	BundlePower float64      `json:"bundle_power,omitempty"` // of ẑ: mean ẑ² over images and components
	Components  int          `json:"components,omitempty"`   // n of z and ẑ: the energy of an image, E_s, is n · power
	Images      int          `json:"images"`
	Curve       []NoisePoint `json:"curve"`                    // on z; all curves run from high to low SNR
	BundleRaw   []NoisePoint `json:"bundle_raw,omitempty"`     // on ẑ, decoded directly; nil if not measured
	BundleClean []NoisePoint `json:"bundle_cleaned,omitempty"` // on ẑ, cleaned up by plain unbinding, nearest entries and binding; nil for models without codes
	Accuracy    []float64    `json:"clean_accuracy,omitempty"` // [F] of the probe on reconstructions of the same images without noise; nil without a probe
	Shown       []int        `json:"shown,omitempty"`          // dataset indices of the images in the run's noise.png
}

// NoisePoint holds the results for one noise level, with variance power / 10^(SNR/10).
type NoisePoint struct {
	SNR      float64   `json:"snr"`                // dB per component
	EsN0     float64   `json:"es_n0,omitempty"`    // dB per image, E_s/N_0 = ‖z‖²/σ²: SNR + 10 log₁₀ n
	PSNR     Interval  `json:"psnr"`               // dB against the input, mean over images
	Flipped  []float64 `json:"flipped,omitempty"`  // [m] share of images whose code differs from the encoder's; nil for models without codes, and if no codes are read
	Accuracy []float64 `json:"accuracy,omitempty"` // [F] share of images whose factor the probe predicts correctly; nil without a probe
}

// Swap measures whether replacing one slot's code by another image's changes the slot's own factor and nothing else, as read by a probe
// from the decoded images before and after. An edit counts if image B differs from A in the slot and in the slot's own factor.
// Exact, None and Others are shares of the edits of slots that have their own factor; they sum to 1.
type Swap struct {
	Pairs  int        `json:"pairs"`  // of random images
	Edits  int        `json:"edits"`  // of single slots that have their own factor
	Exact  Interval   `json:"exact"`  // only the slot's own factor changed
	None   Interval   `json:"none"`   // nothing changed
	Others Interval   `json:"others"` // some other factor changed
	Slots  []SlotSwap `json:"slots"`  // [m]

	ProbeAccuracy []float64 `json:"probe_accuracy"` // [F] on held-out images
	ProbeImages   int       `json:"probe_images"`   // training images of the probe

	// [F] on reconstructions of the evaluation set, which shows what blur hides from the probe. nil if not measured.
	ProbeReconstructions []float64 `json:"probe_reconstructions,omitempty"`
}

// SlotSwap holds one slot's results in Swap.
type SlotSwap struct {
	Factor  int        `json:"factor"` // factor that owns the slot; −1 if none
	Edits   int        `json:"edits"`
	Exact   Interval   `json:"exact"`
	None    Interval   `json:"none"`
	Others  Interval   `json:"others"`
	Leakage []Interval `json:"leakage"` // [F] share of edits that changed the factor
}
