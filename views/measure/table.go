package measure

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/metric"
	"slotscope/views"
)

// TableView is the view of the page that measures an uploaded file.
type TableView struct {
	Endings              []string // supported file extensions
	Files                []string // names of the uploaded files
	Latents, Factors, As string   // as entered
	Problem              string   // why nothing was measured
	Groups               []MeasuredGroup
	Relations            []Relation
	Problems             []string // scores that could not be computed
}

// Relation is a table row: the mutual information of every latent with one factor.
type Relation struct {
	Factor string
	Values []string
}

func (v TableView) files() string { return strings.Join(v.Files, ", ") }

func (v TableView) accept() string { return strings.Join(v.Endings, ",") }

func (v TableView) formats() string { return strings.Join(v.Endings, " ") }

// Show adds the scores of a table.
func (v *TableView) Show(s metric.TableScores) {
	v.Groups, v.Relations = tableGroups(s), relationsOf(s.Metrics)
	for _, name := range slices.Sorted(maps.Keys(s.Field.Problems)) {
		v.Problems = append(v.Problems, s.Field.Problems[name])
	}
}

// tableGroups returns the scores of a table as groups of rows.
func tableGroups(s metric.TableScores) []MeasuredGroup {
	groups := []MeasuredGroup{infoMEC(&s.Metrics), dci(&s.Metrics), {Title: "Other metrics"}}
	for _, m := range model.FieldMetrics {
		if _, there := s.Field.Scores[m.Name]; !there {
			continue
		}
		value, chance, span := s.Field.Headline(m.Name)
		row := MeasuredScore{Name: m.Title, Value: score(value), Interval: interval(&span, 3), Note: views.Sentence(m.Asks)}
		if chance.Defined() {
			row.Note += " Chance level: " + score(chance) + "."
		}
		groups[2].Rows = append(groups[2].Rows, row)
	}
	return groups
}

// relationsOf returns the rows of the mutual-information matrix.
func relationsOf(m model.Metrics) (rows []Relation) {
	for i, values := range m.NMI {
		row := Relation{Factor: strconv.Itoa(i)}
		if i < len(m.Factors) {
			row.Factor = plainNames(m.Factors)[i]
		}
		for _, v := range values {
			row.Values = append(row.Values, score(v))
		}
		rows = append(rows, row)
	}
	return rows
}
