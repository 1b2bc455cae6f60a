package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

type pointJSON struct {
	Step   int                  `json:"step"`
	Time   time.Time            `json:"time"`
	Values map[string]jsonFloat `json:"values"`
}

// MarshalJSON writes a point as an object.
func (p Point) MarshalJSON() ([]byte, error) {
	values := make(map[string]jsonFloat, len(p.Values))
	for name, v := range p.Values {
		values[name] = jsonFloat(v)
	}
	return json.Marshal(pointJSON{p.Step, p.Time, values})
}

// UnmarshalJSON reads the object that MarshalJSON writes.
func (p *Point) UnmarshalJSON(b []byte) error {
	var in pointJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if in.Step < 1 {
		return fmt.Errorf("step %d is invalid; steps start at 1", in.Step)
	}
	*p = Point{Step: in.Step, Time: in.Time, Values: make(map[string]float64, len(in.Values))}
	for name, v := range in.Values {
		p.Values[name] = float64(v)
	}
	return nil
}

// jsonFloat is a number that survives JSON: non-finite values are encoded as strings.
type jsonFloat float64

func (f jsonFloat) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(nil, strconv.FormatFloat(v, 'g', -1, 64)), nil
	}
	return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
}

func (f *jsonFloat) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(s) >= 2 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%s is not a number", b)
	}
	*f = jsonFloat(v)
	return nil
}
