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

func init() { nohome.Restore() } // XLA's packages are initialised before this

// InstallEnv is an environment variable that, if set, allows GoMLX to download missing XLA plugins.
const InstallEnv = "SLOTSCOPE_XLA_INSTALL"

// preallocateEnv is "true" to allocate a GPU's memory at the start; JAX uses the same name.
const preallocateEnv = "XLA_PYTHON_CLIENT_PREALLOCATE"

// memoryFraction is the default share of a GPU's memory that a run may use, assuming it has the GPU to itself.
const memoryFraction = 0.92

// setXLA configures XLA through environment variables before a plugin is loaded: the folder of CUDA's compiler library, the precision of
// products, and whether results must be deterministic. Existing values are kept.
func setXLA(data string, c model.Config) {
	os.Setenv("GOPJRT_CUDA_CHECKS", "0") // otherwise go-xla 0.1.4 uses its author's data folder
	if data != "" {
		addFlag("--xla_gpu_cuda_data_dir=", data)
	}
	if c.Precision == model.Float32 {
		setDefault("NVIDIA_TF32_OVERRIDE", "0") // read by cuBLAS and cuDNN
		addFlag("--xla_gpu_enable_triton_gemm=", "false")
	}
	if c.Deterministic {
		addFlag("--xla_gpu_deterministic_ops=", "true")
	}
}

// addFlag adds a flag to XLA_FLAGS unless it is already set.
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

// MemoryShare returns the share of a GPU's memory that a run may use.
func MemoryShare() float64 {
	if v, err := strconv.ParseFloat(os.Getenv(fractionEnv), 64); err == nil && v > 0 && v <= 1 {
		return v
	}
	return memoryFraction
}

// clientOptions returns the options of XLA's CUDA client: memory is allocated as needed, up to a share of the GPU's.
func clientOptions() pjrt.NamedValuesMap {
	preallocate, _ := strconv.ParseBool(os.Getenv(preallocateEnv))
	return pjrt.NamedValuesMap{"memory_fraction": float32(MemoryShare()), "preallocate": preallocate}
}

// openCUDA opens XLA with the plugin that was found.
func openCUDA(found Report, because string, c model.Config) (*Engine, error) {
	if found.missing() != "" && !installAllowed() {
		return nil, fmt.Errorf("cannot use XLA on an NVIDIA GPU: %s.%s", found.missing(), found.hint())
	}
	config := found.Plugin.Path
	if config == "" {
		config = "cuda"
	}
	setXLA(found.Plugin.Data, c)
	b, err := openXLA(config, clientOptions())
	if err != nil {
		return nil, err
	}
	return &Engine{Backend: b, Name: "xla:cuda", Why: fmt.Sprintf("%s: %s.", because, found.described(c.Precision))}, nil
}

func openXLACPU() (*Engine, error) {
	plugin, _ := gpu.Find("cpu", "")
	if plugin.Path == "" && !installAllowed() {
		return nil, fmt.Errorf("cannot use XLA on the CPU: no plugin pjrt_c_api_cpu_plugin.so was found " +
			"(in $PJRT_PLUGIN_LIBRARY_PATH, ~/.local/lib/go-xla or /usr/local/lib/go-xla); install it, or use --engine cpu, which needs none")
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

// installAllowed reports whether plugins may be downloaded.
func installAllowed() bool { return os.Getenv(InstallEnv) != "" }

// openXLA opens GoMLX's XLA backend. A panic while loading a plugin becomes an error.
func openXLA(config string, options pjrt.NamedValuesMap) (b *xla.Backend, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("XLA failed while loading %s: %v", config, p)
		}
	}()
	xla.EnableAutoInstall(installAllowed())
	b, err = xla.NewWithOptions(config, options)
	if err != nil {
		return nil, fmt.Errorf("XLA cannot load %s: %w", config, err)
	}
	return b, nil
}
