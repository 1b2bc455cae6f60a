package compute

import (
	"context"

	"slotscope/model"
	"slotscope/model/compute/cpu"
)

// Look reports which engine "auto" would choose and why, and what was found and tried. It does not open a GPU, whose memory is reserved for
// runs.
func Look(ctx context.Context) Report {
	r := here(ctx)
	if missing := r.missing(); missing != "" {
		e, err := openCPU(upper(missing), model.Config{}, nil)
		if err != nil {
			r.Engine, r.Why = "none", err.Error()
			return r
		}
		r.Engine, r.Why, r.Threads, r.BF16 = e.Name, e.Why+r.hint(), e.Threads, cpu.BF16()
		if why, used := cpu.BF16x3(); used {
			r.BF16 += " " + why
		}
		return r
	}
	r.Engine, r.Why = "xla:cuda", "An NVIDIA GPU and XLA's plugin for it were found: "+r.names()+", with "+r.Plugin.Path+"."
	return r
}
