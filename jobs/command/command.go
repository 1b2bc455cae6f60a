// Package command is Slotscope's command line: one file per subcommand.
package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"slotscope/jobs"
	"slotscope/jobs/slurm"
	"slotscope/model"
)

// Exit codes.
const (
	done        = 0
	failed      = 1
	usage       = 2
	interrupted = 130 // the state was saved
)

// Serve opens the data folder and answers HTTP until ctx ends; main provides it.
type Serve func(ctx context.Context, o ServeOptions) error

// ServeOptions is what `slotscope serve` was told.
type ServeOptions struct {
	Addr  string // host:port
	Data  string // the data folder
	Token string // asked of every visitor where it is set; an address that is not loopback needs one

	Embed     []string // origins whose pages may show ours in frames and read answers
	Open      bool     // on loopback, serve every user of this machine
	AllowRoot bool     // on loopback, serve root beside the server's own user

	Roots       []string // absolute folders that visitors may add datasets from, beside the data folder; see Limits
	PrivateURLs bool     // visitors may add datasets from servers of this machine and of private networks
	SlurmLines  bool     // visitors may give jobs any option of sbatch, and shell lines

	Shipped bool // put the runs that the program ships into the data folder

	Executor string        // where runs go: model.Local or model.Slurm
	Slurm    slurm.Options // what a job asks SLURM for

	Alerting jobs.Alerting // what is told of runs, and whom

	Out io.Writer
}

// sameRequest is within what SIGTERM is the same request as the one before: a scheduler may send it to a process and to its
// parent, which passes it on.
const sameRequest = 5 * time.Second

// errSignal is the cause of a cancelled context when the user or a scheduler asked the process to end.
var errSignal = errors.New("stopped by a signal")

// errUsage marks mistakes in how the program was called.
var errUsage = errors.New("usage")

type subcommand struct {
	name, about string
	run         func(ctx context.Context, env environment, args []string) error
}

type environment struct {
	out, err io.Writer
	serve    Serve
	freeze   Freeze
	export   Export
}

func subcommands() []subcommand {
	return []subcommand{
		{"serve", "open the pages in a browser (the default)", serve},
		{"train", "train a model here, in this process", trainRun},
		{"sweep", "train and evaluate many runs: the paper's protocol, or a plan", sweepRuns},
		{"report", "write tables, figures and files of runs or a sweep", reportRuns},
		{"eval", "measure all of a run: InfoMEC, DCI, noise, swaps, use of codes", evalRun},
		{"reproduce", "train and evaluate the runs of a report again, and compare", reproduceReport},
		{"metrics", "measure InfoMEC, DCI and more of codes or latents in a file: npz, npy, HDF5, MATLAB, Parquet, CSV, JSON", metricsCommand},
		{"runs", "list, show, stop, tag, delete runs and wait for them; logs prints a run's log", runsCommand},
		{"data", "list, add, describe, check, sample and remove datasets", dataCommand},
		{"freeze", "write the playground of runs as one HTML file that needs no server", freezePages},
		{"export", "write a model for other programs: safetensors, ONNX, PyTorch loader, model card", exportRun},
		{"adopt", "open a model from elsewhere: a bundle, a safetensors file, or a program that encodes and decodes", adoptModel},
		{"import", "bring in runs of TensorBoard, MLflow or Weights & Biases", importRuns},
		{"verify", "check a bundle: sums, examples, and its scores measured again", verifyBundle},
		{"bench", "measure training, decoding or reading speed", benchCommand},
		{"job", "train a run as a job of SLURM; SLURM calls it", clusterJob},
		{"gpu", "say what was found for a GPU and what is taken; gpu install gets XLA's plugin", gpuCommand},
		{"completion", "print a completion script for bash, zsh or fish", completion},
		{"manual", "print the manual page", manualPage},
		{"version", "print the program's version", version},
	}
}

// Main runs the program with its arguments, without the program's name, and returns its exit code.
func Main(args []string, serve Serve, freeze Freeze, export Export) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cancel(errSignal)
		for asked := time.Now(); ; {
			again := <-signals
			if again == os.Interrupt || first == os.Interrupt || time.Since(asked) > sameRequest {
				os.Exit(interrupted) // a second request does not wait for saving
			}
		}
	}()
	return dispatch(ctx, environment{os.Stdout, os.Stderr, serve, freeze, export}, args)
}

func dispatch(ctx context.Context, env environment, args []string) int {
	name := "serve"
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		printUsage(env.out)
		return done
	}
	if len(args) > 0 && (args[0] == "" || args[0][0] != '-') {
		name, args = args[0], args[1:]
	}
	for _, c := range subcommands() {
		if c.name == name {
			return exitCode(ctx, env, c.run(ctx, env, args))
		}
	}
	fmt.Fprintf(env.err, "slotscope: there is no subcommand %q\n", name)
	printUsage(env.err)
	return usage
}

func exitCode(ctx context.Context, env environment, err error) int {
	var invalid model.Invalid
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case err == nil || errors.Is(err, flag.ErrHelp):
		return done
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		fmt.Fprintln(env.err, "slotscope:", err)
		return interrupted
	case errors.Is(err, errUsage), errors.As(err, &invalid):
		fmt.Fprintln(env.err, "slotscope:", err)
		return usage
	}
	fmt.Fprintln(env.err, "slotscope:", sentence(err))
	return failed
}

// sentence is the first line of an error, without the mark of a conflict or of what does not exist at its end.
func sentence(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(first, ": "+model.ErrConflict.Error()), ": "+model.ErrNotFound.Error())
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, "Slotscope trains, measures and lets you handle disentangled representations made with HRRs.\n\n")
	for _, c := range subcommands() {
		fmt.Fprintf(w, "  slotscope %-9s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, "\n`slotscope SUBCOMMAND -h` lists the flags of each.\n")
}

// flags makes a flag set whose mistakes are errUsage; parse reports them, and checks that no argument is left over.
func flags(env environment, name string) *flag.FlagSet {
	fs := flag.NewFlagSet("slotscope "+name, flag.ContinueOnError)
	fs.SetOutput(env.out) // where -h lists the flags
	return fs
}

func parse(fs *flag.FlagSet, args []string, positional int) error {
	out := fs.Output()
	fs.SetOutput(io.Discard) // a mistake is one sentence, and comes from exitCode
	err := fs.Parse(args)
	fs.SetOutput(out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.Usage()
		return err
	case err != nil:
		return fmt.Errorf("%w: %w; `%s -h` lists the flags", errUsage, err, fs.Name())
	case fs.NArg() > positional:
		return fmt.Errorf("%w: unexpected argument %q", errUsage, fs.Arg(positional))
	}
	return nil
}

// dataFlag is the data folder: --data, $SLOTSCOPE_DATA, or ./data.
func dataFlag(fs *flag.FlagSet) *string {
	folder := os.Getenv("SLOTSCOPE_DATA")
	if folder == "" {
		folder = "data"
	}
	return fs.String("data", folder, "folder of runs, datasets and the index; $SLOTSCOPE_DATA")
}

func jsonFlag(fs *flag.FlagSet) *bool {
	return fs.Bool("json", false, "print one JSON object on standard output; progress goes to standard error")
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// Revision is the commit that the program was built from, "+" where the tree had changes. `go run` stamps none: there it is
// "build" and the beginning of the executable's SHA-256, which tells programs apart just as well.
var Revision = sync.OnceValue(func() string {
	if commit := stamped(); commit != "" {
		return commit
	}
	sum, err := executableSum()
	if err != nil {
		return "unknown"
	}
	return "build " + sum[:12]
})

func stamped() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	return commit + changed
}

// executableSum is the SHA-256 of the running program's file, in hexadecimal.
func executableSum() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
