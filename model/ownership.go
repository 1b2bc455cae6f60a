package model

// Ownership assigns factors to slots, by one rule for every page, report and evaluation:
// metric.Own measures it, metric.OwnersOf applies the thresholds.
type Ownership struct {
	NMI    [][]Score `json:"nmi"`    // [F][m] I(s; z) / H(s) above chance, 0 to 1; undefined for a factor with one value
	Slots  []Owner   `json:"slots"`  // [m]
	Groups []Group   `json:"groups"` // one per first factor, in factor order
	// Coverage is the share of varying factors that own at least one slot.
	Coverage Score `json:"coverage"`
}

// OwnerKind is a slot's relation to the factors.
type OwnerKind string

const (
	Owned   OwnerKind = "owned"   // the first factor's NMI is at least 0.5, and at least 0.2 above the second's
	Several OwnerKind = "several" // not owned; named after every factor with an NMI of at least 0.3
	Mixed   OwnerKind = "mixed"   // no factor has an NMI of at least 0.3
	Unused  OwnerKind = "unused"  // the slot does not vary
)

// Owner describes which factors one slot is named after.
type Owner struct {
	Kind    OwnerKind `json:"kind"`
	First   int       `json:"first"`   // factor with the largest NMI, also for mixed slots; −1 if the slot carries information on none
	Factors []int     `json:"factors"` // factors that the slot is named after, largest NMI first; empty for mixed and unused slots
}

// Factor returns the factor that owns the slot, −1 if none does.
func (o Owner) Factor() int {
	if o.Kind == Owned {
		return o.First
	}
	return -1
}

// Group is the set of slots with the same first factor.
type Group struct {
	Factor int   `json:"factor"`
	Slots  []int `json:"slots"` // ascending
	Owned  bool  `json:"owned"` // the factor owns at least one of them
}

// Owned returns the number of factors that own at least one slot.
func (o Ownership) Owned() (n int) {
	for _, g := range o.Groups {
		if g.Owned {
			n++
		}
	}
	return n
}
