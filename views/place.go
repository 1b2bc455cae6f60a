package views

import "slotscope/model"

// PlaceView is the part of a form that says where runs are computed.
type PlaceView struct {
	model.Placements
	Executor  string // as chosen
	Partition string
	Account   string
	Time      string
	GPUs      string
	Lines     string // more options of sbatch, one a line; where Placements.Lines allows them
	Bad       map[string]string
}

// Offered says whether there is a choice to show.
func (v PlaceView) Offered() bool {
	return v.Missing == "" && v.Default != "" || v.Bad["executor"] != ""
}

func (v PlaceView) errorID(name string) string { return "slurm_" + name + "-error" }

// sentence ends a sentence whose period may be missing.
func sentence(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}
