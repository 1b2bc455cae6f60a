package report

import (
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

// Summary writes summary.csv: one line per group and metric, with empty fields for missing numbers; the dataset of aggregated rows is
// "*".
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

// plain formats a number with all its digits; empty if it is not finite.
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

// Curves writes curves.csv: one line per run and step in ascending steps, one column per series; empty if a run has no value.
// Non-finite values are written as NaN, +Inf and -Inf.
func (r *Report) Curves(w io.Writer) error {
	columns, err := r.series()
	if err != nil {
		return err
	}
	out := csvPages{w: w, columns: columns, buffer: csvRow(append([]string{"run", "dataset", "model", "seed", "step"}, csvTexts(columns)...))}
	done, total := 0, max(1, r.steps())
	for _, e := range r.Runs {
		c := e.Run.Config
		out.head = bytes.TrimSuffix(csvRow([]string{e.Run.ID, model.CSVText(c.Dataset), c.Model, strconv.FormatInt(c.Seed, 10), ""}), []byte("\n"))
		if err := e.pages(func(series map[string][]model.Sample) error {
			last := 0
			for _, s := range series {
				last = max(last, s[len(s)-1].Step)
			}
			r.now.Share = min(1, float64(done+last)/float64(total))
			r.tell()
			return out.write(series)
		}); err != nil {
			return err
		}
		done += e.Run.Step
	}
	return out.flush()
}

// series are the sorted names of all series of the runs.
func (r *Report) series() ([]string, error) {
	has := map[string]bool{}
	for _, e := range r.Runs {
		names, err := e.names()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			has[name] = true
		}
	}
	return slices.Sorted(maps.Keys(has)), nil
}

func csvTexts(all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = model.CSVText(text)
	}
	return out
}

// csvRow is one line of CSV.
func csvRow(fields []string) []byte {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	out.Write(fields)
	out.Flush()
	return b.Bytes()
}

// csvPages writes pages of series as lines of CSV, one line per step.
type csvPages struct {
	w       io.Writer
	columns []string
	head    []byte // prefix of a run's lines
	buffer  []byte
}

// csvChunk is the number of buffered bytes that triggers a write.
const csvChunk = 64 << 10

func (c *csvPages) write(series map[string][]model.Sample) error {
	left := make([][]model.Sample, len(c.columns))
	for i, name := range c.columns {
		left[i] = series[name]
	}
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
		c.buffer = strconv.AppendInt(append(c.buffer, c.head...), int64(step), 10)
		for i, s := range left {
			c.buffer = append(c.buffer, ',')
			if len(s) > 0 && s[0].Step == step {
				c.buffer = appendSpelled(c.buffer, s[0].Value)
				left[i] = s[1:]
			}
		}
		c.buffer = append(c.buffer, '\n')
		if len(c.buffer) >= csvChunk {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

func (c *csvPages) flush() error {
	_, err := c.w.Write(c.buffer)
	c.buffer = c.buffer[:0]
	return err
}

// appendSpelled appends a number with the fewest digits that identify it as a float32, or as a float64 if it is not a float32;
// non-finite values are NaN, +Inf or -Inf.
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
