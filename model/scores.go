package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// EvalOptions are how much an evaluation measured, as the flags of `slotscope eval` say it.
type EvalOptions struct {
	Images    int  `json:"images"`               // of the evaluation set
	Noise     int  `json:"noise"`                // of these that noise was tried on
	Pairs     int  `json:"pairs"`                // of images whose slots were swapped
	Probe     int  `json:"probe"`                // training steps of the probe
	KeptProbe bool `json:"kept_probe,omitempty"` // no probe was trained where none was kept
	Trees     int  `json:"trees"`                // of each random forest
	HeldOut   bool `json:"held_out"`             // what the run's part of a dataset leaves out was measured
}

// EvalFlags are the flags of `slotscope eval` that measure the same again.
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

// ScoresVersion is the form of Scores that this program writes. Version 0 had step, images and PSNR alone.
const ScoresVersion = 1

// Scores is what a run measured on its evaluation set; scores.json in the run's folder holds it. Version to PSNR are written
// when training ends. What `slotscope eval` adds is nil until then, and where the model has no such thing.
//
// Shapes are in the paper's letters: m slots, k entries, F factors. A row or column that belongs to a factor is always one of
// all F; where a factor was left out, it holds undefined scores.
type Scores struct {
	Version int     `json:"version"`
	Step    int     `json:"step"`
	Images  int     `json:"images"` // drawn at random with the seed
	Seed    int64   `json:"seed"`
	PSNR    float64 `json:"psnr"` // dB, mean over images

	PSNRInterval *Interval     `json:"psnr_interval,omitempty"` // of the mean over images, dB
	Metrics      *Metrics      `json:"metrics,omitempty"`
	Field        *FieldScores  `json:"field,omitempty"` // the field's other scores; nil where they were not measured
	Usage        *Usage        `json:"usage,omitempty"` // nil for models without a codebook
	Noise        *Noise        `json:"noise,omitempty"`
	Swap         *Swap         `json:"swap,omitempty"`
	Faithfulness *Faithfulness `json:"faithfulness,omitempty"` // nil for baselines
	SwapTruth    *SwapTruth    `json:"swap_truth,omitempty"`
	NoTruth      string        `json:"no_truth,omitempty"`   // why there is no SwapTruth, where the dataset does not allow it: a sentence
	HeldOut      *HeldOut      `json:"held_out,omitempty"`   // nil for runs that were trained on a whole dataset
	Probe        string        `json:"probe,omitempty"`      // checkpoint.Sum of the probe that read images for Noise, Swap and SwapTruth; empty without one, and for those of earlier programs
	NoFactors    string        `json:"no_factors,omitempty"` // why there are no Metrics and no Swap, where an evaluation cannot have them: a sentence

	Options *EvalOptions `json:"options,omitempty"` // that the evaluation was given; nil for those of earlier programs

	Effort    string  `json:"effort,omitempty"`    // of the evaluation: Quick or Full; empty for those of earlier programs, which were full
	Seconds   float64 `json:"seconds,omitempty"`   // that the evaluation took
	Engine    string  `json:"engine,omitempty"`    // that it ran on
	Precision string  `json:"precision,omitempty"` // of the steps that it was trained by: float32, tf32 or bf16
	Revision  string  `json:"revision,omitempty"`  // of the program that evaluated
}

// Evaluated says whether `slotscope eval` measured what the dataset allows.
func (s Scores) Evaluated() bool { return s.Metrics != nil || s.NoFactors != "" }

// HeldOut is what was measured on the images that a run's part of a dataset leaves out: combinations of factors, perhaps, that
// the model has never seen.
type HeldOut struct {
	Dataset   string   `json:"dataset"` // with the selection that names them
	Images    int      `json:"images"`  // drawn at random with the seed
	PSNR      Interval `json:"psnr"`    // dB, mean over images
	Metrics   *Metrics `json:"metrics,omitempty"`
	Usage     *Usage   `json:"usage,omitempty"`      // nil for models without a codebook
	NoFactors string   `json:"no_factors,omitempty"` // as in Scores

	Recombination   *Recombination `json:"recombination,omitempty"`    // nil where it was not measured
	NoRecombination string         `json:"no_recombination,omitempty"` // why there is none, where the part does not allow it: a sentence
}

// Score is a number that may be undefined: NaN in memory, null in JSON. No other value that is not finite is written.
type Score float64

// Undefined is the score of what cannot be measured.
func Undefined() Score { return Score(math.NaN()) }

// Defined says whether there is a number.
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
		return fmt.Errorf("%s is neither a score nor null", b)
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

// Metrics are InfoMEC and DCI of n rows of latents with their factors.
type Metrics struct {
	Discrete bool     `json:"discrete"` // latents are codes; else numbers
	Rows     int      `json:"rows"`     // n
	Latents  int      `json:"latents"`  // m
	Factors  []string `json:"factors"`  // [F] names
	Values   []int    `json:"values"`   // [F] distinct values among the rows
	Codes    []int    `json:"codes"`    // [m] distinct codes among the rows; nil for numbers
	Seed     int64    `json:"seed"`     // of forests, splits and shuffles

	InfoM Score `json:"infom"` // modularity
	InfoE Score `json:"infoe"` // explicitness, fitted and measured on the same rows
	InfoC Score `json:"infoc"` // compactness

	InfoEFactors         []Score `json:"infoe_factors"`          // [F]
	InfoEHeldOut         Score   `json:"infoe_heldout"`          // fitted on nine rows in ten, measured on the tenth; may be negative
	InfoEHeldOutFactors  []Score `json:"infoe_heldout_factors"`  // [F]
	InfoEShuffled        Score   `json:"infoe_shuffled"`         // InfoE of the latents in another order of rows: chance
	InfoEShuffledFactors []Score `json:"infoe_shuffled_factors"` // [F]

	NMI           [][]Score `json:"nmi"`            // [F][m] I(s; z) / H(s)
	ActiveLatents []bool    `json:"active_latents"` // [m] those that InfoM and InfoC look at
	KeptFactors   []int     `json:"kept_factors"`   // factors with at least two values among the rows

	DCI DCI `json:"dci"`

	Ownership *Ownership `json:"ownership,omitempty"` // nil where it was not measured
}

// DCI holds the scores of random forests on three views of the latents.
type DCI struct {
	Trees   int      `json:"trees"`             // of each forest
	OneHot  DCIScore `json:"rf_onehot"`         // every (slot, code) pair a feature, as the paper must have; undefined for numbers
	SlotSum DCIScore `json:"rf_onehot_slotsum"` // the same forests, importances summed over each slot's features
	Slots   DCIScore `json:"rf_slots"`          // every slot one number: the latent, or the code's index
}

// DCIScore is disentanglement, informativeness and completeness by one view.
type DCIScore struct {
	D Score `json:"D"`
	I Score `json:"I"`
	C Score `json:"C"`

	Importance [][]Score `json:"importance,omitempty"` // [m][F], each factor's column summing to 1
	Accuracy   []Score   `json:"accuracy,omitempty"`   // [F] on held-out rows; I is their mean
}

// Usage is how often each slot takes each entry of the codebook.
type Usage struct {
	Counts     [][]int   `json:"counts"`     // [m][k] images
	Used       []int     `json:"used"`       // [m] entries used at least once
	Perplexity []float64 `json:"perplexity"` // [m] entries in effective use
	Entries    int       `json:"entries"`    // entries used at least once by any slot
	Codebook   float64   `json:"codebook"`   // perplexity over all slots

	Names []CodeNames `json:"names,omitempty"` // [m] what each slot's codes stand for

	Joint *JointEntropy `json:"joint,omitempty"` // of the slots' codes together; nil where it was not measured
}

// JointEntropy is what the slots' codes tell together and how much of it they tell twice, in nats, by plug-in estimates over the
// evaluation set.
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

// CodeNames is what the codes of one slot stand for, in values of the slot's own factor.
type CodeNames struct {
	Factor int        `json:"factor"` // the first that the slot is named after; −1 for mixed and unused slots
	Codes  []CodeName `json:"codes"`  // those taken, most used first
}

// CodeName is a code and the value that is most frequent among the images that take it.
type CodeName struct {
	Code  int     `json:"code"`
	Count int     `json:"count"` // images that take it
	Value int     `json:"value"` // index among the factor's values
	Share float64 `json:"share"` // of those images that show it: P(value | code)
}

// Noise is what Gaussian noise does to codes and reconstruction, at three places: on the encoder's z before retrieval or quantizing, and on ẑ
// before decoding, as it is or cleaned up. All three take the same draws, scaled to their signal.
type Noise struct {
	Power       float64      `json:"power"`                  // of z: mean z² over images and components
	BundlePower float64      `json:"bundle_power,omitempty"` // of ẑ, likewise
	Components  int          `json:"components,omitempty"`   // n of z and ẑ: the energy of an image, E_s, is n · power
	Images      int          `json:"images"`
	Curve       []NoisePoint `json:"curve"`                    // on z; from high to low SNR, as the others
	BundleRaw   []NoisePoint `json:"bundle_raw,omitempty"`     // on ẑ, decoded as it is; nil where it was not measured
	BundleClean []NoisePoint `json:"bundle_cleaned,omitempty"` // on ẑ, which plain unbinding, the nearest entries and binding clean up; nil for models without codes
	Accuracy    []float64    `json:"clean_accuracy,omitempty"` // [F] of the probe on the same images reconstructed without noise; nil where no probe was trained
	Shown       []int        `json:"shown,omitempty"`          // indices in the dataset of the images in the run's noise.png
}

// NoisePoint is one strength of noise, of variance power / 10^(SNR/10).
type NoisePoint struct {
	SNR      float64   `json:"snr"`                // dB per component
	EsN0     float64   `json:"es_n0,omitempty"`    // dB per image, E_s/N_0 = ‖z‖²/σ²: SNR + 10 log₁₀ n
	PSNR     Interval  `json:"psnr"`               // dB against the input, mean over images
	Flipped  []float64 `json:"flipped,omitempty"`  // [m] share of images whose code is not the encoder's; nil for models without codes, and where none is read
	Accuracy []float64 `json:"accuracy,omitempty"` // [F] share of images whose factor the probe reads right; nil where no probe was trained
}

// Swap tells whether putting one slot of another image in changes the slot's own factor and nothing else, as read by a probe
// from the decoded images before and after. An edit counts where image B differs from A in the slot, and in the slot's own
// factor. Exact, None and Others are shares of the edits of slots that have a factor of their own; they sum to 1.
type Swap struct {
	Pairs  int        `json:"pairs"`  // of random images
	Edits  int        `json:"edits"`  // of single slots that have a factor of their own
	Exact  Interval   `json:"exact"`  // the slot's own factor changed, and no other
	None   Interval   `json:"none"`   // nothing changed
	Others Interval   `json:"others"` // some other factor changed
	Slots  []SlotSwap `json:"slots"`  // [m]

	ProbeAccuracy []float64 `json:"probe_accuracy"` // [F] on held-out images
	ProbeImages   int       `json:"probe_images"`   // that it learned from

	// [F] on reconstructions of the evaluation set: what blur hides from the probe. nil where it was not measured.
	ProbeReconstructions []float64 `json:"probe_reconstructions,omitempty"`
}

// SlotSwap is one slot's part in Swap.
type SlotSwap struct {
	Factor  int        `json:"factor"` // that owns the slot; −1 where none does
	Edits   int        `json:"edits"`
	Exact   Interval   `json:"exact"`
	None    Interval   `json:"none"`
	Others  Interval   `json:"others"`
	Leakage []Interval `json:"leakage"` // [F] share of edits that changed the factor
}
