package compute

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"

	"slotscope/model"
)

// open opens an engine and computes 1 + 2 on it.
func open(t *testing.T, name string) *Engine {
	t.Helper()
	e, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Finalize)
	if got := MustExecOnce(e.Backend, func(x *Node) *Node { return AddScalar(x, 2) }, float32(1)).Value(); got != float32(3) {
		t.Errorf("1 + 2 = %v", got)
	}
	return e
}

func TestOpenOnTheHost(t *testing.T) {
	for name, why := range map[string]string{"cpu": "asked for", "go": "asked for"} {
		e := open(t, name)
		if e.Name != name || !strings.Contains(e.Why, why) || e.Threads < 1 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestOpenAutoFallsBackToTheCPU(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	e := open(t, "auto")
	if e.Name != "cpu" || !strings.Contains(e.Why, "No NVIDIA GPU is visible") || !strings.HasSuffix(e.Why, ".") {
		t.Errorf("%s: %s", e.Name, e.Why)
	}
}

func TestOpenUnknown(t *testing.T) {
	_, err := Open("tpu")
	var bad model.Invalid
	if !errors.As(err, &bad) || !strings.Contains(bad["engine"], "tpu") {
		t.Errorf("%v", err)
	}
}

func TestThreadsFromTheEnvironment(t *testing.T) {
	t.Setenv("SLOTSCOPE_THREADS", "3")
	if e := open(t, "cpu"); e.Threads != 3 {
		t.Errorf("%d threads", e.Threads)
	}
	t.Setenv("SLOTSCOPE_THREADS", "many")
	if _, err := Open("cpu"); err == nil || !strings.Contains(err.Error(), `"many"`) {
		t.Errorf("%v", err)
	}
}

// touch makes a file with its folders.
func touch(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPluginOfJAXIsFound(t *testing.T) {
	home, env := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	t.Setenv("VIRTUAL_ENV", env)
	site := filepath.Join(env, "lib", "python3.12", "site-packages")
	touch(t, filepath.Join(site, "jax_plugins", "xla_cuda12", "xla_cuda_plugin.so"))
	plugin := touch(t, filepath.Join(site, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"))
	touch(t, filepath.Join(site, "nvidia", "cu13", "nvvm", "libdevice", "libdevice.10.bc"))
	if got := first(pluginPatterns("cuda")); got != plugin {
		t.Errorf("plugin %q, want %q", got, plugin)
	}
	if got, want := dataDir(plugin), filepath.Join(site, "nvidia", "cu13"); got != want {
		t.Errorf("data folder %q, want %q", got, want)
	}
	// What the user names comes first.
	mine := t.TempDir()
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", mine)
	named := touch(t, filepath.Join(mine, "pjrt_c_api_cuda_plugin.so"))
	if got := first(pluginPatterns("cuda")); got != named {
		t.Errorf("plugin %q, want %q", got, named)
	}
}

func TestBrokenPluginIsAnError(t *testing.T) {
	dir := t.TempDir()
	plugin := touch(t, filepath.Join(dir, "pjrt_c_api_cuda_plugin.so"))
	t.Setenv("XLA_FLAGS", "")
	t.Setenv("GOPJRT_CUDA_CHECKS", "")
	e, err := auto(cuda{plugin: plugin, data: "/data"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	if e.Name != "cpu" || !strings.Contains(e.Why, "XLA cannot") || strings.Contains(e.Why, "\n") {
		t.Errorf("%s: %s", e.Name, e.Why)
	}
	if got := os.Getenv("XLA_FLAGS"); got != "--xla_gpu_cuda_data_dir=/data" {
		t.Errorf("XLA_FLAGS=%q", got)
	}
}

func TestXLAFlagsOfTheUserStay(t *testing.T) {
	t.Setenv("GOPJRT_CUDA_CHECKS", "")
	t.Setenv("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/mine")
	setXLAFlags("/theirs")
	if got := os.Getenv("XLA_FLAGS"); got != "--xla_gpu_cuda_data_dir=/mine" {
		t.Errorf("XLA_FLAGS=%q", got)
	}
	t.Setenv("XLA_FLAGS", "--xla_dump_to=/x")
	setXLAFlags("/theirs")
	if got := os.Getenv("XLA_FLAGS"); got != "--xla_dump_to=/x --xla_gpu_cuda_data_dir=/theirs" {
		t.Errorf("XLA_FLAGS=%q", got)
	}
}

func TestMissingPluginIsASentence(t *testing.T) {
	for _, v := range []string{"PJRT_PLUGIN_LIBRARY_PATH", "LD_LIBRARY_PATH", InstallEnv, "CUDA_VISIBLE_DEVICES"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", t.TempDir())
	if first(pluginPatterns("cpu")) == "" {
		if _, err := Open("xla:cpu"); err == nil || !strings.Contains(err.Error(), "no plugin") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Open("xla:cuda"); err == nil || !strings.Contains(err.Error(), "no NVIDIA GPU") {
		t.Errorf("%v", err)
	}
}
