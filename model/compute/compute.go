// Package compute chooses and opens the compute engine.
package compute

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"

	"slotscope/model"
	"slotscope/model/compute/cpu"
)

// Engine is a GoMLX backend with the reason why it was chosen.
type Engine struct {
	backends.Backend
	Name      string // "cpu", "xla:cuda", "xla:cpu", "go"
	Why       string // one sentence for logs and pages
	Precision string // of products in training steps
	Threads   int    // host threads that compute; 0 for a GPU
}

// fractionEnv sets the share of a GPU's memory that a run may use. JAX uses the same name.
const fractionEnv = "XLA_PYTHON_CLIENT_MEM_FRACTION"

// Share returns environment variables for each of several concurrent processes: its share of the cores as threads and, if it can use a GPU,
// its share of the GPU's memory. Existing values in our environment take precedence. It returns nil for one process.
func Share(processes int) []string {
	if processes <= 1 {
		return nil
	}
	threads := cmp.Or(os.Getenv(cpu.ThreadsEnv), strconv.Itoa(max(1, cpu.Cores()/processes)))
	env := []string{cpu.ThreadsEnv + "=" + threads}
	if os.Getenv(fractionEnv) == "" && MemoryShare() > 0 {
		env = append(env, fmt.Sprintf("%s=%.3f", fractionEnv, MemoryShare()/float64(processes)))
	}
	return env
}

// Open opens an engine by name, one of model.EngineNames. "auto" chooses an NVIDIA GPU if XLA can use one, else the CPU engine, and Why says
// what was tried. An unknown name is a model.Invalid. Engines named "cpu" share one pool of workers.
func Open(name string) (*Engine, error) { return OpenFor(model.Config{Engine: name}) }

// OpenFor is like Open for a run: with its engine, its precision of products and, if asked for, deterministic results. A GPU is configured for it. On the CPU engine, graphs
// request BF16 themselves. BF16x3 is a model.Invalid on other engines, or if float32 products are faster on this machine.
func OpenFor(c model.Config) (*Engine, error) { return opened(c, nil) }

// OpenToTrain is like OpenFor for a run that trains: if its precision is not set, the CPU engine computes products in BF16x3 where that is faster than
// float32. The errors are within the tolerance for float32 except those of second differences, so Tripod is trained in float32.
// The products that BF16 leaves in float32 are computed in the same way.
func OpenToTrain(c model.Config) (*Engine, error) { return OpenToResume(c, "") }

// OpenToResume is like OpenToTrain for a run that has been trained in the precision before, "" if it has not: products in float32 stay so, since the
// choice depends on a measurement. Why names the reason if those in BF16x3 cannot.
func OpenToResume(c model.Config, before string) (*Engine, error) { return opened(c, &before) }

// opened opens an engine, to train unless before is nil.
func opened(c model.Config, before *string) (*Engine, error) {
	if c.Precision == model.BF16x3 {
		if why, used := cpu.BF16x3(); !used {
			return nil, model.Invalid{"precision": "bf16x3 is not faster on this machine; choose float32. " + why}
		}
	}
	e, err := openNamed(c, before)
	if err != nil {
		return nil, err
	}
	if c.Precision == model.BF16x3 && e.Name != "cpu" {
		e.Finalize()
		return nil, model.Invalid{"precision": fmt.Sprintf("bf16x3 needs the CPU engine, but the engine is %s; choose tf32 or float32", e.Name)}
	}
	if e.Precision == "" {
		e.Precision = c.Computed(e.Name)
	}
	return e, nil
}

func openNamed(c model.Config, before *string) (*Engine, error) {
	switch c.Engine {
	case "auto", "":
		return auto(here(context.Background()), c, before)
	case "cpu":
		return openCPU("The CPU engine was requested", c, before)
	case "go":
		return openGo()
	case "xla:cpu":
		return openXLACPU()
	case "xla:cuda":
		return openCUDA(here(context.Background()), "XLA on an NVIDIA GPU was requested", c)
	}
	return nil, model.Invalid{"engine": fmt.Sprintf("%q is not one of %s", c.Engine, strings.Join(model.EngineNames(), ", "))}
}

// auto tries the detected GPU, then the CPU engine.
func auto(found Report, c model.Config, before *string) (*Engine, error) {
	if missing := found.missing(); missing != "" {
		e, err := openCPU(upper(missing), c, before)
		if err == nil {
			e.Why += found.hint()
		}
		return e, err
	}
	e, err := openCUDA(found, "An NVIDIA GPU and XLA's plugin for it were found", c)
	if err == nil {
		return e, nil
	}
	return openCPU(fmt.Sprintf("An NVIDIA GPU was found, but XLA cannot use it (%s)", firstLine(err)), c, before)
}

func openCPU(because string, c model.Config, before *string) (*Engine, error) {
	config, kernels, precision := "", "", ""
	if c.Precision == model.BF16 {
		kernels = " " + cpu.BF16()
	}
	training := before != nil
	chooses := training && c.Precision == "" && *before != model.Float32 && c.Model != "tripod"
	if chooses || training && c.Precision == model.BF16 || c.Precision == model.BF16x3 {
		why, used := cpu.BF16x3()
		switch {
		case used:
			config, kernels = ","+cpu.SplitProducts, kernels+" "+why
			if chooses {
				precision = model.BF16x3
			}
		case chooses && *before == model.BF16x3:
			kernels += " Until now, products of this run were computed in bf16x3, which is not faster here; now they are in float32. " + why
		}
	}
	b, err := cpu.New(config)
	if err != nil {
		return nil, fmt.Errorf("opening the CPU engine: %w", err)
	}
	n := b.(interface{ Threads() int }).Threads()
	why := fmt.Sprintf("%s; it uses %s.", because, count(n, "thread"))
	if !strings.HasPrefix(because, "The CPU engine") {
		why = fmt.Sprintf("%s, so the CPU engine is used with %s.", because, count(n, "thread"))
	}
	return &Engine{Backend: b, Name: "cpu", Why: why + kernels, Precision: precision, Threads: n}, nil
}

func openGo() (*Engine, error) {
	b, err := simplego.New("ops_sequential") // parallel operations of GoMLX 0.26 have a data race on buffers
	if err != nil {
		return nil, fmt.Errorf("opening GoMLX's Go backend: %w", err)
	}
	return &Engine{Backend: b, Name: "go", Why: "GoMLX's Go backend was requested.", Threads: cpu.Cores()}, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// firstLine drops the stack traces of GoMLX's errors.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, ".")
}
