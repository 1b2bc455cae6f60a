// Package command is Slotscope's command line: one file per subcommand.
package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
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

	Parallel int           // runs and evaluations that compute on this machine's processors at the same time
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

type environment struct {
	out, err io.Writer
	serve    Serve
	freeze   Freeze
	export   Export
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
	return exitCode(ctx, env, run(ctx, env, args))
}

func exitCode(ctx context.Context, env environment, err error) int {
	var invalid model.Invalid
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case err == nil:
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
