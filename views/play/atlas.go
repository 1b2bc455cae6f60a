package play

import (
	"fmt"
	"strconv"
	"strings"

	"slotscope/model/measure/figure"
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

// EncodingFailed is the reason why there is no sample.
func EncodingFailed(why string) string { return "Encoding the images failed: " + why }

// Chance is the share of images with a value of a factor, with its 95% interval.
type Chance struct {
	Value, Low, High float64
	Taken, Of        int // images
}

// NewAtlasFactor returns a factor's most frequent value with the share of the images with the code that have it, and of all images.
func NewAtlasFactor(name, value string, own bool, with, all Chance) AtlasFactor {
	return AtlasFactor{
		Name: name, Value: value, Own: own, Share: fmt.Sprintf("%.0f%% (%d of %d)", 100*with.Value, with.Taken, with.Of),
		Interval: fmt.Sprintf("%.0f–%.0f%%", 100*with.Low, 100*with.High), Base: fmt.Sprintf("%.0f%%", 100*all.Value),
	}
}

// ValuesFigure draws the probability of each value of a factor, with the code and over all images.
func ValuesFigure(name string, labels []string, with, all []Chance) string {
	coded, every := figure.Bars{Name: "with this code", Color: 0}, figure.Bars{Name: "all images", Color: 7}
	for v, p := range with {
		coded.Value, coded.Low, coded.High = append(coded.Value, p.Value), append(coded.Low, p.Low), append(coded.High, p.High)
		every.Value = append(every.Value, all[v].Value)
	}
	return figure.BarChart{
		Name: "values", Title: "P(" + name + " | code)", Groups: labels, Bars: []figure.Bars{coded, every}, Width: 420, Height: 150,
		Y: figure.Axis{Label: "probability", Range: [2]float64{0, 1}}, Note: fmt.Sprintf("%d images with this code; error bars: 95%% intervals.", with[0].Of),
	}.Draw().Inline()
}

// Life is the history of a code over the checkpoints of its run, on the same images.
type Life struct {
	Slot, Images int
	Steps        []int     // of the checkpoints
	Shares       []float64 // of the images with the code, by checkpoint
	Born, Died   int       // indices of the first checkpoint that uses the code, and of the first after its last use; −1 if none
}

// Figure draws the share of images with the code at each checkpoint.
func (l Life) Figure() string {
	line := figure.Line{Name: "share", Markers: true, Color: l.Slot, Y: l.Shares}
	for _, step := range l.Steps {
		line.X = append(line.X, float64(step))
	}
	return figure.LineChart{
		Name: "life", Title: "Images with this code", Lines: []figure.Line{line}, Width: 480, Height: 150,
		X: figure.Axis{Label: "step"}, Y: figure.Axis{Label: "share of images"}, Note: fmt.Sprintf("The same %s images at each of the run's %d checkpoints.", views.Count(l.Images), len(l.Steps)),
	}.Draw().Inline()
}

// Said describes when the code was first and last used.
func (l Life) Said() string {
	n, images := len(l.Steps), views.Count(l.Images)
	switch {
	case l.Born < 0:
		return fmt.Sprintf("Unused at all of the run's %d checkpoints, on the same %s images.", n, images)
	case l.Died >= 0:
		return fmt.Sprintf("First used at step %s, last at step %s (%d checkpoints, %s images each).", views.Count(l.Steps[l.Born]), views.Count(l.Steps[l.Died-1]), n, images)
	}
	return fmt.Sprintf("First used at step %s, still used at step %s (%d checkpoints, %s images each).", views.Count(l.Steps[l.Born]), views.Count(l.Steps[n-1]), n, images)
}

// OneCheckpoint says why the history of a model's codes is unknown.
func OneCheckpoint(step int) string {
	return fmt.Sprintf("This model has only one checkpoint (step %s), so its history over training is unknown.", views.Count(step))
}
