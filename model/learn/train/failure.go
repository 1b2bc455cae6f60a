package train

import (
	"fmt"
	"strings"

	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
)

// failure returns why the attempt failed, as a sentence; if a GPU ran out of memory, it includes what would fit.
func (s *session) failure(err error) string {
	if s.status.Engine == "xla:cuda" {
		if sentence, ok := gpu.OutOfMemory(err.Error(), s.use(gpu.Total())); ok {
			return sentence
		}
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // the rest is for the log
	return first
}

// diverged returns the error for a run whose values are no longer finite. Its checkpoints are from before that, but a resume would
// diverge again.
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

// use describes the attempt's memory use on a GPU with total bytes of memory.
func (s *session) use(total int64) gpu.Use {
	u := gpu.Use{Batch: s.cfg.Batch, Parameters: s.status.Parameters, Total: total, Share: compute.MemoryShare(), Copying: s.copying}
	if s.set != nil && (s.copying || s.feeding.Resident) {
		u.Dataset = s.bytes()
	}
	return u
}
