package model

// FieldScores holds the literature's disentanglement scores besides InfoMEC and DCI; docs/metrics.md defines each. Matrix rows are
// the kept factors (F of them), columns are latents (m).
type FieldScores struct {
	Discrete       bool   `json:"discrete"` // latents are codes, otherwise numbers
	Rows           int    `json:"rows"`     // n
	Seed           int64  `json:"seed"`     // seed of votes, shuffles and samples
	KeptFactors    []int  `json:"kept_factors"`
	VaryingLatents []bool `json:"varying_latents"`          // [m] max > min
	ActiveLatents  []bool `json:"active_latents_factorvae"` // [m] latents used by FactorVAE's score

	MI              [][]float64 `json:"mi"`          // [F][m] plug-in mutual information, nats; numbers are binned into 20 bins
	MIMillerMadow   [][]float64 `json:"mi_mm"`       // [F][m] with Miller and Madow's correction
	MIExpected      [][]float64 `json:"mi_expected"` // [F][m] mean over permutations of the rows
	FactorEntropy   []float64   `json:"factor_entropy"`
	FactorEntropyMM []float64   `json:"factor_entropy_mm"`
	LatentEntropy   []float64   `json:"latent_entropy"` // [m]

	Scores    map[string]Score    `json:"scores"`              // by name, as in docs/metrics.md
	Chance    map[string]Spread   `json:"chance"`              // the same scores with factor rows shuffled
	Intervals map[string]Interval `json:"intervals,omitempty"` // 95%, for scores that allow one
	Problems  map[string]string   `json:"problems,omitempty"`  // why a score could not be computed, a sentence each

	MIGFactors        []Score   `json:"mig_per_factor"`
	ModularityLatents []Score   `json:"modularity_per_latent"`      // [m]; null for one factor
	SAP               [][]Score `json:"sap_matrix"`                 // [F][m] test accuracy from one latent
	SAPStandard       [][]Score `json:"sap_std_matrix,omitempty"`   // numbers, standardized
	SAPIndex          [][]Score `json:"sap_index_matrix,omitempty"` // codes treated as numbers
	IRS               [][]Score `json:"irs_matrix,omitempty"`       // [F][varying latents]; numbers only
	IRSMax            [][]Score `json:"irs_max_matrix,omitempty"`

	Explicitness      *Explicitness  `json:"explicitness"`
	ExplicitnessIndex *Explicitness  `json:"explicitness_index,omitempty"` // codes treated as numbers
	LowLabel          *LowLabel      `json:"low_label"`
	BetaVAEDifference [][]Score      `json:"betavae_expected_difference,omitempty"` // [F][m] for a pair that shares the factor
	FactorVAERatio    [][][]Score    `json:"factorvae_ratio,omitempty"`             // [F][value][active latents] local over global variance
	FactorVAEVotes    [][]Score      `json:"factorvae_limit_votes,omitempty"`       // [F][m] shares
	Sampled           *Sampled       `json:"sampled,omitempty"`
	Redundancy        *Redundancy    `json:"redundancy"`
	UDR               map[string]UDR `json:"udr,omitempty"` // by kind: lasso and spearman for numbers, mi and mi_mm for codes
	Size              Size           `json:"size"`
	Capacity          *Capacity      `json:"dci_es,omitempty"`

	CurveExplicitness []Score            `json:"loss_capacity_explicitness,omitempty"` // for the curves in the file
	Selections        []map[string]Score `json:"selections,omitempty"`                 // scores of the file's selections; null without factors
}

// Spread summarizes repeated values: mean and standard deviation with Bessel's correction.
type Spread struct {
	Mean    Score `json:"mean"`
	Std     Score `json:"std"`
	SE      Score `json:"se"` // Std / √Repeats
	Repeats int   `json:"repeats"`
	BandOne Score `json:"band_one"` // half-width of the expected range of one further value
	BandTen Score `json:"band_ten"` // the same for the mean of ten
}

// Explicitness is the area under the ROC curve of a linear probe, by factor and on average. Chance is 0.5.
type Explicitness struct {
	TrainFactors []Score `json:"train_per_factor"`
	TestFactors  []Score `json:"test_per_factor"`
	Train        Score   `json:"train"`
	Test         Score   `json:"test"`
}

// LowLabel is the accuracy of a linear probe that is fitted on few labels and tested on rows from 1,000 on.
type LowLabel struct {
	TestFrom int           `json:"test_rows_from"`
	Majority []Score       `json:"majority"` // [F] accuracy of the most frequent value
	First100 LabelAccuracy `json:"100"`
	First1k  LabelAccuracy `json:"1000"`
	Random   Spread        `json:"100_random"` // ten draws of 100 of the first 1,000 rows
}

// LabelAccuracy is the accuracy of a probe by factor and on average.
type LabelAccuracy struct {
	Factors []Score `json:"per_factor"`
	Mean    Score   `json:"mean"`
}

// Sampled holds the scores that draw random votes, over ten repeats.
type Sampled struct {
	Batch      int `json:"batch"` // rows or pairs per vote
	TrainVotes int `json:"train_votes"`
	EvalVotes  int `json:"eval_votes"`

	FactorVAETrain  Spread  `json:"factorvae_train"`
	FactorVAEEval   Spread  `json:"factorvae_eval"`
	BetaVAETrain    Spread  `json:"betavae_train"`
	BetaVAEEval     Spread  `json:"betavae_eval"`
	BetaVAERawTrain *Spread `json:"betavae_raw_train,omitempty"` // numbers without scaling
	BetaVAERawEval  *Spread `json:"betavae_raw_eval,omitempty"`
}

// Redundancy is the information that slots share, Σ H(z_j) − H(z_1 … z_m) in nats, by three entropy estimators.
type Redundancy struct {
	JointCodes   int         `json:"joint_codes"` // distinct rows
	Coverage     Score       `json:"coverage"`    // 1 − share of rows that occur once
	Plugin       Correlation `json:"plugin"`
	MillerMadow  Correlation `json:"miller_madow"`
	ChaoShen     Correlation `json:"chao_shen"`
	Pairs        [][]Score   `json:"pairwise_adjusted"` // [m][m] mutual information of two slots above chance; diagonal 0
	PairSum      Score       `json:"pairwise_sum"`
	Normalized   Score       `json:"normalised"`             // plug-in over its largest value
	Shuffled     Spread      `json:"shuffled"`               // plug-in with every slot permuted: the estimate for independent slots
	Excess       Score       `json:"excess"`                 // plug-in minus Shuffled: tests for dependence, not its amount
	Undetermined string      `json:"undetermined,omitempty"` // why ChaoShen is not a valid estimate here: a sentence
}

// Correlation is the total correlation of slots by one estimator, in nats.
type Correlation struct {
	Slots      []Score `json:"slot_entropies"` // [m]
	Sum        Score   `json:"sum"`
	Joint      Score   `json:"joint"`
	Redundancy Score   `json:"redundancy"`
}

// UDR compares identically trained models by the agreement of their latents. Models are in the order given.
type UDR struct {
	First    [][]Score `json:"first_matrix"`     // latents of model 0 by latents of model 1
	Pairwise [][]Score `json:"pairwise"`         // [model][model]
	Models   []Score   `json:"model_scores"`     // median over the other models; null for a single model
	Chance   []Spread  `json:"chance,omitempty"` // each model's score with rows shuffled
}

// Size is the number of factors over the number of latents: 1 if each factor could have its own latent.
type Size struct {
	All    Score `json:"all"`
	Active Score `json:"active"` // over latents that vary
}

// Capacity holds DCI-ES: how a probe's loss falls as its capacity grows.
type Capacity struct {
	Probe        string    `json:"probe"`
	Depths       []int     `json:"capacity"` // depths of the forest
	Loss         [][]Score `json:"loss"`     // [F][depth] share of test rows predicted wrongly
	Factors      []Score   `json:"per_factor"`
	Explicitness Score     `json:"explicitness"`
}

// FieldMetric describes a score of FieldScores that tables show.
type FieldMetric struct {
	Name  string // key in Scores, Chance and Intervals
	Title string
	Asks  string // what it rewards
}

// FieldMetrics lists the scores that tables show, in display order; docs/metrics.md defines each. A score that applies only to codes or
// only to numbers is undefined for the other kind.
var FieldMetrics = []FieldMetric{
	{"mig", "MIG", "each factor is captured by one latent"},
	{"dcimig", "DCIMIG", "one latent per factor and one factor per latent"},
	{"sap", "SAP", "one latent predicts each factor"},
	{"sap_std", "SAP, standardized", "as SAP, independent of the latents' scale"},
	{"modularity_active", "Modularity", "each latent captures only one factor"},
	{"explicitness", "Explicitness", "factors are linearly decodable"},
	{"factorvae", "FactorVAE score", "the lowest-variance latent identifies the fixed factor"},
	{"betavae", "BetaVAE score", "latent differences identify the shared factor"},
	{"irs", "IRS", "a latent is constant while its factor is"},
	{"low_label_100", "Accuracy, 100 labels", "a linear probe learns the factors from few labels"},
	{"low_label_1000", "Accuracy, 1,000 labels", "a linear probe learns the factors from few labels"},
	{"dci_es", "DCI-ES explicitness", "a small forest predicts as well as a large one"},
	{"size", "DCI-ES size", "no more latents than factors"},
	{"infom_adj", "InfoM, bias-corrected", "modularity above chance"},
	{"infoc_adj", "InfoC, bias-corrected", "compactness above chance"},
	{"redundancy_pairs", "Redundancy of pairs (nats)", "slots do not share information"},
}

// Headline returns a score of FieldMetrics with its chance level and interval; each is undefined if missing.
func (f FieldScores) Headline(name string) (value, chance Score, interval Interval) {
	value, chance, interval = Undefined(), Undefined(), Interval{Undefined(), Undefined(), Undefined()}
	if v, ok := f.Scores[name]; ok {
		value = v
	}
	if c, ok := f.Chance[name]; ok {
		chance = c.Mean
	}
	if i, ok := f.Intervals[name]; ok {
		interval = i
	}
	return value, chance, interval
}
