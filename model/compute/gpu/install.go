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

// IndexEnv sets the URL of a Python package index with PyPI's JSON API, to use instead of PyPI.
const IndexEnv = "SLOTSCOPE_PYPI"

// InstallOptions are the options of Install.
type InstallOptions struct {
	Dir     string // see Folder
	CUDA    int    // 12 or 13
	Version string // version of JAX; empty for the newest
	Index   string // package index; empty for $SLOTSCOPE_PYPI or PyPI
	Arch    string // Go's name of the architecture; empty for this machine's
	Fetch   *fetch.Fetcher
	Report  func(Progress) // may be nil
}

// Progress is the progress of an installation.
type Progress struct {
	What     string
	Done, Of int64 // total bytes of all files
	Kept     int64 // bytes kept from an earlier installation attempt
}

// release is one file of a package version.
type release struct {
	Filename string            `json:"filename"`
	URL      string            `json:"url"`
	Size     int64             `json:"size"`
	Type     string            `json:"packagetype"`
	Yanked   bool              `json:"yanked"`
	Digests  map[string]string `json:"digests"`
}

// project is PyPI's JSON description of a package.
type project struct {
	Info struct {
		Version      string   `json:"version"`
		RequiresDist []string `json:"requires_dist"`
	} `json:"info"`
	Releases map[string][]release `json:"releases"`
	URLs     []release            `json:"urls"`
}

// Install downloads XLA's CUDA plugin, as published by JAX, and the NVIDIA libraries that it needs. It verifies their published SHA-256 and
// lays them out under Dir like a Python environment, so that the plugin finds its libraries. It resumes interrupted downloads, does nothing
// if the version is already installed, and replaces an older installation at the end.
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
		return Plugin{}, fmt.Errorf("creating the folder for XLA's plugin: %w", err)
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
		return fmt.Errorf("XLA's plugin is available only for CUDA 12 and 13, not %d", o.CUDA)
	case runtime.GOOS != "linux" || platforms[o.Arch] == nil:
		return fmt.Errorf("XLA's CUDA plugin is available only for Linux on amd64 and arm64; this machine is %s on %s", runtime.GOOS, o.Arch)
	case o.Dir == "":
		return errors.New("no folder to install XLA's plugin in; choose one with --to")
	}
	return nil
}

// platforms are patterns of wheel names by architecture.
var platforms = map[string]*regexp.Regexp{
	"amd64": regexp.MustCompile(`-manylinux.*x86_64\.whl$`),
	"arm64": regexp.MustCompile(`-manylinux.*aarch64\.whl$`),
}

// plan returns the wheels to install: the plugin of a version of JAX, and the newest accepted version of each NVIDIA library.
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
		return nil, "", fmt.Errorf("JAX %s lists no NVIDIA libraries; choose another version with --version", version)
	}
	return wheels, version, nil
}

// newest returns the wheel of the latest final version that a dependency accepts.
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
		return release{}, fmt.Errorf("%s has no version that works with JAX on this machine", d.Package)
	}
	return found, nil
}

var final = regexp.MustCompile(`^[0-9.]+(\.post[0-9]+)?$`)

// wheel returns the file for the architecture. Files without an architecture in their name do not count.
func (o *InstallOptions) wheel(files []release) (release, bool) {
	i := slices.IndexFunc(files, func(f release) bool {
		return f.Type == "bdist_wheel" && !f.Yanked && platforms[o.Arch].MatchString(f.Filename) && f.Digests["sha256"] != ""
	})
	if i < 0 {
		return release{}, false
	}
	return files[i], true
}

// project requests the description of a package, or of one version of it, from the index.
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
		return p, fmt.Errorf("looking up package %s: %w", name, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode == http.StatusNotFound {
		return p, fmt.Errorf("the package index %s has no version %s of %s", o.Index, or(version, "at all"), name)
	}
	if reply.StatusCode != http.StatusOK {
		return p, fmt.Errorf("%s responded with status %s", address, reply.Status)
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

// download downloads every wheel and verifies its checksum. A wheel that differs is removed, so that the next call downloads it again.
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
			return fmt.Errorf("the package index lists %q, which is not a file name", w.Filename)
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
			return fmt.Errorf("%w; it was removed, try again", err)
		}
		p.Done = before + w.Size
		o.Report(p)
	}
	return nil
}

// has returns the number of bytes of a wheel that an earlier call downloaded.
func (o *InstallOptions) has(dir *os.Root, w release) int64 {
	for _, name := range []string{w.Filename, w.Filename + ".part"} {
		if stat, err := dir.Stat(name); err == nil {
			return min(stat.Size(), w.Size)
		}
	}
	return 0
}

// layOut unpacks the wheels next to the current installation, then replaces it.
func (o *InstallOptions) layOut(ctx context.Context, store string, wheels []release, version, final string) error {
	draft := final + ".part"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("removing an incomplete installation: %w", err)
	}
	if err := os.MkdirAll(draft, 0o755); err != nil {
		return fmt.Errorf("creating the folder for XLA's plugin: %w", err)
	}
	root, err := os.OpenRoot(draft)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, w := range wheels {
		if err := unpack(ctx, filepath.Join(store, w.Filename), root); err != nil {
			return fmt.Errorf("unpacking %s: %w", w.Filename, err)
		}
	}
	if err := root.WriteFile("version", []byte(version+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("removing the earlier installation: %w", err)
	}
	return os.Rename(draft, final)
}

// unpack writes the files of a wheel except Python metadata. Names cannot lead out of root.
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

// installed returns the plugin in a folder.
func (o *InstallOptions) installed(dir string) (Plugin, error) {
	found := matches([]string{filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so")})
	if len(found) == 0 {
		return Plugin{}, fmt.Errorf("%s has no jax_plugins/xla_cuda%d/xla_cuda_plugin.so after installation; JAX may have changed its layout, so choose an older version with --version", dir, o.CUDA)
	}
	return Plugin{Path: found[0], Data: dataDir(found[0]), CUDA: o.CUDA, Place: "installed by slotscope gpu install"}, nil
}
