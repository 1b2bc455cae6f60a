package report

import "math"

// Rule decides which entries of a column are bold. An entry with fewer than LeastSeeds is ignored.
type Rule string

const (
	// PaperRule: the threshold is the lower end of the entry with the highest upper end; entries whose lower end reaches it are bold.
	PaperRule Rule = "paper"
	// OverlapRule: the same threshold, compared with the upper end, as in QLAE's released tables.
	OverlapRule Rule = "overlap"
	// NoRule makes nothing bold.
	NoRule Rule = "none"
)

// Rules lists the rules, the default first.
func Rules() []Rule { return []Rule{PaperRule, OverlapRule, NoRule} }

// About describes the rule in one sentence.
func (r Rule) About() string {
	switch r {
	case PaperRule:
		return "Bold: the lower end of the 95% interval is at least that of the entry with the highest upper end (the paper's rule)."
	case OverlapRule:
		return "Bold: the upper end of the 95% interval is at least the lower end of the entry with the highest upper end (the rule of QLAE's tables)."
	}
	return "No bold."
}

// Bold applies the rule to one column in which higher is better. Every entry with enough seeds counts for the threshold; only entries
// with may set can be bold.
func (r Rule) Bold(column []Summary, may []bool) []bool {
	bold := make([]bool, len(column))
	if r != PaperRule && r != OverlapRule {
		return bold
	}
	highest, threshold := math.Inf(-1), math.NaN()
	for _, s := range column {
		if s.N >= LeastSeeds && (s.Hi > highest || s.Hi == highest && s.Lo > threshold) {
			highest, threshold = s.Hi, s.Lo
		}
	}
	for i, s := range column {
		end := s.Lo
		if r == OverlapRule {
			end = s.Hi
		}
		bold[i] = may[i] && s.N >= LeastSeeds && end >= threshold
	}
	return bold
}
