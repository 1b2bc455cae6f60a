//go:build cgo

package compute

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends/xla"

	"slotscope/model"
	"slotscope/model/compute/cpu"
	"slotscope/model/compute/gpu"
	"slotscope/model/compute/nohome"
)

func init() { nohome.Restore() } // XLA's packages are initialised by now

// InstallEnv names the environment variable that, where it is set, lets GoMLX download XLA's plugins when they are missing.
const InstallEnv = "SLOTSCOPE_XLA_INSTALL"

// Environment variables that set how XLA uses a GPU.
const (
	DeterministicEnv = "SLOTSCOPE_DETERMINISTIC"       // set: the same run gives the same bits on the same GPU, more slowly
	preallocateEnv   = "XLA_PYTHON_CLIENT_PREALLOCATE" // "true": taken at once; JAX's name for it
)

// memoryFraction is the share of a GPU's memory that a run may take, for it has the GPU to itself.
const memoryFraction = 0.92

// setXLA tells XLA, through the environment and before a plugin is loaded, where CUDA's compiler library is, which precision
// products have, and whether results must repeat. What the environment says already stays.
func setXLA(data, precision string) {
	os.Setenv("GOPJRT_CUDA_CHECKS", "0") // go-xla 0.1.4 otherwise names a data folder of its author's
	if data != "" {
		addFlag("--xla_gpu_cuda_data_dir=", data)
	}
	if precision == model.Float32 {
		setDefault("NVIDIA_TF32_OVERRIDE", "0") // cuBLAS and cuDNN obey it
		addFlag("--xla_gpu_enable_triton_gemm=", "false")
	}
	if os.Getenv(DeterministicEnv) != "" {
		addFlag("--xla_gpu_deterministic_ops=", "true")
	}
}

// addFlag adds a flag to XLA_FLAGS unless it is there.
func addFlag(flag, value string) {
	flags := os.Getenv("XLA_FLAGS")
	if !strings.Contains(flags, flag) {
		os.Setenv("XLA_FLAGS", strings.TrimSpace(flags+" "+flag+value))
	}
}

func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		os.Setenv(name, value)
	}
}

// MemoryShare is the share of a GPU's memory that a run may take.
func MemoryShare() float64 {
	if v, err := strconv.ParseFloat(os.Getenv(fractionEnv), 64); err == nil && v > 0 && v <= 1 {
		return v
	}
	return memoryFraction
}

// clientOptions are what XLA's CUDA client is asked for: memory as it is needed, up to a share of the GPU's.
func clientOptions() pjrt.NamedValuesMap {
	preallocate, _ := strconv.ParseBool(os.Getenv(preallocateEnv))
	return pjrt.NamedValuesMap{"memory_fraction": float32(MemoryShare()), "preallocate": preallocate}
}

// openCUDA loads the plugin that was found.
func openCUDA(found Report, because, precision string) (*Engine, error) {
	if found.missing() != "" && !installAllowed() {
		return nil, fmt.Errorf("XLA on an NVIDIA GPU cannot be used: %s.%s", found.missing(), found.hint())
	}
	config := found.Plugin.Path
	if config == "" {
		config = "cuda"
	}
	setXLA(found.Plugin.Data, precision)
	b, err := openXLA(config, clientOptions())
	if err != nil {
		return nil, err
	}
	return &Engine{Backend: b, Name: "xla:cuda", Why: fmt.Sprintf("%s: %s.", because, found.described(precision))}, nil
}

func openXLACPU() (*Engine, error) {
	plugin, _ := gpu.Find("cpu", "")
	if plugin.Path == "" && !installAllowed() {
		return nil, fmt.Errorf("XLA on the CPU cannot be used: no plugin pjrt_c_api_cpu_plugin.so was found " +
			"(in $PJRT_PLUGIN_LIBRARY_PATH, ~/.local/lib/go-xla or /usr/local/lib/go-xla); the engine cpu needs none")
	}
	config := "cpu"
	if plugin.Path != "" {
		config = plugin.Path + ",shared_buffers"
	}
	b, err := openXLA(config, nil)
	if err != nil {
		return nil, err
	}
	return &Engine{Backend: b, Name: "xla:cpu", Why: "XLA on the CPU was requested: " + config + ".", Threads: cpu.Cores()}, nil
}

// installAllowed says whether plugins may be downloaded.
func installAllowed() bool { return os.Getenv(InstallEnv) != "" }

// openXLA opens GoMLX's XLA backend; a panic in loading a plugin is an error like any other.
func openXLA(config string, options pjrt.NamedValuesMap) (b *xla.Backend, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("XLA failed while it loaded %s: %v", config, p)
		}
	}()
	xla.EnableAutoInstall(installAllowed())
	b, err = xla.NewWithOptions(config, options)
	if err != nil {
		return nil, fmt.Errorf("XLA cannot load %s: %w", config, err)
	}
	return b, nil
}
