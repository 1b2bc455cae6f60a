package sweep

import (
	"time"

	"slotscope/model"
)

// Record is a sweep and its progress in the JSON API.
type Record struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Created    string   `json:"created,omitempty"` // empty before it is stored
	Active     bool     `json:"active"`            // the server works on it
	Evaluating string   `json:"evaluating,omitempty"`
	Problem    string   `json:"problem,omitempty"`
	Runs       int      `json:"runs"`
	Done       int      `json:"done"`
	Failed     int      `json:"failed"`
	Live       int      `json:"live"`
	Out        int      `json:"out"`     // lost a race
	Waiting    int      `json:"waiting"` // runs that wait for a choice
	Steps      int      `json:"steps"`
	AllSteps   int      `json:"all_steps"`
	Left       *float64 `json:"seconds_left"` // null before anything has been measured

	Plan    *Plan          `json:"plan,omitempty"`
	Items   []ItemRecord   `json:"items,omitempty"`
	Choices []ChoiceRecord `json:"choices,omitempty"`

	Estimate *EstimateRecord `json:"estimate,omitempty"` // before it begins
}

// EstimateRecord is Estimate in the JSON API.
type EstimateRecord struct {
	Runs    int      `json:"runs"`
	Done    int      `json:"done"`
	Steps   int      `json:"steps"`
	Seconds *float64 `json:"seconds"` // null if no run of the preset has been timed
	From    string   `json:"from"`
}

// Record returns the estimate for the JSON API.
func (e Estimate) Record() EstimateRecord {
	r := EstimateRecord{Runs: e.Runs, Done: e.Done, Steps: e.Steps, From: e.From}
	if e.Known {
		r.Seconds = &e.Seconds
	}
	return r
}

// ItemRecord is one run of a sweep, with the reason if it failed.
type ItemRecord struct {
	Run    string      `json:"run"`
	Name   string      `json:"name"`
	Stage  Stage       `json:"stage"`
	State  model.State `json:"state"`
	Step   int         `json:"step"`
	Reason string      `json:"reason,omitempty"`
}

// ChoiceRecord is Choice in the JSON API.
type ChoiceRecord struct {
	Model   string        `json:"model"`
	Dataset string        `json:"dataset"`
	Field   string        `json:"field"`
	Values  []string      `json:"values"`
	InfoM   []model.Score `json:"infom"` // mean over each value's seeds
	Seeds   []int         `json:"seeds"` // number of seeds in each mean
	Chosen  string        `json:"chosen"`
	Problem string        `json:"problem,omitempty"`
}

// Head returns the record without plan, items and choices.
func (s Status) Head() Record {
	b := s.Board
	r := Record{ID: s.ID, Name: s.Plan.Name, Active: s.Active, Evaluating: s.Evaluating, Problem: s.Problem,
		Runs: b.Total(), Done: b.Count(Done), Failed: b.Count(Failed), Live: b.Count(Live), Out: b.Count(Out), Waiting: b.Waiting}
	if !s.Created.IsZero() {
		r.Created = s.Created.UTC().Format(time.RFC3339)
	}
	r.Steps, r.AllSteps = b.Steps()
	if left, known := b.Left(); known {
		r.Left = &left
	}
	return r
}

// Record returns the full record.
func (s Status) Record() Record {
	r := s.Head()
	r.Plan, r.Items, r.Choices = &s.Plan, []ItemRecord{}, []ChoiceRecord{}
	for _, item := range s.Board.Items {
		r.Items = append(r.Items, ItemRecord{item.ID, item.Name, item.Stage, item.Run.State, item.Run.Step, item.Problem})
	}
	for _, c := range s.Board.Choices {
		choice := ChoiceRecord{Model: c.Model, Dataset: c.Dataset, Field: c.Axis.Field, Values: c.Axis.Values, Seeds: c.Seeds, Chosen: c.Chosen, Problem: c.Problem}
		for _, v := range c.InfoM {
			choice.InfoM = append(choice.InfoM, model.Score(v))
		}
		r.Choices = append(r.Choices, choice)
	}
	return r
}
