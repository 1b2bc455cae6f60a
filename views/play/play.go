// Package play renders the playground.
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
	Continuous      bool             // codes represent real numbers
	Text            func(int) string // formats a code
	H, W, C         int              // of images
	About           string           // origin of the checkpoint, in full
	Origin          string           // the same, abbreviated
	Weights         string           // URL of the weights for decoding in the browser; empty if the server decodes
	Frozen          []PlayFact       // facts that a standalone page lists about itself
	Checkpoints     []PlayOption
	Others          []PlayOption // checkpoints of the same dataset, for the side-by-side view
	Steps           []int        // of the run's checkpoints
	Dataset         *PlayDataset // nil if it cannot be opened
	Problem         string
	Nameable        bool // slots and codes can be renamed, because names are stored with a run

	A, B          PlaySide
	Codes, BCodes []int // of the rows as edited
	Order         []int // slots in the order in which the strip swaps them
	Slot          int   // slot shown in the palette
	Pair          []int // indices of the initial images A and B; empty without a dataset
	Query         string
	Image         string // of row A

	Slots   []PlaySlot
	Groups  []PlayGroup // slots by factor; every slot is in one group, even without a factor
	Counted PlayCounted
	Swaps   []PlayCell // A with each slot of B
	Strip   []PlayCell // from A to B, m+1
	Palette []PlayEntry
}

// PlayOption is a checkpoint in a select box.
type PlayOption struct {
	Value, Text string
	Chosen      bool
}

// PlayDataset is the dataset of images A and B.
type PlayDataset struct {
	Name    string       `json:"name"`
	Title   string       `json:"title"`
	Len     int          `json:"len"`
	Factors []PlayFactor `json:"factors"`

	Complete bool `json:"complete"` // every combination of values occurs, so swaps have true images
}

// PlayFactor is a factor and the names of its values.
type PlayFactor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// PlaySide is the source image of a row.
type PlaySide struct {
	Name           string  `json:"name"`  // "A" or "B"
	Index          int     `json:"index"` // in the dataset; −1 if only codes are known
	Classes        []int   `json:"classes"`
	Codes          []int   `json:"codes"`
	PSNR           float64 `json:"psnr"` // dB of the reconstruction
	Original       string  `json:"original"`
	Reconstruction string  `json:"reconstruction"`
}

// PlaySlot is a column heading.
type PlaySlot struct {
	Index  int                 `json:"index"`
	Known  bool                `json:"known"`  // whether codes have been counted
	Name   string              `json:"name"`   // "shape", "shape + wall hue", "mixed", "unused"; empty if the dataset has no factors
	Called string              `json:"called"` // user-chosen name; empty if none
	Pins   []int               `json:"pins"`   // codes that the user pinned
	Used   int                 `json:"used"`   // codes that the slot takes
	Shares []views.FactorShare `json:"shares"` // one bar per factor; empty if the dataset has none
	First  int                 `json:"first"`  // factor with the highest NMI; −1 if none
	Codes  []PlayCode          `json:"codes"`  // named codes only
}

// PlayCode is the meaning of a slot's code.
type PlayCode struct {
	Code int      `json:"code"`
	Name string   `json:"name"`           // "0.6", "cube/cylinder", or a user-chosen name
	Told string   `json:"told,omitempty"` // the name by factor value, if the user chose another
	Hues []string `json:"hues,omitempty"` // CSS colours, if the slot's factor is a hue
	// Classes are the values of the slot's first factor that occur with the code, most frequent first.
	Classes []int   `json:"classes"`
	Share   float64 `json:"share"` // fraction of the code's images that have one of Classes
}

// PlayGroup is the slots of one factor, shown under one heading and swapped together.
type PlayGroup struct {
	Index  int                 `json:"index"`
	Factor int                 `json:"factor"` // −1 if the slots have none
	Key    string              `json:"key"`    // the factor's name in the dataset, used to rename the group; empty if none
	Owned  bool                `json:"owned"`  // a slot is owned by the factor
	Name   string              `json:"name"`
	Called string              `json:"called"` // user-chosen name
	Slots  []int               `json:"slots"`
	Shares []views.FactorShare `json:"shares"` // maximum over its slots, per factor
	Swap   PlayCell            `json:"-"`      // A with these slots from B
}

// PlayCounted is the progress of counting codes, and the number of images behind labels and counts.
type PlayCounted struct {
	Ready   bool   `json:"ready"`
	Early   bool   `json:"early"` // names are based on the first images only
	Done    int    `json:"done"`
	Of      int    `json:"of"`
	Problem string `json:"problem"`
}

// PlayCell is an image of the swaps or the strip, and its link targets.
type PlayCell struct {
	Slot           int // −1 for the strip's first
	Codes          string
	Image          string
	Same           bool // both rows have the same code
	Href, SlotHref string
	Earlier, Later string // URLs that move this slot one place earlier or later in the strip
}

// PlayEntry is a code in the palette.
type PlayEntry struct {
	Code, Count     int
	Text            string
	Unseen, Current bool
	Pinned          bool
	Codes           string // A's codes with this one in the slot
	Image, Href     string
}

// playData is the initial state of the page's JavaScript modules.
type playData struct {
	Key     string       `json:"key"`
	M       int          `json:"m"`
	K       int          `json:"k"`
	H       int          `json:"h"`
	W       int          `json:"w"`
	C       int          `json:"c"`
	Real    bool         `json:"real"` // code c is the real number (c − (k−1)/2)/64
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

// PlayFact is one fact about a standalone page.
type PlayFact struct{ Name, Text string }

func (v PlayView) data() playData {
	return playData{v.Key, v.M, v.K, v.H, v.W, v.C, v.Continuous, v.Dataset, v.A, v.B, v.Codes, v.BCodes, v.Order, v.Slot, v.Slots, v.Groups, v.Counted, v.Weights, v.Nameable, v.Preset, v.Step, v.Pair}
}

// api returns the URL of one of the checkpoint's downloads for this state.
func (v PlayView) api(name string) string { return "/api/play/" + v.Key + "/" + name + "?" + v.Query }

// code returns the meaning of code c of slot i, without a name if unknown.
func (v PlayView) code(i, c int) PlayCode {
	for _, known := range v.Slots[i].Codes {
		if known.Code == c {
			return known
		}
	}
	return PlayCode{Code: c}
}

// seen returns the text that playCode renders for a code. Accessible names start with exactly this text.
func (v PlayView) seen(i, c int) string {
	return strings.TrimSpace(v.code(i, c).Name + " " + v.Text(c))
}

// columns returns the slots in column order, those of a group next to each other.
func (v PlayView) columns() (slots []int) {
	for _, g := range v.Groups {
		slots = append(slots, g.Slots...)
	}
	return slots
}

// bars describes FactorBars in words.
func bars(shares []views.FactorShare) string {
	parts := make([]string, len(shares))
	for i, f := range shares {
		parts[i] = f.Factor + " " + strconv.FormatFloat(100*f.Share, 'f', 0, 64) + "%"
	}
	return strings.Join(parts, ", ")
}

// title returns the tooltip of a group's heading.
func (g PlayGroup) title() string {
	text := "Drag the group onto A or B, or click it and then the row."
	if len(g.Shares) > 0 {
		text = "NMI with each factor (maximum over its slots): " + bars(g.Shares) + ". " + text
	}
	return text
}

// long reports whether a group's name has more than 9 letters and so is set smaller over a single column, as in grid.js.
func (g PlayGroup) long() bool { return utf8.RuneCountInString(groupName(g)) > 9 }

// numbers lists the slots of a group: "slot 3", "slots 1 and 2".
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

// hue returns the index of slot i's colour, one of nine.
func hue(i int) string { return strconv.Itoa(i % 9) }

// shown returns the slot's displayed name: user-chosen, otherwise by factor.
func (s PlaySlot) shown() string { return cmp.Or(s.Called, s.Name) }

// title returns the tooltip of the heading; n is the number of images counted.
func (s PlaySlot) title(n int) string {
	if !s.Known {
		return "Measuring which factors this slot encodes …"
	}
	text := fmt.Sprintf("Slot %d: %s. Uses %d codes on %d images.", s.Index, s.shown(), s.Used, n)
	if s.shown() == "" {
		text = fmt.Sprintf("Slot %d uses %d codes on %d images.", s.Index, s.Used, n)
	}
	if len(s.Shares) > 0 {
		text += " NMI with each factor: " + bars(s.Shares) + "."
	}
	return text
}

// beside reports whether there is another checkpoint to show side by side.
func (v PlayView) beside() bool { return v.Dataset != nil && (len(v.Others) > 0 || len(v.Steps) > 1) }

// factors returns the number of factors of the dataset; 0 if it cannot be opened.
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

// kept returns the query parameters that a form for one side leaves unchanged.
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

// short abbreviates a count to fit its column: 940, 1.3k.
func short(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}
