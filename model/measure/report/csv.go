package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
)

var summaryHead = []string{"section", "dataset", "model", "label", "metric", "n", "mean", "sd", "t", "ci95_low", "ci95_high", "bold_paper", "bold_overlap",
	"published_mean", "published_half", "published_images", "difference", "equivalent", "why", "seeds", "chance", "own_low", "own_high"}

// Summary writes summary.csv: a line per group and metric, empty where there is no number; the dataset of aggregated rows
// is "*".
func (r *Report) Summary(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write(summaryHead)
	for _, s := range r.Sections {
		record := s.record()
		for _, g := range record.Groups {
			writeGroup(out, s.Name, g)
		}
		for _, g := range record.Aggregated {
			g.Dataset = "*"
			writeGroup(out, s.Name, g)
		}
	}
	out.Flush()
	return out.Error()
}

func writeGroup(out *csv.Writer, section string, g GroupRecord) {
	for _, m := range recorded() {
		s := g.Scores[m.Key]
		if s.N == 0 {
			continue
		}
		line := []string{model.CSVText(section), model.CSVText(g.Dataset), g.Model, model.CSVText(g.Label), m.Key, strconv.Itoa(s.N)}
		for _, v := range []model.Score{s.Mean, s.SD, s.T, s.Low, s.High} {
			line = append(line, plain(float64(v)))
		}
		line = append(line, strconv.FormatBool(s.Bold[PaperRule]), strconv.FormatBool(s.Bold[OverlapRule]))
		line = append(append(line, publishedFields(s.Published)...), seedList(s.Seeds), "", "", "")
		if s.Chance != nil {
			line[len(line)-3] = plain(float64(*s.Chance))
		}
		if s.Within != nil {
			line[len(line)-2], line[len(line)-1] = plain(float64(s.Within.Low)), plain(float64(s.Within.High))
		}
		out.Write(line)
	}
}

func publishedFields(p *PublishedRecord) []string {
	if p == nil {
		return []string{"", "", "", "", "", ""}
	}
	return []string{plain(p.Mean), plain(p.Half), p.Images, plain(float64(p.Difference)), strconv.FormatBool(p.Equivalent), p.Why}
}

// plain is a number with all its digits; empty where it is none.
func plain(v float64) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func seedList(seeds []int64) string {
	text := make([]string, len(seeds))
	for i, s := range seeds {
		text[i] = strconv.FormatInt(s, 10)
	}
	return strings.Join(text, " ")
}

// Curves writes curves.csv: a line per run, series and step, in the order of steps. Values that are no numbers are written
// NaN, +Inf and -Inf.
func (r *Report) Curves(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString("run,dataset,model,seed,series,step,value\n")
	done, total := 0, max(1, r.steps())
	for _, e := range r.Runs {
		heads := map[string][]byte{} // what the lines of a series begin with
		if err := e.pages(func(series map[string][]model.Sample) error {
			last := 0
			for _, s := range series {
				last = max(last, s[len(s)-1].Step)
			}
			r.now.Share = min(1, float64(done+last)/float64(total))
			r.tell()
			return writePage(out, e, heads, series)
		}); err != nil {
			return err
		}
		done += e.Run.Step
	}
	return out.Flush()
}

// writePage writes a page of a run's series step by step, those of one step by name.
func writePage(out *bufio.Writer, e Entry, heads map[string][]byte, series map[string][]model.Sample) error {
	names := slices.Sorted(maps.Keys(series))
	left := make([][]model.Sample, len(names))
	for i, name := range names {
		left[i] = series[name]
		if heads[name] == nil {
			heads[name] = headOf(e, name)
		}
	}
	var line []byte
	for {
		step := math.MaxInt
		for _, s := range left {
			if len(s) > 0 {
				step = min(step, s[0].Step)
			}
		}
		if step == math.MaxInt {
			return nil
		}
		for i, s := range left {
			if len(s) == 0 || s[0].Step != step {
				continue
			}
			line = strconv.AppendInt(append(line[:0], heads[names[i]]...), int64(step), 10)
			line = append(appendSpelled(append(line, ','), s[0].Value), '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
			left[i] = s[1:]
		}
	}
}

// headOf is what a series' lines begin with, quoted as CSV asks.
func headOf(e Entry, series string) []byte {
	var b bytes.Buffer
	c := e.Run.Config
	out := csv.NewWriter(&b)
	out.Write([]string{e.Run.ID, model.CSVText(c.Dataset), c.Model, strconv.FormatInt(c.Seed, 10), model.CSVText(series), ""})
	out.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// appendSpelled writes a number with as many digits as tell it from every other float32, or float64 where it is no float32; what is none as
// NaN, +Inf or -Inf.
func appendSpelled(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	}
	bits := 64
	if float64(float32(v)) == v {
		bits = 32
	}
	return strconv.AppendFloat(b, v, 'g', -1, bits)
}
