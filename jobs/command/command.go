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
	"slotscope/model/host"
)

// Exit codes.
const (
	done        = 0
	failed      = 1
	usage       = 2
	interrupted = 130 // the state was saved
)

// Serve opens the data folder and serves HTTP until ctx ends; main provides it.
type Serve func(ctx context.Context, o ServeOptions) error

// ServeOptions are the options of `slotscope serve`.
type ServeOptions struct {
	Addr  string // host:port
	Data  string // the data folder
	Token string // required from every client if set; any address except loopback needs one

	Embed     []string // origins whose pages may embed ours in frames and read responses
	Open      bool     // on loopback, allow every user of this machine
	AllowRoot bool     // on loopback, allow root in addition to the server's own user

	Roots       []string // absolute folders from which users may add datasets, in addition to the data folder; see Limits
	PrivateURLs bool     // users may add datasets from servers on this machine and on private networks
	SlurmLines  bool     // users may give jobs any sbatch option and shell lines

	Shipped bool // add the runs that ship with the program to the data folder

	Parallel int           // runs and evaluations computed at the same time on this machine's processors
	Executor string        // where runs are trained: model.Local or model.Slurm
	Slurm    slurm.Options // options of SLURM jobs

	Alerting jobs.Alerting // alerts to send, and their recipient

	Out io.Writer
}

// sameRequest is the time within which a second SIGTERM counts as the same request: a scheduler may send it to a process and to its
// parent, which forwards it.
const sameRequest = 5 * time.Second

// errSignal is the cause of a context that is cancelled because the user or a scheduler signalled the process to end.
var errSignal = errors.New("stopped by a signal")

// errUsage marks errors in the command line.
var errUsage = errors.New("usage")

type environment struct {
	out, err io.Writer
	serve    Serve
	freeze   Freeze
	export   Export
	token    string // from tokenVariable
}

// Main runs the program and returns its exit code; args excludes the program's name.
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
	return dispatch(ctx, environment{out: os.Stdout, err: os.Stderr, serve: serve, freeze: freeze, export: export}, args)
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

// sentence returns the first line of an error, without a trailing model.ErrConflict or model.ErrNotFound.
func sentence(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(first, ": "+model.ErrConflict.Error()), ": "+model.ErrNotFound.Error())
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// Revision returns the commit of this build, followed by "+" if the tree had changes. Builds by `go run` have no commit: for them it
// returns "build" and the first digits of the executable's SHA-256, which identify the program just as well.
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

// executableSum returns the SHA-256 of the running executable in hexadecimal.
func executableSum() (string, error) {
	path, err := host.Self()
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
