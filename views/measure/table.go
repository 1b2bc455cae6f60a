package measure

import "strings"

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
