package compute

import (
	"context"
	"fmt"

	"slotscope/model"
	"slotscope/model/compute/gpu"
)

// Report describes the NVIDIA GPUs and plugins found, and the engine that follows from them.
type Report struct {
	Engine  string      `json:"engine"` // choice of "auto"
	Why     string      `json:"why"`
	Threads int         `json:"threads"`        // host threads; 0 for a GPU
	BF16    string      `json:"bf16"`           // kernels used by the CPU engine for bf16 products, and why; "" for a GPU
	GPUs    []gpu.GPU   `json:"gpus"`           // GPUs that this process may use
	Trouble string      `json:"trouble"`        // why no GPU was found, or why nvidia-smi failed
	Driver  string      `json:"driver"`         // version of the NVIDIA driver; "" if unknown
	Plugin  gpu.Plugin  `json:"plugin"`         // XLA plugin; its path is "" if none was found
	Tried   []gpu.Place `json:"tried"`          // places searched for plugins
	Folder  string      `json:"install_folder"` // target of `slotscope gpu install`
}

// here looks for GPUs and a plugin on this machine, without loading the plugin.
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

// missing returns a clause that says what XLA lacks to use a GPU; "" if nothing is missing.
func (r Report) missing() string {
	switch {
	case len(r.GPUs) == 0:
		return fmt.Sprintf("no NVIDIA GPU is visible (%s)", r.Trouble)
	case r.Plugin.Path == "":
		return fmt.Sprintf("an NVIDIA GPU is visible (%s), but no XLA plugin for it was found in %d places", r.names(), len(r.Tried))
	case !gpu.Runs(r.Driver, r.Plugin.CUDA):
		return fmt.Sprintf("the XLA plugin %s is too new for this machine (%s, but version %s is installed)",
			r.Plugin.Path, gpu.Needs(r.Plugin.CUDA), r.Driver)
	}
	return ""
}

// hint returns a sentence that says what to do; "" if there is no remedy.
func (r Report) hint() string {
	if len(r.GPUs) == 0 || r.missing() == "" {
		return ""
	}
	return " Run `slotscope gpu install` to install a suitable plugin."
}

func (r Report) names() string {
	if len(r.GPUs) == 1 {
		return r.GPUs[0].Name
	}
	return fmt.Sprintf("%d GPUs, the first is %s", len(r.GPUs), r.GPUs[0].Name)
}

// described returns the GPU, the plugin and the precision.
func (r Report) described(precision string) string {
	products := "products in TF32"
	switch precision {
	case model.Float32:
		products = "products in float32"
	case model.BF16:
		products = "convolutions and linear layers of the autoencoder in bfloat16, other products in TF32"
	}
	return fmt.Sprintf("%s, with %s, %s", r.names(), r.Plugin.Path, products)
}
