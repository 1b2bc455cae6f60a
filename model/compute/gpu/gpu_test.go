package gpu

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slotscope/model/data/fetch"
)

// twoGPUs is the output of nvidia-smi for an L40S and for a card that reports few values.
const twoGPUs = `0, GPU-5f3c, NVIDIA L40S, 580.65.06, 46068, 1024, 97, 61, 287.31
1, GPU-77aa, NVIDIA GeForce GT 1030, 580.65.06, 2048, [N/A], [N/A], 34, [Not Supported]
`

var gpus = []GPU{
	{0, "GPU-5f3c", "NVIDIA L40S", "580.65.06", 46068 << 20, 1024 << 20, 97, 61, 287.31},
	{1, "GPU-77aa", "NVIDIA GeForce GT 1030", "580.65.06", 2048 << 20, -1, -1, 34, -1},
}

// stub puts a fake nvidia-smi, which runs a script, on the PATH.
func stub(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestGPUsAreFound(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	stub(t, "case \"$1\" in --query-gpu=index,uuid,name,driver_version,*) ;; *) exit 9;; esac\ncat <<'E'\n"+twoGPUs+"E\n")
	got, err := Here(t.Context())
	if err != nil || !reflect.DeepEqual(got, gpus) {
		t.Errorf("%+v, %v", got, err)
	}
	for devices, want := range map[string][]GPU{"1": gpus[1:], "1,0": {gpus[1], gpus[0]}, "GPU-77": gpus[1:], "0,7,1": gpus[:1]} {
		t.Setenv("CUDA_VISIBLE_DEVICES", devices)
		if got, err := Here(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s: %+v, %v", devices, got, err)
		}
	}
	for devices, want := range map[string]string{"": "hides every GPU", "-1": "hides every GPU", "5": "matches none"} {
		t.Setenv("CUDA_VISIBLE_DEVICES", devices)
		if got, err := Here(t.Context()); err == nil || len(got) != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s: %+v, %v", devices, got, err)
		}
	}
}

func TestTroubleOfNvidiaSMI(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9": "could not communicate",
		"exit 3":                               "(exit status 3) without a message",
		"echo nonsense":                        "could not be parsed",
		"echo 'x, GPU-1, A, 1, 2, 3, 4, 5, 6'": "not a GPU index",
	} {
		stub(t, script)
		if _, err := Query(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestNoGPUIsNoFaultOfTheEnvironment(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	stub(t, "true")
	if got, err := Here(t.Context()); err == nil || err.Error() != "nvidia-smi lists no GPUs" || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDeviceFilesCount(t *testing.T) {
	dev := t.TempDir()
	for _, name := range []string{"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"} {
		touch(t, filepath.Join(dev, name))
	}
	if got := devicesIn(dev); len(got) != 2 || got[1].Index != 1 || got[0].Memory != -1 {
		t.Errorf("%+v", got)
	}
}

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

// tree sets up a home and a Python environment with JAX's plugins for CUDA 12 and 13, and hides everything else on this machine.
func tree(t *testing.T) (site, p12, p13 string) {
	t.Helper()
	for _, v := range []string{"PJRT_PLUGIN_LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CONDA_PREFIX", "VIRTUAL_ENV", PythonEnv, FolderEnv, "CUDA_HOME", "CUDA_PATH"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	env := t.TempDir()
	t.Setenv("VIRTUAL_ENV", env)
	site = filepath.Join(env, "lib", "python3.12", "site-packages")
	p12 = touch(t, filepath.Join(site, "jax_plugins", "xla_cuda12", "xla_cuda_plugin.so"))
	p13 = touch(t, filepath.Join(site, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"))
	return site, p12, p13
}

func TestPluginIsChosen(t *testing.T) {
	site, p12, p13 := tree(t)
	data := filepath.Join(site, "nvidia", "cu13")
	touch(t, filepath.Join(data, "nvvm", "libdevice", "libdevice.10.bc"))
	expect := func(driver, path, place string) Plugin {
		t.Helper()
		got, tried := Find("cuda", driver)
		if got.Path != path || got.Place != place || len(tried) < 3 {
			t.Errorf("driver %q: %+v, want %s in %s", driver, got, path, place)
		}
		return got
	}
	const inJAX = "JAX in a Python environment"
	if got := expect("", p13, inJAX); got.CUDA != 13 || got.Data != data {
		t.Errorf("%+v", got)
	}
	expect("580.65.06", p13, inJAX)
	expect("550.54.14", p12, inJAX) // too old for CUDA 13
	expect("470.10", p13, inJAX)    // too old for both; the best is returned, and Runs is false

	installed := touch(t, filepath.Join(Folder(), "cuda12", "jax_plugins", "xla_cuda12", "xla_cuda_plugin.so"))
	expect("580.65.06", installed, "installed by slotscope gpu install")

	other := t.TempDir()
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", other)
	expect("", installed, "installed by slotscope gpu install") // the folder is empty
	if err := os.Mkdir(filepath.Join(other, "pjrt-plugin-cuda.so"), 0o755); err != nil {
		t.Fatal(err)
	}
	expect("", installed, "installed by slotscope gpu install") // a folder with a plugin's name is not a plugin
	mine := touch(t, filepath.Join(other, "pjrt_c_api_cuda_plugin.so"))
	expect("", mine, "$PJRT_PLUGIN_LIBRARY_PATH")
}

func TestNamedPythonEnvironment(t *testing.T) {
	tree(t)
	named := t.TempDir()
	want := touch(t, filepath.Join(named, "lib", "python3.11", "site-packages", "jax_plugins", "xla_cuda12", "xla_cuda_plugin.so"))
	t.Setenv(PythonEnv, named)
	if got, _ := Find("cuda", "580.1"); got.Path != want {
		t.Errorf("%+v, want %s", got, want)
	}
}

func TestOutOfMemory(t *testing.T) {
	const gib = 1 << 30
	const wants = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 103079215104 bytes." // 96 GiB
	for _, c := range []struct {
		complaint string
		use       Use
		want      string
	}{
		{"INTERNAL: no such kernel", Use{Batch: 128, Parameters: 1e6, Total: 24 * gib}, ""},
		// At 96 GiB for 512 images, 126 of them fit into 24 GiB minus 0.25 GiB of parameters.
		{wants, Use{Batch: 512, Parameters: 16777216, Total: 24 * gib}, "The GPU's memory of 24.0 GiB is too small for a batch of 512 images; 64 should fit."},
		{"RESOURCE_EXHAUSTED: Allocator ran out of memory trying to allocate 48.50GiB", Use{Batch: 256, Parameters: 17260000, Total: 46068 << 20},
			"The GPU's memory of 45.0 GiB is too small for a batch of 256 images; 128 should fit."},
		// At 48.5 GiB for 192 images, 86 of them fit into 0.92 of 24 GiB.
		{"RESOURCE_EXHAUSTED: Allocator ran out of memory trying to allocate 48.50GiB", Use{Batch: 192, Parameters: 17260000, Total: 24 * gib, Share: 0.92},
			"The GPU's memory of 24.0 GiB is too small for a batch of 192 images; 64 should fit."},
		{"CUDA_ERROR_OUT_OF_MEMORY: out of memory", Use{Batch: 96, Parameters: 1e6, Total: -1}, "The GPU's memory is too small for a batch of 96 images; 48 should fit."},
		{"Out of memory", Use{Batch: 1, Parameters: 1e6, Total: 2 * gib}, "The GPU's memory of 2.0 GiB is too small for this network even with a batch of one image. Try a smaller preset."},
		// In addition to 12 GiB of images, 62 of the 512 fit.
		{wants, Use{Batch: 512, Parameters: 16777216, Total: 24 * gib, Dataset: 12 * gib},
			"The GPU's memory of 24.0 GiB is too small for a batch of 512 images in addition to the dataset of 12.0 GiB; 32 should fit. A run with resident=never keeps the dataset on the host, which leaves the GPU's memory to the batch."},
		{wants, Use{Batch: 512, Parameters: 16777216, Total: 24 * gib, Dataset: 24 * gib},
			"The GPU's memory of 24.0 GiB is too small for this network in addition to the dataset of 24.0 GiB even with a batch of one image. A run with resident=never keeps the dataset on the host, which leaves the GPU's memory to the batch."},
		{wants, Use{Batch: 128, Parameters: 16777216, Total: 24 * gib, Dataset: 48 * gib, Copying: true},
			"The GPU's memory of 24.0 GiB is too small for the dataset of 48.0 GiB, which takes twice that while it is copied; a batch of 128 images was not tried. A run with resident=never keeps the dataset on the host, which leaves the GPU's memory to the batch."},
	} {
		got, ok := OutOfMemory(c.complaint, c.use)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, want %q", c.complaint, got, c.want)
		}
	}
}

func TestWatcherTellsEachMeasurementOnce(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-5f3c")
	stub(t, "cat <<'E'\n"+twoGPUs+"E\n")
	w := Watch(time.Hour)
	defer w.Stop()
	var got map[string]float64
	for start := time.Now(); got == nil && time.Since(start) < 20*time.Second; time.Sleep(time.Millisecond) {
		got = w.Take()
	}
	want := map[string]float64{"gpu/utilization": 97, "gpu/memory": 1, "gpu/temperature": 61, "gpu/power": 287.31}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if again := w.Take(); again != nil {
		t.Errorf("returned twice: %v", again)
	}
	if got := gpus[1].Series(); !reflect.DeepEqual(got, map[string]float64{"gpu/temperature": 34}) {
		t.Errorf("a card with few values returns %v", got)
	}
}

// index is a small fake PyPI with JAX's plugin for two architectures, and two NVIDIA libraries with some unsuitable versions.
type index struct {
	*httptest.Server
	wheels map[string][]byte // by file name
	cut    atomic.Bool       // whether to cut off the next wheel in the middle
	sent   atomic.Int64      // bytes sent of wheels
}

func newIndex(t *testing.T) *index {
	t.Helper()
	x := &index{wheels: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/pypi/", x.describe)
	mux.HandleFunc("/files/", x.file)
	x.Server = httptest.NewServer(mux)
	t.Cleanup(x.Close)
	x.add(t, "jax_cuda13_pjrt-0.7.1-py3-none-manylinux_2_27_x86_64.whl", "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "the plugin", "jax_cuda13_pjrt-0.7.1.dist-info/METADATA", "x")
	x.add(t, "jax_cuda13_pjrt-0.7.1-py3-none-manylinux_2_27_aarch64.whl", "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "another")
	x.add(t, "nvidia_cublas-13.1-py3-none-manylinux_2_27_x86_64.whl", "nvidia/cu13/lib/libcublas.so.13", strings.Repeat("cublas ", 1<<15))
	x.add(t, "nvidia_cublas-14.0-py3-none-manylinux_2_27_x86_64.whl", "nvidia/cu14/lib/libcublas.so.14", "too new")
	x.add(t, "nvidia_nvvm-13.0.1-py3-none-manylinux2010_x86_64.whl", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "bitcode")
	return x
}

// add adds a wheel; files alternates names and contents.
func (x *index) add(t *testing.T, name string, files ...string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: files[i], Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(files[i+1]))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	x.wheels[name] = b.Bytes()
}

func (x *index) release(name string) release {
	sum := sha256.Sum256(x.wheels[name])
	return release{Filename: name, URL: x.URL + "/files/" + name, Size: int64(len(x.wheels[name])), Type: "bdist_wheel",
		Digests: map[string]string{"sha256": hex.EncodeToString(sum[:])}}
}

func (x *index) describe(w http.ResponseWriter, r *http.Request) {
	var p project
	pjrt := []release{x.release("jax_cuda13_pjrt-0.7.1-py3-none-manylinux_2_27_aarch64.whl"), x.release("jax_cuda13_pjrt-0.7.1-py3-none-manylinux_2_27_x86_64.whl")}
	yanked := x.release("nvidia_nvvm-13.0.1-py3-none-manylinux2010_x86_64.whl")
	yanked.Yanked = true
	switch r.URL.Path {
	case "/pypi/jax-cuda13-pjrt/json", "/pypi/jax-cuda13-pjrt/0.7.1/json":
		p.Info.Version, p.URLs = "0.7.1", pjrt
	case "/pypi/jax-cuda13-plugin/0.7.1/json":
		p.Info.RequiresDist = []string{"jax-cuda13-pjrt==0.7.1", `nvidia-cublas<14.0,>=13.0; sys_platform == "linux" and extra == "with-cuda"`, `nvidia-nvvm>=13.0; extra == "with-cuda"`}
	case "/pypi/nvidia-cublas/json":
		p.Releases = map[string][]release{"13.1": {x.release("nvidia_cublas-13.1-py3-none-manylinux_2_27_x86_64.whl")}, "14.0": {x.release("nvidia_cublas-14.0-py3-none-manylinux_2_27_x86_64.whl")}}
	case "/pypi/nvidia-nvvm/json":
		p.Releases = map[string][]release{"13.0.1": {x.release("nvidia_nvvm-13.0.1-py3-none-manylinux2010_x86_64.whl")}, "13.0.2": {yanked}, "13.1.0rc1": {x.release("nvidia_nvvm-13.0.1-py3-none-manylinux2010_x86_64.whl")}}
	default:
		http.NotFound(w, r)
		return
	}
	json.NewEncoder(w).Encode(p)
}

func (x *index) file(w http.ResponseWriter, r *http.Request) {
	content := x.wheels[filepath.Base(r.URL.Path)]
	if strings.Contains(r.URL.Path, "cublas") && x.cut.CompareAndSwap(true, false) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:len(content)/2])
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("ETag", `"1"`)
	count := &counted{ResponseWriter: w, n: &x.sent}
	http.ServeContent(count, r, "", time.Time{}, bytes.NewReader(content))
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return c.ResponseWriter.Write(b)
}

func (x *index) options(dir string) InstallOptions {
	f := fetch.New()
	f.Wait = func(int) time.Duration { return time.Millisecond }
	return InstallOptions{Dir: dir, CUDA: 13, Index: x.URL + "/pypi", Arch: "amd64", Fetch: &f}
}

func TestInstall(t *testing.T) {
	tree(t)
	os.Unsetenv("VIRTUAL_ENV")
	x, dir := newIndex(t), t.TempDir()
	t.Setenv(FolderEnv, dir)
	x.cut.Store(true) // the connection breaks once, and only the rest is requested
	var last Progress
	o := x.options(dir)
	o.Report = func(p Progress) { last = p }
	p, err := Install(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "cuda13", "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	if b, _ := os.ReadFile(want); p.Path != want || string(b) != "the plugin" || p.Data != filepath.Join(dir, "cuda13", "nvidia", "cu13") {
		t.Errorf("%+v holds %q", p, b)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "cuda13", "nvidia", "cu13", "lib", "libcublas.so.13")); len(b) != 7<<15 {
		t.Errorf("libcublas has %d bytes", len(b))
	}
	if found, _ := Find("cuda", "580"); found.Path != want {
		t.Errorf("found %+v", found)
	}
	if last.Done != last.Of || last.Of == 0 || last.Done <= x.sent.Load() {
		t.Errorf("progress ends at %+v; %d bytes were sent after the break", last, x.sent.Load())
	}
	for _, gone := range []string{"wheels", "cuda13.part", filepath.Join("cuda13", "jax_cuda13_pjrt-0.7.1.dist-info")} {
		if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s was left", gone)
		}
	}
	before := x.sent.Load()
	if _, err := Install(t.Context(), x.options(dir)); err != nil || x.sent.Load() != before {
		t.Errorf("installed again: %d bytes, %v", x.sent.Load()-before, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*index, *InstallOptions)
		want   string
	}{
		"a wheel with another checksum": {func(x *index, o *InstallOptions) {
			x.Config.Handler.(*http.ServeMux).HandleFunc("/files/nvidia_nvvm-13.0.1-py3-none-manylinux2010_x86_64.whl", func(w http.ResponseWriter, _ *http.Request) {
				w.Write(bytes.Repeat([]byte{1}, len(x.wheels["nvidia_nvvm-13.0.1-py3-none-manylinux2010_x86_64.whl"])))
			})
		}, "it was removed, try again"},
		"a missing version":          {func(_ *index, o *InstallOptions) { o.Version = "9.9" }, "has no version 9.9 of jax-cuda13-pjrt"},
		"another CUDA":               {func(_ *index, o *InstallOptions) { o.CUDA = 11 }, "CUDA 12 and 13, not 11"},
		"a processor without plugin": {func(_ *index, o *InstallOptions) { o.Arch = "riscv64" }, "riscv64"},
		"no folder":                  {func(_ *index, o *InstallOptions) { o.Dir = "" }, "--to"},
	} {
		t.Run(name, func(t *testing.T) {
			x, dir := newIndex(t), t.TempDir()
			o := x.options(dir)
			c.change(x, &o)
			if _, err := Install(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "cuda13")); err == nil {
				t.Error("something was installed")
			}
		})
	}
}

func TestInterruptedInstallGoesOn(t *testing.T) {
	x, dir := newIndex(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o := x.options(dir)
	o.Report = func(p Progress) {
		if strings.Contains(p.What, "cublas") {
			cancel()
		}
	}
	if _, err := Install(ctx, o); err == nil {
		t.Fatal("an interrupted installation returned no error")
	}
	var first Progress
	o = x.options(dir)
	o.Report = func(p Progress) {
		if first.Of == 0 {
			first = p
		}
	}
	if _, err := Install(t.Context(), o); err != nil || first.Kept == 0 {
		t.Errorf("%v; %d bytes were kept", err, first.Kept)
	}
}

// TestPythonsThatAreFound finds JAX in the environment that python3 on the PATH leads to through two links, then in a named environment.
func TestPythonsThatAreFound(t *testing.T) {
	tree(t)
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	jax := func(prefix string) string {
		return touch(t, filepath.Join(prefix, "lib", "python3.12", "site-packages", "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"))
	}
	env, bin := t.TempDir(), t.TempDir()
	inEnv := jax(env)
	touch(t, filepath.Join(env, "bin", "python3.12"))
	if err := os.Chmod(filepath.Join(env, "bin", "python3.12"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{filepath.Join(env, "bin", "python3"): "python3.12", filepath.Join(bin, "python3"): filepath.Join(env, "bin", "python3")} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	if got, _ := Find("cuda", ""); got.Path != inEnv {
		t.Errorf("through links: %+v", got)
	}
	named := t.TempDir()
	t.Setenv(PythonEnv, named)
	if got, _ := Find("cuda", ""); got.Path != inEnv {
		t.Errorf("an environment without JAX: %+v", got)
	}
	inNamed := jax(named)
	if got, _ := Find("cuda", ""); got.Path != inNamed || got.Place != "JAX in $"+PythonEnv {
		t.Errorf("named: %+v", got)
	}
}
