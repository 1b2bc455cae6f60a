// Package play draws the playground.
package play

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"slotscope/views"
)

// PlayView is one state of the playground.
type PlayView struct {
	Key, Title, Run string // of the checkpoint; Run is empty for the embedded one
	Named           string // the checkpoint in a few words: "demo model, step 20,000"
	Step            int
	Engine          string
	Model, Preset   string
	M, K, D         int              // slots, codes of each, dimension
	Continuous      bool             // codes stand for real numbers
	Text            func(int) string // how a code is written
	H, W, C         int              // of images
	About           string           // where the checkpoint comes from, in full
	Origin          string           // the same in a few words
	Weights         string           // address of what a browser computes the model with; empty where the server decodes
	Frozen          []PlayFact       // what a page without a server says of itself
	Checkpoints     []PlayOption
	Others          []PlayOption // checkpoints of the same dataset, to stand beside
	Steps           []int        // of the run's checkpoints
	Dataset         *PlayDataset // nil where it cannot be opened
	Problem         string
	Nameable        bool // slots and codes can be renamed: there is a run to keep names beside

	A, B          PlaySide
	Codes, BCodes []int // of the rows as edited
	Order         []int // in which the strip swaps slots
	Slot          int   // whose entries the palette shows
	Pair          []int // numbers of the images that the playground begins with; empty without a dataset
	Query         string
	Image         string // of row A

	Slots   []PlaySlot
	Groups  []PlayGroup // slots of the same factor; all slots, whether they have a factor or not
	Counted PlayCounted
	Swaps   []PlayCell // A with each slot of B
	Strip   []PlayCell // from A to B, m+1
	Palette []PlayEntry
}

// PlayOption is one checkpoint on offer.
type PlayOption struct {
	Value, Text string
	Chosen      bool
}

// PlayDataset is where A and B come from.
type PlayDataset struct {
	Name    string       `json:"name"`
	Title   string       `json:"title"`
	Len     int          `json:"len"`
	Factors []PlayFactor `json:"factors"`

	Complete bool `json:"complete"` // every combination of values occurs, so swaps have true pictures
}

// PlayFactor is a factor with the names of its values.
type PlayFactor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// PlaySide is the image that a row started from.
type PlaySide struct {
	Name           string  `json:"name"`  // "A" or "B"
	Index          int     `json:"index"` // in the dataset; −1 where only codes are known
	Classes        []int   `json:"classes"`
	Codes          []int   `json:"codes"`
	PSNR           float64 `json:"psnr"` // dB of the reconstruction
	Original       string  `json:"original"`
	Reconstruction string  `json:"reconstruction"`
}

// PlaySlot is the heading of a column.
type PlaySlot struct {
	Index  int                 `json:"index"`
	Known  bool                `json:"known"`  // whether codes have been counted
	Name   string              `json:"name"`   // "shape", "shape + wall hue", "mixed", "unused"; empty where the dataset has no factors
	Called string              `json:"called"` // by a person; empty where nobody gave a name
	Pins   []int               `json:"pins"`   // codes that a person pinned
	Used   int                 `json:"used"`   // codes that the slot takes
	Shares []views.FactorShare `json:"shares"` // a bar per factor; empty where the dataset has none
	First  int                 `json:"first"`  // factor that the slot tells most of; −1 where it tells of none
	Codes  []PlayCode          `json:"codes"`  // what its codes stand for; those that are not here have no name
}

// PlayCode is what a code of a slot stands for.
type PlayCode struct {
	Code int      `json:"code"`
	Name string   `json:"name"`           // "0.6", "cube/cylinder", or what a person called it
	Told string   `json:"told,omitempty"` // the name by factor value, where a person gave another
	Hues []string `json:"hues,omitempty"` // CSS colours, where the slot's factor is a hue
	// Classes are the values of the slot's first factor that the code goes with, the most frequent first.
	Classes []int   `json:"classes"`
	Share   float64 `json:"share"` // of the code's images that have one of them
}

// PlayGroup is the slots of one factor, which stand under one heading and are swapped together.
type PlayGroup struct {
	Index  int                 `json:"index"`
	Factor int                 `json:"factor"` // −1 where the slots have none
	Key    string              `json:"key"`    // the factor as the dataset writes it, by which the group is renamed; empty without one
	Owned  bool                `json:"owned"`  // a slot is the factor's own
	Name   string              `json:"name"`
	Called string              `json:"called"` // by a person
	Slots  []int               `json:"slots"`
	Shares []views.FactorShare `json:"shares"` // the largest of its slots, for each factor
	Swap   PlayCell            `json:"-"`      // A with these slots of B
}

// PlayCounted says on how many images labels and counts rest.
type PlayCounted struct {
	Ready   bool   `json:"ready"`
	Early   bool   `json:"early"` // names rest on the first images only
	Done    int    `json:"done"`
	Of      int    `json:"of"`
	Problem string `json:"problem"`
}

// PlayCell is a picture of the swaps or of the strip, with where a click on it leads.
type PlayCell struct {
	Slot           int // −1 for the strip's first
	Codes          string
	Image          string
	Same           bool // both rows have the same code
	Href, SlotHref string
	Earlier, Later string // addresses at which the strip takes this slot one place sooner or later
}

// PlayEntry is an entry of the palette.
type PlayEntry struct {
	Code, Count     int
	Text            string
	Unseen, Current bool
	Pinned          bool
	Codes           string // of A with the code
	Image, Href     string
}

// playData is what the page's modules start from.
type playData struct {
	Key     string       `json:"key"`
	M       int          `json:"m"`
	K       int          `json:"k"`
	H       int          `json:"h"`
	W       int          `json:"w"`
	C       int          `json:"c"`
	Real    bool         `json:"real"` // codes stand for (c − (k−1)/2)/64
	Dataset *PlayDataset `json:"dataset"`
	A       PlaySide     `json:"a"`
	B       PlaySide     `json:"b"`
	Codes   []int        `json:"codes"`
	BCodes  []int        `json:"bcodes"`
	Order   []int        `json:"order"`
	Slot    int          `json:"slot"`
	Slots   []PlaySlot   `json:"slots"`
	Groups  []PlayGroup  `json:"groups"`
	Counted PlayCounted  `json:"counted"`
	Weights string       `json:"weights"`
	Names   bool         `json:"nameable"`
	Preset  string       `json:"preset"`
	Step    int          `json:"step"`
	Pair    []int        `json:"pair"`
}

// PlayFact is a line about a frozen page.
type PlayFact struct{ Name, Text string }

func (v PlayView) data() playData {
	return playData{v.Key, v.M, v.K, v.H, v.W, v.C, v.Continuous, v.Dataset, v.A, v.B, v.Codes, v.BCodes, v.Order, v.Slot, v.Slots, v.Groups, v.Counted, v.Weights, v.Nameable, v.Preset, v.Step, v.Pair}
}

// api is the address of one of the checkpoint's downloads for this state.
func (v PlayView) api(name string) string { return "/api/play/" + v.Key + "/" + name + "?" + v.Query }

// code is what a code of slot i stands for; without a name where nothing is known.
func (v PlayView) code(i, c int) PlayCode {
	for _, known := range v.Slots[i].Codes {
		if known.Code == c {
			return known
		}
	}
	return PlayCode{Code: c}
}

// seen is what playCode writes of a code: names for those who do not see it begin with it, word for word.
func (v PlayView) seen(i, c int) string {
	return strings.TrimSpace(v.code(i, c).Name + " " + v.Text(c))
}

// columns are the slots in the order in which they stand, those of a group beside each other.
func (v PlayView) columns() (slots []int) {
	for _, g := range v.Groups {
		slots = append(slots, g.Slots...)
	}
	return slots
}

// bars says in words what FactorBars draws.
func bars(shares []views.FactorShare) string {
	parts := make([]string, len(shares))
	for i, f := range shares {
		parts[i] = f.Factor + " " + strconv.FormatFloat(100*f.Share, 'f', 0, 64) + "%"
	}
	return strings.Join(parts, ", ")
}

// title explains a group's heading.
func (g PlayGroup) title() string {
	text := "Drag the group onto A or B, or click it and then the row."
	if len(g.Shares) > 0 {
		text = "NMI with each factor, largest of the slots: " + bars(g.Shares) + ". " + text
	}
	return text
}

// long says whether a group's name is written smaller over a single column: where it has more than 9 letters, as in grid.js.
func (g PlayGroup) long() bool { return utf8.RuneCountInString(groupName(g)) > 9 }

// numbers names the slots of a group: "slot 3", "slots 1 and 2".
func (g PlayGroup) numbers() string {
	parts := make([]string, len(g.Slots))
	for n, i := range g.Slots {
		parts[n] = strconv.Itoa(i)
	}
	if len(parts) == 1 {
		return "slot " + parts[0]
	}
	return "slots " + strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// hue is which of the nine slot colours slot i carries.
func hue(i int) string { return strconv.Itoa(i % 9) }

// shown is what the page calls the slot: a person's name first.
func (s PlaySlot) shown() string { return cmp.Or(s.Called, s.Name) }

// title explains the heading.
func (s PlaySlot) title(n int) string {
	if !s.Known {
		return "Counting which factors this slot stands for."
	}
	text := fmt.Sprintf("Slot %d: %s. It takes %d codes on %d images.", s.Index, s.shown(), s.Used, n)
	if s.shown() == "" {
		text = fmt.Sprintf("Slot %d takes %d codes on %d images.", s.Index, s.Used, n)
	}
	if len(s.Shares) > 0 {
		text += " NMI with each factor: " + bars(s.Shares) + "."
	}
	return text
}

// beside says whether there is another checkpoint to show side by side.
func (v PlayView) beside() bool { return v.Dataset != nil && (len(v.Others) > 0 || len(v.Steps) > 1) }

// factors is how many factors the dataset has; none where it cannot be opened.
func (v PlayView) factors() int {
	if v.Dataset == nil {
		return 0
	}
	return len(v.Dataset.Factors)
}

func joinCodes(codes []int) string {
	parts := make([]string, len(codes))
	for i, c := range codes {
		parts[i] = strconv.Itoa(c)
	}
	return strings.Join(parts, ".")
}

// kept are the entries of the address that a form for one side leaves as they are.
func (v PlayView) kept(side string) map[string]string {
	out := map[string]string{}
	if side == "a" {
		if v.B.Index >= 0 {
			out["b"] = strconv.Itoa(v.B.Index)
		}
		out["bcodes"] = joinCodes(v.BCodes)
		return out
	}
	if v.A.Index >= 0 {
		out["a"] = strconv.Itoa(v.A.Index)
	}
	out["codes"] = joinCodes(v.Codes)
	return out
}

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// short keeps a count within its column: 940, 1.3k.
func short(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}
