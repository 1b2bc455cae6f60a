package train

import (
	"strings"

	"slotscope/model/compute/gpu"
)

// failure says in a sentence why the attempt failed; where a GPU's memory did not suffice, also which batch would fit.
func (s *session) failure(err error) string {
	if s.status.Engine == "xla:cuda" {
		if sentence, ok := gpu.OutOfMemory(err.Error(), s.cfg.Batch, s.status.Parameters, gpu.Total()); ok {
			return sentence
		}
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // what follows is for the log
	return first
}
