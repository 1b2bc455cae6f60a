package model

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// PointQuery selects part of a run's series.
type PointQuery struct {
	Since   int      // exclusive first step
	Until   int      // inclusive last step; 0 for the last one stored
	Names   []string // series; empty for all
	Columns int      // 0 for raw points; otherwise min, max and last of this many equal spans of steps
	Limit   int      // most steps in a raw page; 0 for the store's own limit
	Attempt int      // Attempt of the client's previous page; 0 for none
}

// MostColumns is the maximum number of spans in a page of columns.
const MostColumns = 10_000

// Width returns the steps covered by each column of the page, for a run with points up to step head: the smallest power of two for
// which the range touches at most Columns spans, 1 for raw points. Spans begin at multiples of the width, so those of a growing series
// do not change until the width doubles.
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

// PointPage is the result of a PointQuery, a consistent snapshot of points, attempt and head.
//
// A client whose previous page had another Attempt must drop every step after Resumed and continue from there.
//
// A raw page may end before the range does (Limit); its last step is then below both Until and Head, and the next page
// starts Since there. A page of columns always covers its range.
type PointPage struct {
	Attempt int                 `json:"attempt"` // increases whenever stored points are dropped, as by a resume
	Resumed int                 `json:"resumed"` // steps up to here are unchanged since PointQuery.Attempt, or since the previous attempt
	Head    int                 `json:"head"`    // last step stored; 0 for none
	Last    int                 `json:"last"`    // last step that this page covers; continue from here
	Series  map[string][]Sample `json:"series"`  // by name, steps ascending
	Count   int                 `json:"count"`   // samples in the range, before bucketing
}

// Sample is one value of one series. JSON encodes it as [step, value], a non-finite value as "NaN", "+Inf" or "-Inf".
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
		return fmt.Errorf("a sample has %d elements; expected [step, value]", len(pair))
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

// Cursor records how much of a run's points.jsonl is stored. It changes in the same transaction as the points.
type Cursor struct {
	Offset  int64  // bytes of the file that are stored
	Mark    uint64 // hash of the file's content before Offset; it differs if the file was rewritten
	Attempt int    // as in PointPage
	Head    int    // last step stored; 0 for none
}
