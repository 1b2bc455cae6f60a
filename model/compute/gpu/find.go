package gpu

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Environment variables with paths.
const (
	PythonEnv = "SLOTSCOPE_PYTHON"         // folder of a Python environment with JAX, as printed by python -c 'import sys; print(sys.prefix)'
	FolderEnv = "SLOTSCOPE_XLA"            // folder to install plugins in, instead of the user's cache
	PluginEnv = "PJRT_PLUGIN_LIBRARY_PATH" // folders of plugins, also read by PJRT and GoMLX
)

// Plugin is a library with which XLA computes on a kind of device.
type Plugin struct {
	Path  string `json:"path"`
	Data  string `json:"data"` // folder with nvvm/libdevice, which compilation needs; "" if none was found
	CUDA  int    `json:"cuda"` // major version of CUDA that it was built for; 0 if not in its path
	Place string `json:"place"`
}

// Place is a place that was searched for plugins, with the result.
type Place struct {
	What  string   `json:"what"`
	Where []string `json:"where"`           // file patterns, best first
	Found []string `json:"found,omitempty"` // plugins, newest name first
}

// leastDriver is the oldest driver for each major version of CUDA.
var leastDriver = map[int]int{12: 525, 13: 580}

// Find looks for plugins for a platform ("cpu", "cuda") in every place, best first. It returns the first whose CUDA version the driver
// supports, else the first, else the zero Plugin. An empty driver supports all versions.
func Find(platform, driver string) (Plugin, []Place) {
	all := look(platform)
	var chosen, old Plugin
	for _, place := range all {
		for _, path := range place.Found {
			p := Plugin{Path: path, CUDA: version(path), Place: place.What}
			switch {
			case chosen.Path == "" && Runs(driver, p.CUDA):
				chosen = p
			case old.Path == "":
				old = p
			}
		}
	}
	if chosen.Path == "" {
		chosen = old
	}
	if chosen.Path != "" {
		chosen.Data = dataDir(chosen.Path)
	}
	return chosen, all
}

// Runs reports whether a driver ("580.65.06") supports a major version of CUDA, or true if either is unknown.
func Runs(driver string, cuda int) bool {
	major, err := strconv.Atoi(strings.SplitN(driver, ".", 2)[0])
	return err != nil || major >= leastDriver[cuda]
}

// Needs returns a clause that says which driver a version of CUDA needs.
func Needs(cuda int) string {
	return fmt.Sprintf("CUDA %d needs NVIDIA driver %d or newer", cuda, leastDriver[cuda])
}

// version returns the major version of CUDA in a plugin's path, …/xla_cuda13/xla_cuda_plugin.so, or 0.
func version(path string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "xla_cuda"))
	return n
}

// Folder returns the folder of installed plugins: $SLOTSCOPE_XLA, else in the user's cache; "" if neither is known.
func Folder() string {
	if dir := os.Getenv(FolderEnv); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "slotscope", "xla")
}

// look searches every place.
func look(platform string) []Place {
	names := []string{"pjrt_c_api_%s_plugin.so", "pjrt-plugin-%s.so", "pjrt_plugin_%s.so", "pjrt_c_api_%s_plugin.dylib"}
	plain := func(dirs ...string) (patterns []string) {
		for _, dir := range dirs {
			for _, name := range names {
				patterns = append(patterns, filepath.Join(dir, fmt.Sprintf(name, platform)))
			}
		}
		return patterns
	}
	jax := func(dirs ...string) (patterns []string) {
		for _, dir := range dirs {
			patterns = append(patterns, filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so"))
		}
		return patterns
	}
	named := split(os.Getenv(PluginEnv))
	all := []Place{{What: "$" + PluginEnv, Where: plain(named...)}}
	if platform == "cuda" {
		all[0].Where = append(all[0].Where, jax(named...)...)
		for _, dir := range named {
			all[0].Where = append(all[0].Where, filepath.Join(dir, "xla_cuda_plugin.so"))
		}
		if own := Folder(); own != "" {
			all = append(all, Place{What: "installed by slotscope gpu install", Where: jax(filepath.Join(own, "cuda*"))})
		}
		all = append(all, Place{What: "JAX in $" + PythonEnv, Where: jax(packages(os.Getenv(PythonEnv))...)})
	}
	all = append(all, Place{What: "GoMLX's folders", Where: plain(goxlaDirs()...)})
	if platform == "cuda" {
		all = append(all, Place{What: "JAX in a Python environment", Where: jax(pythonDirs()...)})
	}
	all = append(all, Place{What: "$LD_LIBRARY_PATH", Where: plain(split(os.Getenv("LD_LIBRARY_PATH"))...)})
	all = slices.DeleteFunc(all, func(p Place) bool { return len(p.Where) == 0 })
	for i := range all {
		all[i].Found = matches(all[i].Where)
	}
	return all
}

// matches returns the files that match patterns, in order of pattern, then by newest version, each once.
func matches(patterns []string) (files []string) {
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return cmp.Or(version(b)-version(a), strings.Compare(b, a)) })
		for _, file := range found {
			if info, err := os.Stat(file); err == nil && !info.IsDir() && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// goxlaDirs returns the folders that GoMLX installs plugins in.
func goxlaDirs() (dirs []string) {
	if home, err := os.UserHomeDir(); err == nil {
		lib := filepath.Join(home, ".local", "lib")
		dirs = append(dirs, filepath.Join(lib, "go-xla"), filepath.Join(lib, "go-xla", "nvidia"), filepath.Join(lib, "gomlx", "pjrt"),
			filepath.Join(home, "Library", "Application Support", "go-xla"))
	}
	return append(dirs, "/usr/local/lib/go-xla", "/usr/local/lib/go-xla/nvidia", "/usr/local/lib/gomlx/pjrt")
}

func split(list string) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(s string) bool { return s == "" })
}

// pythonDirs returns patterns of package folders of the active Python environment, then the user's and the system's.
func pythonDirs() []string {
	dirs := split(os.Getenv("PYTHONPATH"))
	prefixes := []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")}
	prefixes = append(prefixes, pythonPrefixes()...)
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	for _, prefix := range append(prefixes, "/usr/local", "/usr") {
		dirs = append(dirs, packages(prefix)...)
	}
	return dirs
}

// pythonPrefixes returns the environments of the python3 on the PATH, following up to 8 links, each of which may point into another one.
func pythonPrefixes() (prefixes []string) {
	python, err := exec.LookPath("python3")
	for hops := 0; err == nil && hops < 8; hops++ {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
		var to string
		if to, err = os.Readlink(python); !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(python), to)
		}
		python = to
	}
	return prefixes
}

// packages returns patterns of the package folders of a Python environment.
func packages(prefix string) []string {
	if prefix == "" {
		return nil
	}
	return []string{filepath.Join(prefix, "lib", "python3*", "site-packages"), filepath.Join(prefix, "lib", "python3*", "dist-packages")}
}

// dataDir returns the folder of CUDA's compiler library, which XLA needs: near the plugin, else that of CUDA itself.
func dataDir(plugin string) string {
	var roots []string
	for dir, i := filepath.Dir(plugin), 0; i < 3; dir, i = filepath.Dir(dir), i+1 {
		roots = append(roots, filepath.Join(dir, "nvidia"), dir)
	}
	for _, dir := range slices.Concat(goxlaDirs(), pythonDirs()) {
		roots = append(roots, filepath.Join(dir, "nvidia"))
	}
	roots = append(roots, os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda")
	const library = "nvvm/libdevice/libdevice.10.bc"
	for _, root := range roots {
		if root == "" {
			continue
		}
		if found := matches([]string{filepath.Join(root, library), filepath.Join(root, "*", library)}); len(found) > 0 {
			return strings.TrimSuffix(found[0], string(filepath.Separator)+library)
		}
	}
	return ""
}
