package train

import (
	"fmt"
	"strings"

	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
)

// failure says in a sentence why the attempt failed; where a GPU's memory did not suffice, also what would fit.
func (s *session) failure(err error) string {
	if s.status.Engine == "xla:cuda" {
		if sentence, ok := gpu.OutOfMemory(err.Error(), s.use(gpu.Total())); ok {
			return sentence
		}
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // what follows is for the log
	return first
}

// diverged ends a run whose numbers are not finite any more. Its checkpoints are from before that, but a resume would diverge again.
func (s *session) diverged(what string) error {
	if err := s.settle(); err != nil {
		return err
	}
	kept := "no checkpoint was saved"
	if s.status.Checkpoint > 0 {
		kept = fmt.Sprintf("the checkpoint of step %d is kept", s.status.Checkpoint)
	}
	return fmt.Errorf("training diverged: %s; %s. Start a new run with a learning rate below %g", what, kept, s.cfg.LR)
}

// use is what the attempt wanted of a GPU with so much memory.
func (s *session) use(total int64) gpu.Use {
	u := gpu.Use{Batch: s.cfg.Batch, Parameters: s.status.Parameters, Total: total, Share: compute.MemoryShare(), Copying: s.copying}
	if s.set != nil && (s.copying || s.feeding.Resident) {
		u.Dataset = s.bytes()
	}
	return u
}
