package views

import "slotscope/model"

// PlaceView is the form section that chooses where runs execute.
type PlaceView struct {
	model.Placements
	Executor  string // chosen by the user
	Partition string
	Account   string
	Time      string
	GPUs      string
	Lines     string // other sbatch options, one per line; shown if Placements.Lines is set
	Bad       map[string]string
}

// Offered reports whether the form shows a choice.
func (v PlaceView) Offered() bool {
	return v.Missing == "" && v.Default != "" || v.Bad["executor"] != ""
}

func (v PlaceView) errorID(name string) string { return "slurm_" + name + "-error" }

// sentence appends a period unless text is empty or has one.
func sentence(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}
