package compute

import (
	"context"
	"fmt"

	"slotscope/model"
	"slotscope/model/compute/gpu"
)

// Report is what was found for an NVIDIA GPU, and what follows from it.
type Report struct {
	Engine  string      `json:"engine"` // what "auto" takes
	Why     string      `json:"why"`
	Threads int         `json:"threads"`        // of the host; 0 where a GPU computes
	BF16    string      `json:"bf16"`           // which kernels the CPU engine's products in bf16 use, and why; "" where a GPU computes
	GPUs    []gpu.GPU   `json:"gpus"`           // that this process may use
	Trouble string      `json:"trouble"`        // why no GPU was found, or what nvidia-smi could not say
	Driver  string      `json:"driver"`         // NVIDIA's; "" where it is not known
	Plugin  gpu.Plugin  `json:"plugin"`         // XLA's; its path is "" where none was found
	Tried   []gpu.Place `json:"tried"`          // where plugins were looked for
	Folder  string      `json:"install_folder"` // where `slotscope gpu install` puts one
}

// here looks for GPUs and a plugin on this machine. It loads nothing.
func here(ctx context.Context) Report {
	r := Report{Folder: gpu.Folder()}
	var err error
	if r.GPUs, err = gpu.Here(ctx); err != nil {
		r.Trouble = err.Error()
	}
	if len(r.GPUs) > 0 {
		r.Driver = r.GPUs[0].Driver
	}
	r.Plugin, r.Tried = gpu.Find("cuda", r.Driver)
	return r
}

// missing says what XLA lacks for a GPU, as the beginning of a sentence; "" where nothing is missing.
func (r Report) missing() string {
	switch {
	case len(r.GPUs) == 0:
		return fmt.Sprintf("no NVIDIA GPU is visible: %s", r.Trouble)
	case r.Plugin.Path == "":
		return fmt.Sprintf("an NVIDIA GPU is visible (%s) but no XLA plugin for it was found in %d places", r.names(), len(r.Tried))
	case !gpu.Runs(r.Driver, r.Plugin.CUDA):
		return fmt.Sprintf("the XLA plugin %s is too new for this machine: %s, here is %s",
			r.Plugin.Path, gpu.Needs(r.Plugin.CUDA), r.Driver)
	}
	return ""
}

// hint says what would help, as a sentence after another; "" where nothing is known to.
func (r Report) hint() string {
	if len(r.GPUs) == 0 || r.missing() == "" {
		return ""
	}
	return " `slotscope gpu install` gets a plugin that fits."
}

func (r Report) names() string {
	if len(r.GPUs) == 1 {
		return r.GPUs[0].Name
	}
	return fmt.Sprintf("%d of them, the first %s", len(r.GPUs), r.GPUs[0].Name)
}

// described names the GPU, the plugin and the precision.
func (r Report) described(precision string) string {
	products := "products in TF32"
	switch precision {
	case model.Float32:
		products = "products in float32"
	case model.BF16:
		products = "products of encoder and decoder in bfloat16, others in TF32"
	}
	return fmt.Sprintf("%s, with %s, %s", r.names(), r.Plugin.Path, products)
}
