package gpu

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/go-xla/pkg/installer"

	"slotscope/model/data/fetch"
)

// IndexEnv names an index of Python packages with PyPI's JSON interface, instead of PyPI itself.
const IndexEnv = "SLOTSCOPE_PYPI"

// InstallOptions say what to install, and where.
type InstallOptions struct {
	Dir     string // see Folder
	CUDA    int    // 12 or 13
	Version string // of JAX; empty for the newest
	Index   string // of packages; empty for $SLOTSCOPE_PYPI or PyPI
	Arch    string // as Go names it; empty for this machine's
	Fetch   *fetch.Fetcher
	Report  func(Progress) // may be nil
}

// Progress is how far an installation is.
type Progress struct {
	What     string
	Done, Of int64 // bytes of everything
	Kept     int64 // bytes that were here before
}

// release is one file of a version of a package.
type release struct {
	Filename string            `json:"filename"`
	URL      string            `json:"url"`
	Size     int64             `json:"size"`
	Type     string            `json:"packagetype"`
	Yanked   bool              `json:"yanked"`
	Digests  map[string]string `json:"digests"`
}

// project is what PyPI's JSON interface says of a package.
type project struct {
	Info struct {
		Version      string   `json:"version"`
		RequiresDist []string `json:"requires_dist"`
	} `json:"info"`
	Releases map[string][]release `json:"releases"`
	URLs     []release            `json:"urls"`
}

// Install downloads XLA's CUDA plugin and the libraries of NVIDIA that it needs, as JAX publishes them, compares each with its
// published SHA-256, and lays them out under Dir as a Python environment would, which is how the plugin finds its libraries. A
// download that was interrupted goes on; what is installed already is left alone; an older installation is replaced at the end.
func Install(ctx context.Context, o InstallOptions) (Plugin, error) {
	o.defaults()
	if err := o.check(); err != nil {
		return Plugin{}, err
	}
	wheels, version, err := o.plan(ctx)
	if err != nil {
		return Plugin{}, err
	}
	final := filepath.Join(o.Dir, fmt.Sprintf("cuda%d", o.CUDA))
	if b, err := os.ReadFile(filepath.Join(final, "version")); err == nil && strings.TrimSpace(string(b)) == version {
		return o.installed(final)
	}
	store := filepath.Join(o.Dir, "wheels")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return Plugin{}, fmt.Errorf("make the folder of XLA's plugin: %w", err)
	}
	if err := o.download(ctx, store, wheels); err != nil {
		return Plugin{}, err
	}
	if err := o.layOut(ctx, store, wheels, version, final); err != nil {
		return Plugin{}, err
	}
	os.RemoveAll(store)
	return o.installed(final)
}

func (o *InstallOptions) defaults() {
	if o.Index == "" {
		o.Index = os.Getenv(IndexEnv)
	}
	if o.Index == "" {
		o.Index = "https://pypi.org/pypi"
	}
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	if o.Fetch == nil {
		f := fetch.New()
		o.Fetch = &f
	}
	if o.Report == nil {
		o.Report = func(Progress) {}
	}
}

func (o *InstallOptions) check() error {
	switch {
	case o.CUDA != 12 && o.CUDA != 13:
		return fmt.Errorf("XLA's plugin is published for CUDA 12 and 13, not %d", o.CUDA)
	case runtime.GOOS != "linux" || platforms[o.Arch] == nil:
		return fmt.Errorf("XLA's CUDA plugin is published for Linux on amd64 and arm64; this is %s on %s", runtime.GOOS, o.Arch)
	case o.Dir == "":
		return errors.New("there is no folder to install XLA's plugin into: name one with --to")
	}
	return nil
}

// platforms are what names of wheels say of processors.
var platforms = map[string]*regexp.Regexp{
	"amd64": regexp.MustCompile(`-manylinux.*x86_64\.whl$`),
	"arm64": regexp.MustCompile(`-manylinux.*aarch64\.whl$`),
}

// plan lists the wheels: the plugin of a version of JAX, and the newest of each library of NVIDIA that it accepts.
func (o *InstallOptions) plan(ctx context.Context) (wheels []release, version string, err error) {
	plugin, err := o.project(ctx, fmt.Sprintf("jax-cuda%d-pjrt", o.CUDA), o.Version)
	if err != nil {
		return nil, "", err
	}
	version = plugin.Info.Version
	wheel, ok := o.wheel(plugin.URLs)
	if !ok {
		return nil, "", fmt.Errorf("JAX %s has no plugin for CUDA %d on %s", version, o.CUDA, o.Arch)
	}
	wheels = append(wheels, wheel)
	needs, err := o.project(ctx, fmt.Sprintf("jax-cuda%d-plugin", o.CUDA), version)
	if err != nil {
		return nil, "", err
	}
	described := installer.PipPackageInfo{}
	described.Info.RequiresDist = needs.Info.RequiresDist
	dependencies, err := described.ParseDependencies()
	if err != nil {
		return nil, "", fmt.Errorf("JAX %s: %w", version, err)
	}
	for _, d := range dependencies {
		if !strings.HasPrefix(d.Package, "nvidia-") {
			continue
		}
		wheel, err := o.newest(ctx, d)
		if err != nil {
			return nil, "", err
		}
		wheels = append(wheels, wheel)
	}
	if len(wheels) == 1 {
		return nil, "", fmt.Errorf("JAX %s does not say which of NVIDIA's libraries it needs", version)
	}
	return wheels, version, nil
}

// newest is the wheel of the latest final version that a dependency accepts.
func (o *InstallOptions) newest(ctx context.Context, d installer.PipDependency) (release, error) {
	p, err := o.project(ctx, d.Package, "")
	if err != nil {
		return release{}, err
	}
	best, found := "", release{}
	for version, files := range p.Releases {
		wheel, ok := o.wheel(files)
		if ok && final.MatchString(version) && d.IsValid(version) && (best == "" || installer.PipCompareVersion(version, best) > 0) {
			best, found = version, wheel
		}
	}
	if best == "" {
		return release{}, fmt.Errorf("%s has no version that JAX accepts and this machine can use", d.Package)
	}
	return found, nil
}

var final = regexp.MustCompile(`^[0-9.]+(\.post[0-9]+)?$`)

// wheel picks the file for this machine; libraries without a processor's name are none.
func (o *InstallOptions) wheel(files []release) (release, bool) {
	i := slices.IndexFunc(files, func(f release) bool {
		return f.Type == "bdist_wheel" && !f.Yanked && platforms[o.Arch].MatchString(f.Filename) && f.Digests["sha256"] != ""
	})
	if i < 0 {
		return release{}, false
	}
	return files[i], true
}

// project asks the index about a package, or about one version of it.
func (o *InstallOptions) project(ctx context.Context, name, version string) (p project, err error) {
	address, err := url.JoinPath(o.Index, name, version, "json")
	if err != nil {
		return p, fmt.Errorf("the package index %q is not a URL: %w", o.Index, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return p, err
	}
	reply, err := o.Fetch.Client.Do(req)
	if err != nil {
		return p, fmt.Errorf("asking about the package %s: %w", name, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode == http.StatusNotFound {
		return p, fmt.Errorf("there is no version %s of the package %s at %s", or(version, "at all"), name, o.Index)
	}
	if reply.StatusCode != http.StatusOK {
		return p, fmt.Errorf("%s answers %s", address, reply.Status)
	}
	if err := json.NewDecoder(io.LimitReader(reply.Body, 256<<20)).Decode(&p); err != nil {
		return p, fmt.Errorf("%s cannot be parsed: %w", address, err)
	}
	return p, nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// download gets every wheel and compares it with its sum; one that differs is removed, so that the next call begins it anew.
func (o *InstallOptions) download(ctx context.Context, store string, wheels []release) error {
	dir, err := os.OpenRoot(store)
	if err != nil {
		return err
	}
	defer dir.Close()
	p := Progress{}
	for _, w := range wheels {
		p.Of += w.Size
		p.Kept += o.has(dir, w)
	}
	for _, w := range wheels {
		if path.Base(w.Filename) != w.Filename {
			return fmt.Errorf("the index names %q, which is not a file name", w.Filename)
		}
		before := p.Done
		p.What = w.Filename
		want := fetch.Want{URL: w.URL, Name: w.Filename, Bytes: w.Size, SHA256: w.Digests["sha256"]}
		err := o.Fetch.Download(ctx, dir, want, func(done, _ int64) { p.Done = before + done; o.Report(p) })
		if err != nil {
			return err
		}
		if err := fetch.Verify(ctx, filepath.Join(store, w.Filename), want, func(int64, int64) {}); err != nil {
			if ctx.Err() == nil {
				dir.Remove(w.Filename)
			}
			return fmt.Errorf("%w; it was removed, so try again", err)
		}
		p.Done = before + w.Size
		o.Report(p)
	}
	return nil
}

// has is how many bytes of a wheel are here from an earlier call.
func (o *InstallOptions) has(dir *os.Root, w release) int64 {
	for _, name := range []string{w.Filename, w.Filename + ".part"} {
		if stat, err := dir.Stat(name); err == nil {
			return min(stat.Size(), w.Size)
		}
	}
	return 0
}

// layOut unpacks the wheels beside the present installation, then puts the new one in its place.
func (o *InstallOptions) layOut(ctx context.Context, store string, wheels []release, version, final string) error {
	draft := final + ".part"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("remove what an earlier installation left: %w", err)
	}
	if err := os.MkdirAll(draft, 0o755); err != nil {
		return fmt.Errorf("make the folder of XLA's plugin: %w", err)
	}
	root, err := os.OpenRoot(draft)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, w := range wheels {
		if err := unpack(ctx, filepath.Join(store, w.Filename), root); err != nil {
			return fmt.Errorf("unpack %s: %w", w.Filename, err)
		}
	}
	if err := root.WriteFile("version", []byte(version+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("remove the earlier installation: %w", err)
	}
	return os.Rename(draft, final)
}

// unpack writes the files of a wheel that are not Python's own records. Names cannot lead out of root.
func unpack(ctx context.Context, wheel string, root *os.Root) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		top, _, inside := strings.Cut(f.Name, "/")
		if f.FileInfo().IsDir() || !inside || strings.HasSuffix(top, ".dist-info") {
			continue
		}
		if err := extract(f, root); err != nil {
			return err
		}
	}
	return nil
}

func extract(f *zip.File, root *os.Root) error {
	if err := root.MkdirAll(path.Dir(f.Name), 0o755); err != nil {
		return err
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644|f.Mode().Perm()&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// installed describes the plugin in a folder.
func (o *InstallOptions) installed(dir string) (Plugin, error) {
	found := matches([]string{filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so")})
	if len(found) == 0 {
		return Plugin{}, fmt.Errorf("%s has no jax_plugins/xla_cuda%d/xla_cuda_plugin.so after installation: JAX changed its layout; choose an older version with --version", dir, o.CUDA)
	}
	return Plugin{Path: found[0], Data: dataDir(found[0]), CUDA: o.CUDA, Place: "installed by slotscope gpu install"}, nil
}
