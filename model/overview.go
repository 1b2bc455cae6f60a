package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Overview is a run as shown in lists, with the last value of every series and its scores.
type Overview struct {
	Run
	Values     Values `json:"values"`               // last measured value by series
	Scores     Values `json:"scores"`               // defined scores of the last evaluation, by metric
	Evaluation State  `json:"evaluation,omitempty"` // state of the last evaluation; "" if none was requested
}

// Values are numbers by name. JSON encodes non-finite values as in Point: "NaN", "+Inf", "-Inf".
type Values map[string]float64

// MarshalJSON writes an object, {} for nil.
func (v Values) MarshalJSON() ([]byte, error) {
	out := make(map[string]jsonFloat, len(v))
	for name, value := range v {
		out[name] = jsonFloat(value)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the object that MarshalJSON writes.
func (v *Values) UnmarshalJSON(b []byte) error {
	var in map[string]jsonFloat
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*v = make(Values, len(in))
	for name, value := range in {
		(*v)[name] = float64(value)
	}
	return nil
}

// Limits on a run's tags.
const (
	LongestTag = 40 // characters
	MostTags   = 20 // per run
)

// Tags are the labels of a run, sorted, unique and joined by spaces, so that runs are comparable with ==. JSON encodes them as an array.
type Tags string

// NewTags sorts tags and removes duplicates; it returns an Invalid for an invalid tag or too many tags.
func NewTags(tags ...string) (Tags, error) {
	var all []string
	for _, tag := range tags {
		tag = strings.TrimSpace(tag)
		if err := CheckTag(tag); err != nil {
			return "", err
		}
		all = append(all, tag)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > MostTags {
		return "", Invalid{"tags": fmt.Sprintf("%d tags is more than the %d a run can have; remove some", len(all), MostTags)}
	}
	return Tags(strings.Join(all, " ")), nil
}

// CheckTag returns an Invalid unless tag is 1 to 40 letters, digits and -_.:/+ in any script, so that queries can name it.
func CheckTag(tag string) error {
	n := utf8.RuneCountInString(tag)
	if !utf8.ValidString(tag) || n < 1 || n > LongestTag || strings.ContainsFunc(tag, notInTag) {
		return Invalid{"tags": fmt.Sprintf("%q is not a tag; use 1–%d letters, digits and - _ . : / +", tag, LongestTag)}
	}
	return nil
}

func notInTag(r rune) bool {
	return r <= ' ' || strings.ContainsRune(`"'(),<=>!\`, r) || r == 0x7f || r == 0xa0
}

// All lists the tags.
func (t Tags) All() []string { return strings.Fields(string(t)) }

// Has reports whether tag is among the tags.
func (t Tags) Has(tag string) bool { return slices.Contains(t.All(), tag) }

// MarshalJSON writes an array, [] for none.
func (t Tags) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]string{}, t.All()...))
}

// UnmarshalJSON reads an array of tags.
func (t *Tags) UnmarshalJSON(b []byte) error {
	var in []string
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	tags, err := NewTags(in...)
	*t = tags
	return err
}

// Marks are changes to a run's tags, star and archive mark; nil and empty fields change nothing.
type Marks struct {
	Add      []string `json:"add_tags,omitempty"`
	Remove   []string `json:"remove_tags,omitempty"`
	Star     *bool    `json:"star,omitempty"`
	Archived *bool    `json:"archived,omitempty"` // hidden from lists by default
}

// Apply returns a run's marks after the changes; it returns an Invalid for an invalid tag or too many tags.
func (m Marks) Apply(tags Tags, star, archived bool) (Tags, bool, bool, error) {
	for _, tag := range m.Remove {
		if err := CheckTag(tag); err != nil {
			return tags, star, archived, err
		}
	}
	left := slices.DeleteFunc(tags.All(), func(tag string) bool { return slices.Contains(m.Remove, tag) })
	now, err := NewTags(append(left, m.Add...)...)
	if err != nil {
		return tags, star, archived, err
	}
	if m.Star != nil {
		star = *m.Star
	}
	if m.Archived != nil {
		archived = *m.Archived
	}
	return now, star, archived, nil
}
