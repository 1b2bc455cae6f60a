package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"slotscope/model"
)

// pointAnswer is a page of points; smoothed has the moving averages of the same series, computed over all their points.
type pointAnswer struct {
	model.PointPage
	smoothed map[string][]model.Sample
}

// thinDigits is the number of significant digits of thinned values and averages, which are only drawn.
const thinDigits = 7

// send writes the response. It is encoded by hand because pages of long runs have a hundred thousand samples.
func (a pointAnswer) send(w http.ResponseWriter, thinned bool) {
	b := make([]byte, 0, 64<<10)
	for _, f := range []struct {
		name  string
		value int
	}{{"attempt", a.Attempt}, {"resumed", a.Resumed}, {"head", a.Head}, {"last", a.Last}, {"count", a.Count}} {
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		b = strconv.AppendInt(b, int64(f.value), 10)
	}
	b[0] = '{'
	b = appendSeries(append(b, `,"series":`...), a.Series, thinned)
	if a.smoothed != nil {
		b = appendSeries(append(b, `,"smoothed":`...), a.smoothed, true)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(b, "}\n"...)) // an error means that the client has gone
}

func appendSeries(b []byte, all map[string][]model.Sample, thinned bool) []byte {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, _ := json.Marshal(name) // a string never fails
		b = append(append(b, quoted...), ":["...)
		for j, s := range all[name] {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(append(b, '['), int64(s.Step), 10)
			b = append(appendValue(append(b, ','), s.Value, thinned), ']')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendValue appends a number, or a string such as "NaN" if it is not finite.
func appendValue(b []byte, v float64, thinned bool) []byte {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return strconv.AppendQuote(b, strconv.FormatFloat(v, 'g', -1, 64))
	case !thinned:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'g', thinDigits, 64)
}

// appendLines writes one CSV line per step of a page: the step, then the value of each column, empty if there is none.
func appendLines(b *bytes.Buffer, page model.PointPage, columns []string) {
	left := make([][]model.Sample, len(columns))
	for i, name := range columns {
		left[i] = page.Series[name]
	}
	line := make([]byte, 0, 24*len(columns))
	for {
		step := 0
		for _, s := range left {
			if len(s) > 0 && (step == 0 || s[0].Step < step) {
				step = s[0].Step
			}
		}
		if step == 0 {
			return
		}
		line = strconv.AppendInt(line[:0], int64(step), 10)
		for i, s := range left {
			line = append(line, ',')
			if len(s) > 0 && s[0].Step == step {
				line = strconv.AppendFloat(line, s[0].Value, 'g', -1, 64)
				left[i] = s[1:]
			}
		}
		b.Write(append(line, '\n'))
	}
}
