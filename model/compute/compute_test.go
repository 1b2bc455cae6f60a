//go:build cgo

package compute

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"

	"slotscope/model"
	"slotscope/model/compute/cpu"
	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/gpu"
)

// open opens an engine and checks that it computes 1 + 2.
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
	for name, why := range map[string]string{"cpu": "requested", "go": "requested"} {
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

// TestOpenToTrain: a run whose precision is not set is trained in bf16x3 on the CPU engine if that is faster, and evaluated in float32.
func TestOpenToTrain(t *testing.T) {
	undo, _ := kernel.ForceHalf("plain C") // so that bf16x3 is available here
	defer undo()
	for _, c := range []struct {
		model.Config
		chosen, why string
	}{
		{model.Config{Engine: "cpu"}, model.BF16x3, "Products in bf16x3"}, {model.Config{Engine: "cpu", Precision: model.Float32}, model.Float32, ""},
		{model.Config{Engine: "cpu", Model: "tripod"}, model.Float32, ""}, {model.Config{Engine: "go"}, model.Float32, ""},
		{model.Config{Engine: "cpu", Precision: model.BF16}, model.BF16, "Products in bf16x3"},
	} {
		e, err := OpenToTrain(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Finalize()
		if e.Precision != c.chosen || !strings.Contains(e.Why, c.why) || c.why == "" && strings.Contains(e.Why, "bf16x3") {
			t.Errorf("%+v: %q, %s", c.Config, e.Precision, e.Why)
		}
	}
	for _, precision := range []string{"", model.BF16} {
		if e, err := OpenFor(model.Config{Engine: "cpu", Precision: precision}); err != nil || strings.Contains(e.Why, "bf16x3") {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

// TestOpenToResume: products that were in float32 stay so, and a run learns why those in bf16x3 do not.
func TestOpenToResume(t *testing.T) {
	c := model.Config{Engine: "cpu"}
	if _, used := cpu.BF16x3(); !used {
		e, err := OpenToResume(c, model.BF16x3)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Finalize()
		if e.Precision != model.Float32 || !strings.Contains(e.Why, "now they are in float32") {
			t.Errorf("%q, %s", e.Precision, e.Why)
		}
	}
	undo, _ := kernel.ForceHalf("plain C") // so that bf16x3 is available here
	defer undo()
	for before, want := range map[string]string{"": model.BF16x3, model.Float32: model.Float32, model.BF16x3: model.BF16x3, model.TF32: model.BF16x3} {
		e, err := OpenToResume(c, before)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Finalize()
		if e.Precision != want || strings.Contains(e.Why, "bf16x3") != (want == model.BF16x3) || strings.Contains(e.Why, "Until now") {
			t.Errorf("after %q: %q, %s", before, e.Precision, e.Why)
		}
	}
}

// TestOpenForBF16x3: bf16x3 is allowed only on the CPU engine, and only if it is faster.
func TestOpenForBF16x3(t *testing.T) {
	var bad model.Invalid
	if _, used := cpu.BF16x3(); !used {
		if _, err := OpenFor(model.Config{Engine: "cpu", Precision: model.BF16x3}); !errors.As(err, &bad) || !strings.Contains(bad["precision"], "not faster on this machine; choose float32") {
			t.Errorf("%v", err)
		}
	}
	undo, ok := kernel.ForceHalf("plain C")
	if !ok {
		t.Fatal("no kernels in plain C")
	}
	defer undo()
	e, err := OpenFor(model.Config{Engine: "cpu", Precision: model.BF16x3})
	if err != nil || !strings.Contains(e.Why, "Products in bf16x3 use") {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := OpenFor(model.Config{Engine: "go", Precision: model.BF16x3}); !errors.As(err, &bad) || !strings.Contains(bad["precision"], "needs the CPU engine, but the engine is go") {
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

func TestShare(t *testing.T) {
	read := func(env []string, name string) (value string) {
		for _, v := range env {
			if after, ok := strings.CutPrefix(v, name+"="); ok {
				value = after
			}
		}
		return value
	}
	for _, c := range []struct {
		processes                int
		threads, share           string // in the environment
		wantThreads, wantPortion string
	}{
		{1, "", "", "", ""},
		{2, "", "", fmt.Sprint(max(1, cpu.Cores()/2)), "0.460"},
		{1000, "", "", "1", "0.001"},
		{2, "3", "0.5", "3", ""},
	} {
		t.Setenv("SLOTSCOPE_THREADS", c.threads)
		t.Setenv(fractionEnv, c.share)
		env := Share(c.processes)
		if threads, portion := read(env, "SLOTSCOPE_THREADS"), read(env, fractionEnv); threads != c.wantThreads || portion != c.wantPortion {
			t.Errorf("%+v: %q threads and %q of a GPU's memory", c, threads, portion)
		}
	}
}

// touch creates an empty file and its folders.
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

// bare hides this machine's XLA plugins, GPUs and settings.
func bare(t *testing.T) {
	t.Helper()
	for _, v := range []string{"PJRT_PLUGIN_LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "XLA_FLAGS",
		"GOPJRT_CUDA_CHECKS", "NVIDIA_TF32_OVERRIDE", InstallEnv, gpu.PythonEnv, gpu.FolderEnv} {
		t.Setenv(v, "")
		os.Unsetenv(v)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

var card = gpu.GPU{UUID: "GPU-1", Name: "NVIDIA L40S", Driver: "580.65.06"}

func TestBrokenPluginFallsBackToTheCPU(t *testing.T) {
	bare(t)
	plugin := touch(t, filepath.Join(t.TempDir(), "pjrt_c_api_cuda_plugin.so"))
	e, err := auto(Report{GPUs: []gpu.GPU{card}, Plugin: gpu.Plugin{Path: plugin, Data: "/data"}}, model.Config{}, nil)
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

func TestSettingsOfXLA(t *testing.T) {
	for _, c := range []struct {
		name, flags, precision string
		deterministic          bool
		wantFlags, wantTF32    string
	}{
		{"no flags", "", "", false, "--xla_gpu_cuda_data_dir=/theirs", ""},
		{"the user's folder stays", "--xla_gpu_cuda_data_dir=/mine", "", false, "--xla_gpu_cuda_data_dir=/mine", ""},
		{"other flags stay", "--xla_dump_to=/x", "", false, "--xla_dump_to=/x --xla_gpu_cuda_data_dir=/theirs", ""},
		{"float32", "", model.Float32, false, "--xla_gpu_cuda_data_dir=/theirs --xla_gpu_enable_triton_gemm=false", "0"},
		{"repeatable", "", "", true, "--xla_gpu_cuda_data_dir=/theirs --xla_gpu_deterministic_ops=true", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bare(t)
			os.Setenv("XLA_FLAGS", c.flags)
			setXLA("/theirs", model.Config{Precision: c.precision, Deterministic: c.deterministic})
			if got := os.Getenv("XLA_FLAGS"); got != c.wantFlags {
				t.Errorf("XLA_FLAGS=%q, want %q", got, c.wantFlags)
			}
			if got := os.Getenv("NVIDIA_TF32_OVERRIDE"); got != c.wantTF32 {
				t.Errorf("NVIDIA_TF32_OVERRIDE=%q, want %q", got, c.wantTF32)
			}
			if os.Getenv("GOPJRT_CUDA_CHECKS") != "0" {
				t.Error("go-xla may use its author's data folder")
			}
		})
	}
}

func TestWhatXLALacks(t *testing.T) {
	old := card
	old.Driver = "535.104.05"
	for _, c := range []struct {
		found Report
		want  string
	}{
		{Report{Trouble: "nvidia-smi is not installed"}, "no NVIDIA GPU is visible (nvidia-smi is not installed)"},
		{Report{GPUs: []gpu.GPU{card}}, "an NVIDIA GPU is visible (NVIDIA L40S), but no XLA plugin"},
		{Report{GPUs: []gpu.GPU{old}, Driver: old.Driver, Plugin: gpu.Plugin{Path: "/p.so", CUDA: 13}}, "CUDA 13 needs NVIDIA driver 580 or newer, but version 535.104.05 is installed"},
		{Report{GPUs: []gpu.GPU{card}, Driver: card.Driver, Plugin: gpu.Plugin{Path: "/p.so", CUDA: 13}}, ""},
	} {
		if got := c.found.missing(); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("missing %q, want %q", got, c.want)
		}
	}
}

func TestMissingPluginIsASentence(t *testing.T) {
	bare(t)
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	if p, _ := gpu.Find("cpu", ""); p.Path == "" {
		if _, err := Open("xla:cpu"); err == nil || !strings.Contains(err.Error(), "no plugin") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Open("xla:cuda"); err == nil || !strings.Contains(err.Error(), "no NVIDIA GPU") {
		t.Errorf("%v", err)
	}
	r := Look(t.Context())
	if r.Engine != "cpu" || r.Threads < 1 || r.Trouble != "CUDA_VISIBLE_DEVICES hides every GPU" || len(r.Tried) == 0 {
		t.Errorf("%+v", r)
	}
}

func TestShareOfTheMemory(t *testing.T) {
	for _, c := range []struct {
		share, preallocate string
		want               float32
		atOnce             bool
	}{{"", "", 0.92, false}, {"0.5", "true", 0.5, true}, {"1.5", "no", 0.92, false}, {"half", "false", 0.92, false}} {
		t.Setenv(fractionEnv, c.share)
		t.Setenv(preallocateEnv, c.preallocate)
		if got := clientOptions(); got["memory_fraction"] != c.want || got["preallocate"] != c.atOnce {
			t.Errorf("%q, %q: %v", c.share, c.preallocate, got)
		}
	}
}
