package model

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// PointQuery asks for part of a run's series.
type PointQuery struct {
	Since   int      // exclusive step: points after it
	Until   int      // inclusive step; 0 for the last one stored
	Names   []string // series; empty for all
	Columns int      // 0 for raw points; else min, max and last of each of this many equal spans of steps
	Limit   int      // most steps of a raw page; 0 for the store's own limit
	Attempt int      // of the page that the asker got last; 0 for none
}

// MostColumns is how many spans a page of columns has at most.
const MostColumns = 10_000

// Width is how many steps each column of the page covers that answers the query of a run with points up to step head: the least power of
// two such that the range touches at most Columns spans of it, 1 for raw points. Spans of a width begin at its multiples, so those of a
// growing series stay as they are until the width doubles.
func (q PointQuery) Width(head int) int {
	if q.Columns == 0 {
		return 1
	}
	last := head
	if q.Until > 0 {
		last = min(last, q.Until)
	}
	width := 1
	for last/width-(q.Since+1)/width+1 > min(q.Columns, MostColumns) && width < 1<<40 {
		width *= 2
	}
	return width
}

// PointPage answers a PointQuery from one moment: points, attempt and head belong together.
//
// An asker whose last page had another Attempt drops every step after Resumed and goes on from there.
//
// A raw page may end before the range does (Limit); its last step is then below both Until and Head, and the next page
// starts Since there. A page of columns always covers its range.
type PointPage struct {
	Attempt int                 `json:"attempt"` // grows whenever points that were stored are dropped, as by a resume
	Resumed int                 `json:"resumed"` // steps up to here are as they were in PointQuery.Attempt, else one attempt ago
	Head    int                 `json:"head"`    // last step stored; 0 for none
	Last    int                 `json:"last"`    // last step that this page covers: where to go on from
	Series  map[string][]Sample `json:"series"`  // by name, steps ascending
	Count   int                 `json:"count"`   // samples in the range, before bucketing
}

// Sample is one value of one series; it travels as [step, value], a value that is not finite as "NaN", "+Inf" or "-Inf".
type Sample struct {
	Step  int
	Value float64
}

// MarshalJSON writes [step, value].
func (s Sample) MarshalJSON() ([]byte, error) {
	value, err := jsonFloat(s.Value).MarshalJSON()
	if err != nil {
		return nil, err
	}
	b := append(strconv.AppendInt([]byte{'['}, int64(s.Step), 10), ',')
	return append(append(b, value...), ']'), nil
}

// UnmarshalJSON reads [step, value].
func (s *Sample) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a sample has %d entries; it is [step, value]", len(pair))
	}
	if err := json.Unmarshal(pair[0], &s.Step); err != nil {
		return err
	}
	var value jsonFloat
	if err := value.UnmarshalJSON(pair[1]); err != nil {
		return err
	}
	s.Value = float64(value)
	return nil
}

// Cursor says how far a run's points.jsonl is stored. It changes in the same transaction as the points it speaks of.
type Cursor struct {
	Offset  int64  // bytes of the file that are stored
	Mark    uint64 // hash of the file's content before Offset: a rewritten file has another
	Attempt int    // as PointPage's
	Head    int    // last step stored; 0 for none
}
