package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
)

type gpuCommand struct {
	Show    gpuShow    `cmd:"" default:"withargs" help:"show the compute engine and GPUs in use, and where plugins were searched (default)"`
	Install gpuInstall `cmd:"" help:"download XLA's CUDA plugin and NVIDIA's libraries"`
}

type gpuShow struct{ jsonFlag }

func (c *gpuShow) Run(ctx context.Context, env environment) error {
	found := compute.Look(ctx)
	if c.JSON {
		return printJSON(env.out, found)
	}
	printReport(env.out, found)
	return nil
}

// printReport prints the engine with the reason for it, then the GPUs and plugin found, then the places searched.
func printReport(w io.Writer, r compute.Report) {
	fmt.Fprintf(w, "engine    %s\n          %s\n", r.Engine, r.Why)
	if r.BF16 != "" {
		fmt.Fprintf(w, "bf16      %s\n", r.BF16)
	}
	for _, g := range r.GPUs {
		fmt.Fprintf(w, "GPU %-5d %s\n", g.Index, gpuLine(g))
	}
	if r.Trouble != "" {
		fmt.Fprintf(w, "GPU       %s\n", r.Trouble)
	}
	if r.Driver != "" {
		fmt.Fprintf(w, "driver    %s\n", r.Driver)
	}
	plugin := "not found; `slotscope gpu install` installs one in " + r.Folder
	if r.Folder == "" {
		plugin = "not found; set $HOME, so that `slotscope gpu install` has a folder for one"
	}
	if r.Plugin.Path != "" {
		plugin = r.Plugin.Path + " (" + r.Plugin.Place + ")"
	}
	fmt.Fprintf(w, "plugin    %s\n", plugin)
	if r.Plugin.Path != "" {
		fmt.Fprintf(w, "libdevice %s\n", or(r.Plugin.Data, "not found: XLA may not be able to compile"))
	}
	fmt.Fprintln(w, "searched")
	for _, place := range r.Tried {
		nothing := "nothing"
		if place.What == "$"+gpu.PluginEnv {
			nothing = fmt.Sprintf("nothing in %s; it must name the folder that contains %s", os.Getenv(gpu.PluginEnv), filepath.Base(place.Where[0]))
		}
		fmt.Fprintf(w, "  %s: %s\n", place.What, or(strings.Join(place.Found, ", "), nothing))
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// gpuLine formats a GPU as a line.
func gpuLine(g gpu.GPU) string {
	parts := []string{g.Name}
	add := func(v float64, format string) {
		if v >= 0 {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	if g.Memory >= 0 && g.Used >= 0 {
		parts = append(parts, fmt.Sprintf("%.1f of %.1f GiB in use", float64(g.Used)/(1<<30), float64(g.Memory)/(1<<30)))
	}
	add(g.Utilization, "%.0f %% busy")
	add(g.Temperature, "%.0f °C")
	add(g.Power, "%.0f W")
	return strings.Join(parts, ", ")
}

type gpuInstall struct {
	CUDA    *int   `name:"cuda" enum:"12,13" placeholder:"N" help:"CUDA version; default: the newest that the driver supports"`
	Version string `placeholder:"N.N.N" help:"JAX version to take the plugin from; default: the newest"`
	To      string `placeholder:"FOLDER" help:"install folder; default: $SLOTSCOPE_XLA or a folder in the user's cache. For any other folder, set $SLOTSCOPE_XLA when starting runs"`
	jsonFlag
}

func (c *gpuInstall) Run(ctx context.Context, env environment) error {
	o := gpu.InstallOptions{Dir: cmp.Or(c.To, gpu.Folder()), Version: c.Version, Report: installReporter(env.err)}
	var err error
	if o.CUDA, err = cudaVersion(ctx, c.CUDA); err != nil {
		return err
	}
	plugin, err := gpu.Install(ctx, o)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env.out, plugin)
	}
	fmt.Fprintf(env.out, "installed %s\n", plugin.Path)
	return nil
}

// cudaVersion returns the version given, or else the newest that the driver supports.
func cudaVersion(ctx context.Context, typed *int) (int, error) {
	if typed != nil {
		return *typed, nil
	}
	driver := compute.Look(ctx).Driver
	for _, v := range []int{13, 12} {
		if gpu.Runs(driver, v) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("NVIDIA's driver %s is too old for XLA: %s", driver, gpu.Needs(12))
}

// installReporter shows the progress of downloads: a line that is updated in place on a terminal, otherwise a line every ten seconds.
func installReporter(w io.Writer) func(gpu.Progress) {
	terminal, last, began := isTerminal(w), time.Time{}, time.Now()
	return func(p gpu.Progress) {
		if time.Since(last) < time.Second && p.Done < p.Of || !terminal && time.Since(last) < 10*time.Second && p.Done < p.Of {
			return
		}
		last = time.Now()
		rate := float64(p.Done-p.Kept) / time.Since(began).Seconds()
		line := fmt.Sprintf("%s  %.0f of %.0f MB", p.What, float64(p.Done)/1e6, float64(p.Of)/1e6)
		if rate > 0 && p.Done < p.Of {
			line += fmt.Sprintf("  %.1f MB/s, %v left", rate/1e6, (time.Duration(float64(p.Of-p.Done)/rate) * time.Second))
		}
		if terminal && p.Done < p.Of {
			fmt.Fprintf(w, "\r\x1b[K%s", line)
			return
		}
		if terminal {
			fmt.Fprint(w, "\r\x1b[K")
		}
		fmt.Fprintln(w, line)
	}
}

type versionCommand struct{ jsonFlag }

func (c *versionCommand) Run(env environment) error {
	if c.JSON {
		return printJSON(env.out, About())
	}
	name := "slotscope"
	if Release != "" {
		name += " " + Release
	}
	_, err := fmt.Fprintf(env.out, "%s %s, %s, %s/%s\n", name, Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// About returns the program's version in machine-readable form.
func About() map[string]string {
	return map[string]string{"release": Release, "revision": Revision(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
}
