package play

import (
	"fmt"
	"strconv"
	"strings"

	"slotscope/views"
)

// AtlasView is the atlas page of a slot or of one of its codes.
type AtlasView struct {
	Key, Title, Run string
	M, Slot         int
	Slots           []PlaySlot
	Images          int // of the sample
	Code            *AtlasCode
	Codes           []AtlasEntry // codes that the slot uses, most used first
	Unused          int          // number of codes used on none of the images
	Shares          []views.FactorShare
	Done, Of        int    // images encoded so far and in total, while the sample is incomplete
	Problem         string // why there is no sample
	Query           string // of the playground that links here
}

// AtlasEntry is a code in a list.
type AtlasEntry struct {
	Code     int    `json:"code"`
	Text     string `json:"text"`
	Name     string `json:"name"`
	Count    int    `json:"count"`
	Share    string `json:"-"`
	Distance string `json:"-"`
	Image    string `json:"image"`
	Href     string `json:"href"`
}

// AtlasCode is the part of the page about one code.
type AtlasCode struct {
	Code         int
	Text         string
	Known        PlayCode
	Called       string
	Count        int
	Image        string // the playground's A with the code
	Carriers     []AtlasImage
	Values       []string // figures: the probability of each value of the slot's factors
	Factors      []AtlasFactor
	Neighbours   []AtlasEntry
	Life         string // figure: the share of images with the code, over the checkpoints; empty if there is only one
	Born         string // when it was first and last used, as a sentence
	Waiting      bool   // the other checkpoints are not encoded yet
	Before, Next *AtlasEntry
	Play         string // URL of the playground with the code in A
	Refused      string // why a name was not saved
}

// AtlasImage is an image of the dataset.
type AtlasImage struct {
	Index                int
	Original, Href, Text string
}

// AtlasFactor is the most frequent value of a factor among images with a code.
type AtlasFactor struct {
	Name, Value, Share, Interval, Base string
	Own                                bool // the slot is named after it
}

func (v AtlasView) slot() PlaySlot { return v.Slots[v.Slot] }

func (v AtlasView) at(slot int) string { return fmt.Sprintf("/play/%s/atlas/%d", v.Key, slot) }

// title returns the heading of the page.
func (v AtlasView) title() string {
	title := fmt.Sprintf("Slot %d", v.Slot)
	if v.Code != nil {
		title = fmt.Sprintf("Code %s of slot %d", v.Code.Text, v.Slot)
	}
	return title
}

// facts returns the entry's code, if a name is shown above it, its distance and, once images are counted, how many have it.
func (e AtlasEntry) facts(counted bool) string {
	var facts []string
	if e.Name != "" {
		facts = append(facts, e.Text)
	}
	if e.Distance != "" {
		facts = append(facts, e.Distance)
	}
	if counted {
		facts = append(facts, "×"+strconv.Itoa(e.Count))
	}
	return strings.Join(facts, " · ")
}
