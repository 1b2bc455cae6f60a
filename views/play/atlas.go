package play

import (
	"fmt"
	"strconv"
	"strings"

	"slotscope/views"
)

// AtlasView is what is known of a slot, or of one of its codes.
type AtlasView struct {
	Key, Title, Run string
	M, Slot         int
	Slots           []PlaySlot
	Images          int // of the sample
	Code            *AtlasCode
	Codes           []AtlasEntry // that the slot takes, most used first
	Unused          int          // codes that it takes on none of the images
	Shares          []views.FactorShare
	Done, Of        int    // images encoded, while the sample is not complete
	Problem         string // why there is none
	Query           string // of the playground that leads here
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

// AtlasCode is what is known of a code.
type AtlasCode struct {
	Code         int
	Text         string
	Known        PlayCode
	Called       string
	Count        int
	Image        string // of the playground's A with the code
	Carriers     []AtlasImage
	Values       []string // drawings: the probability of each value of the slot's factors
	Factors      []AtlasFactor
	Neighbours   []AtlasEntry
	Life         string // drawing: the share of images that take it, over the checkpoints; empty where there is one only
	Born         string // when it was first and last taken, as a sentence
	Waiting      bool   // for the other checkpoints
	Before, Next *AtlasEntry
	Play         string // the playground with the code in A
	Refused      string // why a name was not kept
}

// AtlasImage is an image of the dataset.
type AtlasImage struct {
	Index                int
	Original, Href, Text string
}

// AtlasFactor is what a code tells of a factor.
type AtlasFactor struct {
	Name, Value, Share, Interval, Base string
	Own                                bool // the slot is named after it
}

func (v AtlasView) slot() PlaySlot { return v.Slots[v.Slot] }

func (v AtlasView) at(slot int) string { return fmt.Sprintf("/play/%s/atlas/%d", v.Key, slot) }

// title heads the page.
func (v AtlasView) title() string {
	title := fmt.Sprintf("Slot %d", v.Slot)
	if v.Code != nil {
		title = fmt.Sprintf("Code %s of slot %d", v.Code.Text, v.Slot)
	}
	return title
}

// facts are the entry's code, where a name stands above it, its distance and, once images are counted, how many of them carry it.
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
