package report

import "math"

// Rule decides which entries of a column are set in bold. An entry with fewer than LeastSeeds takes no part.
type Rule string

const (
	// PaperRule: the entry with the highest upper end gives its lower end as a threshold; bold are those whose lower end
	// reaches it.
	PaperRule Rule = "paper"
	// OverlapRule: the same threshold, reached by the upper end; it is what QLAE's released tables do.
	OverlapRule Rule = "overlap"
	// NoRule sets nothing in bold.
	NoRule Rule = "none"
)

// Rules lists the rules by name, the default first.
func Rules() []Rule { return []Rule{PaperRule, OverlapRule, NoRule} }

// About is the rule in a sentence.
func (r Rule) About() string {
	switch r {
	case PaperRule:
		return "Bold: the lower end of the 95% interval is not below the lower end of the entry with the highest upper end (the paper's rule)."
	case OverlapRule:
		return "Bold: the upper end of the 95% interval is not below the lower end of the entry with the highest upper end (the rule of QLAE's tables)."
	}
	return "Nothing is set in bold."
}

// Bold applies the rule to one column in which higher is better. Every entry with enough seeds takes part; only those that may
// claim it are set in bold.
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
