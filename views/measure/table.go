package measure

import "strings"

// TableView is the page where a file gets all metrics.
type TableView struct {
	Endings              []string // of files that are read
	Files                []string // that were measured, as the visitor calls them
	Latents, Factors, As string   // as typed
	Problem              string   // why nothing was measured
	Groups               []MeasuredGroup
	Relations            []Relation
	Problems             []string // what of it could not be measured
}

// Relation is a row of mutual information: what every latent tells of a factor.
type Relation struct {
	Factor string
	Values []string
}

func (v TableView) files() string { return strings.Join(v.Files, ", ") }

func (v TableView) accept() string { return strings.Join(v.Endings, ",") }

func (v TableView) formats() string { return strings.Join(v.Endings, " ") }
