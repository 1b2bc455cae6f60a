package compute

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends/xla"
)

// InstallEnv names the environment variable that, where it is set, lets XLA's plugins be downloaded when they are missing.
const InstallEnv = "SLOTSCOPE_XLA_INSTALL"

// cuda is what XLA needs for an NVIDIA GPU.
type cuda struct {
	plugin  string // path of the PJRT plugin
	data    string // folder that holds nvvm/libdevice, "" where none was found
	missing string // what is not there, as the beginning of a sentence; "" where all is
}

// cudaHere looks for a GPU and a plugin on this machine.
func cudaHere() cuda {
	if !gpuVisible() {
		return cuda{missing: "no NVIDIA GPU is visible (no /dev/nvidia0, no answer from nvidia-smi, or CUDA_VISIBLE_DEVICES hides it)"}
	}
	plugin := first(pluginPatterns("cuda"))
	if plugin == "" {
		return cuda{missing: "an NVIDIA GPU is visible but no XLA plugin for it was found (in $PJRT_PLUGIN_LIBRARY_PATH, " +
			"GoMLX's folders ~/.local/lib/go-xla and /usr/local/lib/go-xla, or JAX in a Python environment)"}
	}
	return cuda{plugin: plugin, data: dataDir(plugin)}
}

func gpuVisible() bool {
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && (v == "" || strings.HasPrefix(v, "-1")) {
		return false
	}
	if first([]string{"/dev/nvidia[0-9]*"}) != "" {
		return true
	}
	out, err := exec.Command("nvidia-smi", "-L").Output()
	return err == nil && strings.Contains(string(out), "GPU ")
}

// first returns the first file that the patterns find, by order of pattern and then of name, latest name first.
func first(patterns []string) string {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return slices.Max(found)
		}
	}
	return ""
}

// pluginPatterns are where a plugin for a platform ("cpu", "cuda") may lie, best first.
func pluginPatterns(platform string) []string {
	var patterns []string
	for _, dir := range pluginDirs() {
		for _, name := range []string{"pjrt_c_api_%s_plugin.so", "pjrt-plugin-%s.so", "pjrt_plugin_%s.so", "pjrt_c_api_%s_plugin.dylib"} {
			patterns = append(patterns, filepath.Join(dir, fmt.Sprintf(name, platform)))
		}
	}
	if platform == "cuda" {
		for _, dir := range pythonDirs() {
			patterns = append(patterns, filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so"))
		}
	}
	return patterns
}

// pluginDirs are the folders named by the environment, then those where GoMLX installs.
func pluginDirs() []string {
	dirs := split(os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"))
	if home, err := os.UserHomeDir(); err == nil {
		lib := filepath.Join(home, ".local", "lib")
		dirs = append(dirs, filepath.Join(lib, "go-xla"), filepath.Join(lib, "go-xla", "nvidia"), filepath.Join(lib, "gomlx", "pjrt"),
			filepath.Join(home, "Library", "Application Support", "go-xla"))
	}
	dirs = append(dirs, "/usr/local/lib/go-xla", "/usr/local/lib/go-xla/nvidia", "/usr/local/lib/gomlx/pjrt")
	return append(dirs, split(os.Getenv("LD_LIBRARY_PATH"))...)
}

func split(list string) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(s string) bool { return s == "" })
}

// pythonDirs are patterns of the folders of packages of the Python that is active, then of the user's and the system's.
func pythonDirs() []string {
	dirs := split(os.Getenv("PYTHONPATH"))
	prefixes := []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")}
	if python, err := exec.LookPath("python3"); err == nil {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
	}
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	for _, prefix := range append(prefixes, "/usr/local", "/usr") {
		if prefix != "" {
			dirs = append(dirs, filepath.Join(prefix, "lib", "python3*", "site-packages"), filepath.Join(prefix, "lib", "python3*", "dist-packages"))
		}
	}
	return dirs
}

// dataDir finds the folder of CUDA's compiler library that XLA needs: near the plugin, else CUDA's own.
func dataDir(plugin string) string {
	var roots []string
	for dir, i := filepath.Dir(plugin), 0; i < 3; dir, i = filepath.Dir(dir), i+1 {
		roots = append(roots, filepath.Join(dir, "nvidia"), dir)
	}
	for _, dir := range append(pluginDirs(), pythonDirs()...) {
		roots = append(roots, filepath.Join(dir, "nvidia"))
	}
	roots = append(roots, os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda")
	const library = "nvvm/libdevice/libdevice.10.bc"
	for _, root := range roots {
		if root == "" {
			continue
		}
		if found := first([]string{filepath.Join(root, library), filepath.Join(root, "*", library)}); found != "" {
			return strings.TrimSuffix(found, string(filepath.Separator)+library)
		}
	}
	return ""
}

// openCUDA loads the plugin. It does not touch what the environment says already.
func openCUDA(found cuda, because string) (*Engine, error) {
	if found.missing != "" && !installAllowed() {
		return nil, fmt.Errorf("XLA on an NVIDIA GPU cannot be used: %s", found.missing)
	}
	config := found.plugin
	if config == "" {
		config = "cuda"
	}
	setXLAFlags(found.data)
	b, err := openXLA(config)
	if err != nil {
		return nil, err
	}
	why := fmt.Sprintf("%s: %s.", because, found.plugin)
	return &Engine{Backend: b, Name: "xla:cuda", Why: why}, nil
}

// setXLAFlags names CUDA's data folder before the plugin is loaded, as go-xla 0.1.4 otherwise names one of its author's.
func setXLAFlags(data string) {
	const flag = "--xla_gpu_cuda_data_dir="
	os.Setenv("GOPJRT_CUDA_CHECKS", "0") // the check is what names that folder
	flags := os.Getenv("XLA_FLAGS")
	if data == "" || strings.Contains(flags, flag) {
		return
	}
	os.Setenv("XLA_FLAGS", strings.TrimSpace(flags+" "+flag+data))
}

func openXLACPU() (*Engine, error) {
	plugin := first(pluginPatterns("cpu"))
	if plugin == "" && !installAllowed() {
		return nil, fmt.Errorf("XLA on the CPU cannot be used: no plugin pjrt_c_api_cpu_plugin.so was found " +
			"(in $PJRT_PLUGIN_LIBRARY_PATH, ~/.local/lib/go-xla or /usr/local/lib/go-xla); the engine cpu needs none")
	}
	config := "cpu"
	if plugin != "" {
		config = plugin + ",shared_buffers"
	}
	b, err := openXLA(config)
	if err != nil {
		return nil, err
	}
	return &Engine{Backend: b, Name: "xla:cpu", Why: "XLA on the CPU was asked for: " + config + ".", Threads: runtime.GOMAXPROCS(0)}, nil
}

// installAllowed says whether plugins may be downloaded.
func installAllowed() bool { return os.Getenv(InstallEnv) != "" }

// openXLA opens GoMLX's XLA backend; a panic in loading a plugin is an error like any other.
func openXLA(config string) (b *xla.Backend, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("XLA failed while it loaded %s: %v", config, p)
		}
	}()
	xla.EnableAutoInstall(installAllowed())
	b, err = xla.NewWithOptions(config, nil)
	if err != nil {
		return nil, fmt.Errorf("XLA cannot load %s: %w", config, err)
	}
	return b, nil
}

// Install downloads XLA's plugins for this machine into the user's folder, which needs the network.
func Install() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("installing XLA's plugins: %v", p)
		}
	}()
	if err := xla.AutoInstall(); err != nil {
		return fmt.Errorf("installing XLA's plugins: %w", err)
	}
	return nil
}
