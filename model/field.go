package model

// FieldScores is the scores that the literature compares disentangled representations by, beside InfoMEC and DCI. docs/metrics.md has the
// definition of each. Rows of matrices belong to the factors kept (F of them), columns to latents (m).
type FieldScores struct {
	Discrete       bool   `json:"discrete"` // latents are codes; else numbers
	Rows           int    `json:"rows"`     // n
	Seed           int64  `json:"seed"`     // of votes, shuffles and samples
	KeptFactors    []int  `json:"kept_factors"`
	VaryingLatents []bool `json:"varying_latents"`          // [m] max > min
	ActiveLatents  []bool `json:"active_latents_factorvae"` // [m] what FactorVAE's score looks at

	MI              [][]float64 `json:"mi"`          // [F][m] plug-in information, nats; of numbers on 20 bins
	MIMillerMadow   [][]float64 `json:"mi_mm"`       // [F][m] with Miller and Madow's correction
	MIExpected      [][]float64 `json:"mi_expected"` // [F][m] mean over permutations of the rows
	FactorEntropy   []float64   `json:"factor_entropy"`
	FactorEntropyMM []float64   `json:"factor_entropy_mm"`
	LatentEntropy   []float64   `json:"latent_entropy"` // [m]

	Scores    map[string]Score    `json:"scores"`              // by the names of docs/metrics.md
	Chance    map[string]Spread   `json:"chance"`              // the same scores with the rows of the factors shuffled
	Intervals map[string]Interval `json:"intervals,omitempty"` // 95%, where a score allows one
	Problems  map[string]string   `json:"problems,omitempty"`  // a sentence for each score that could not be computed

	MIGFactors        []Score   `json:"mig_per_factor"`
	ModularityLatents []Score   `json:"modularity_per_latent"`      // [m]; null for one factor
	SAP               [][]Score `json:"sap_matrix"`                 // [F][m] test accuracy from one latent
	SAPStandard       [][]Score `json:"sap_std_matrix,omitempty"`   // numbers, standardized
	SAPIndex          [][]Score `json:"sap_index_matrix,omitempty"` // codes taken for numbers
	IRS               [][]Score `json:"irs_matrix,omitempty"`       // [F][varying latents]; numbers only
	IRSMax            [][]Score `json:"irs_max_matrix,omitempty"`

	Explicitness      *Explicitness  `json:"explicitness"`
	ExplicitnessIndex *Explicitness  `json:"explicitness_index,omitempty"` // codes taken for numbers
	LowLabel          *LowLabel      `json:"low_label"`
	BetaVAEDifference [][]Score      `json:"betavae_expected_difference,omitempty"` // [F][m] of a pair that shares the factor
	FactorVAERatio    [][][]Score    `json:"factorvae_ratio,omitempty"`             // [F][value][active latents] local over global variance
	FactorVAEVotes    [][]Score      `json:"factorvae_limit_votes,omitempty"`       // [F][m] shares
	Sampled           *Sampled       `json:"sampled,omitempty"`
	Redundancy        *Redundancy    `json:"redundancy"`
	UDR               map[string]UDR `json:"udr,omitempty"` // by kind: lasso and spearman of numbers, mi and mi_mm of codes
	Size              Size           `json:"size"`
	Capacity          *Capacity      `json:"dci_es,omitempty"`

	CurveExplicitness []Score            `json:"loss_capacity_explicitness,omitempty"` // of the curves that the file brings
	Selections        []map[string]Score `json:"selections,omitempty"`                 // scores of the file's selections; null without factors
}

// Spread is repeated values: mean and standard deviation with Bessel's correction.
type Spread struct {
	Mean    Score `json:"mean"`
	Std     Score `json:"std"`
	SE      Score `json:"se"` // Std / √Repeats
	Repeats int   `json:"repeats"`
	BandOne Score `json:"band_one"` // half-width within which one further value is to lie
	BandTen Score `json:"band_ten"` // the same for the mean of ten
}

// Explicitness is the area under the ROC curve of a linear probe, by factor and on average. Chance is 0.5.
type Explicitness struct {
	TrainFactors []Score `json:"train_per_factor"`
	TestFactors  []Score `json:"test_per_factor"`
	Train        Score   `json:"train"`
	Test         Score   `json:"test"`
}

// LowLabel is how well a linear probe predicts the factors of rows from 1,000 on, once it has seen few labels.
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

// Sampled is the scores that draw votes at random, over ten runs.
type Sampled struct {
	Batch      int `json:"batch"` // rows or pairs of a vote
	TrainVotes int `json:"train_votes"`
	EvalVotes  int `json:"eval_votes"`

	FactorVAETrain  Spread  `json:"factorvae_train"`
	FactorVAEEval   Spread  `json:"factorvae_eval"`
	BetaVAETrain    Spread  `json:"betavae_train"`
	BetaVAEEval     Spread  `json:"betavae_eval"`
	BetaVAERawTrain *Spread `json:"betavae_raw_train,omitempty"` // numbers as they are
	BetaVAERawEval  *Spread `json:"betavae_raw_eval,omitempty"`
}

// Redundancy is what slots share: Σ H(z_j) − H(z_1 … z_m) in nats, by three estimators of entropy.
type Redundancy struct {
	JointCodes   int         `json:"joint_codes"` // distinct rows
	Coverage     Score       `json:"coverage"`    // 1 − share of rows that occur once
	Plugin       Correlation `json:"plugin"`
	MillerMadow  Correlation `json:"miller_madow"`
	ChaoShen     Correlation `json:"chao_shen"`
	Pairs        [][]Score   `json:"pairwise_adjusted"` // [m][m] information of two slots above chance; diagonal 0
	PairSum      Score       `json:"pairwise_sum"`
	Normalized   Score       `json:"normalised"`             // plug-in over its largest value
	Shuffled     Spread      `json:"shuffled"`               // plug-in with every slot permuted: what the estimator makes of independence
	Excess       Score       `json:"excess"`                 // plug-in above that: a test for dependence, not a size
	Undetermined string      `json:"undetermined,omitempty"` // why ChaoShen is no estimate here: a sentence
}

// Correlation is the total correlation of slots by one estimator, in nats.
type Correlation struct {
	Slots      []Score `json:"slot_entropies"` // [m]
	Sum        Score   `json:"sum"`
	Joint      Score   `json:"joint"`
	Redundancy Score   `json:"redundancy"`
}

// UDR compares models that were trained alike by how much their latents agree. Models are in the order given.
type UDR struct {
	First    [][]Score `json:"first_matrix"`     // latents of model 0 by latents of model 1
	Pairwise [][]Score `json:"pairwise"`         // [model][model]
	Models   []Score   `json:"model_scores"`     // median over the other models; null for a single model
	Chance   []Spread  `json:"chance,omitempty"` // of each model's score with rows shuffled
}

// Size is factors over latents: 1 where each factor could have a latent of its own.
type Size struct {
	All    Score `json:"all"`
	Active Score `json:"active"` // over latents that vary
}

// Capacity is DCI-ES: how much less a probe loses as it grows.
type Capacity struct {
	Probe        string    `json:"probe"`
	Depths       []int     `json:"capacity"` // depths of the forest
	Loss         [][]Score `json:"loss"`     // [F][depth] share of test rows predicted wrongly
	Factors      []Score   `json:"per_factor"`
	Explicitness Score     `json:"explicitness"`
}

// FieldMetric is a score of FieldScores that tables show.
type FieldMetric struct {
	Name  string // in Scores, Chance and Intervals
	Title string
	Asks  string // what it rewards
}

// FieldMetrics lists the scores that tables show, in their order; docs/metrics.md defines each. A score of codes or of numbers only
// is undefined for the other kind.
var FieldMetrics = []FieldMetric{
	{"mig", "MIG", "one latent tells each factor"},
	{"dcimig", "DCIMIG", "each latent tells one factor, each factor has one"},
	{"sap", "SAP", "one latent predicts each factor"},
	{"sap_std", "SAP, standardized", "the same, whatever the latents' scale"},
	{"modularity_active", "Modularity", "a latent tells one factor only"},
	{"explicitness", "Explicitness", "a linear probe reads the factors"},
	{"factorvae", "FactorVAE score", "the stillest latent tells which factor was fixed"},
	{"betavae", "BetaVAE score", "differences of latents tell which factor was shared"},
	{"irs", "IRS", "a latent stays while its factor does"},
	{"low_label_100", "Accuracy, 100 labels", "few labels teach a linear probe the factors"},
	{"low_label_1000", "Accuracy, 1,000 labels", "few labels teach a linear probe the factors"},
	{"dci_es", "DCI-ES explicitness", "a small forest reads what a large one does"},
	{"size", "DCI-ES size", "no more latents than factors"},
	{"infom_adj", "InfoM, bias-corrected", "modularity above chance"},
	{"infoc_adj", "InfoC, bias-corrected", "compactness above chance"},
	{"redundancy_pairs", "Redundancy of pairs (nats)", "slots do not repeat each other"},
}

// Headline is a score of the list with its level of chance and interval, each undefined where there is none.
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
