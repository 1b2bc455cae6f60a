package adopt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"slotscope/model/format/npz"
	"slotscope/model/host"
)

// Timeouts of a child process.
const (
	// DefaultWait is the time limit for one answer if the command does not set another.
	DefaultWait = time.Minute
	goodbye     = 2 * time.Second // between closing its input and killing it
	restartWait = 2 * time.Second // between the failure of a child and the start of the next
)

// child is a running process that answers messages.
type child struct {
	name  string // its command, for error messages
	wait  time.Duration
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	said  *lastLines // of standard error
	done  chan struct{}
	count int // messages answered

	mu      sync.Mutex
	late    bool // killed after a timeout
	stopped bool // killed or released by us
}

// start runs a command with our environment except the server's token.
func start(c Command) (*child, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no command given")
	}
	k := &child{name: c.Title(), wait: c.wait(), said: &lastLines{}, done: make(chan struct{})}
	k.cmd = exec.Command(c.Args[0], c.Args[1:]...)
	k.cmd.Dir, k.cmd.Stderr = c.Dir, k.said
	k.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SLOTSCOPE_TOKEN=") })
	k.cmd.WaitDelay = goodbye
	host.Group(k.cmd)
	in, err := k.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe() // not StdoutPipe, because Wait would close it before the last answer is read
	if err != nil {
		return nil, err
	}
	k.cmd.Stdout = w
	k.in, k.out = in, bufio.NewReaderSize(out, 1<<16)
	err = k.cmd.Start()
	w.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("starting %s: %w", k.name, err)
	}
	go func() {
		k.cmd.Wait()
		close(k.done)
	}()
	return k, nil
}

// ask sends a message and reads its answer. After a failure that the child did not report itself, the child is unusable.
func (k *child) ask(do string, payload *npz.Data, read func(*bufio.Reader) error) error {
	timer := time.AfterFunc(k.wait, func() { k.kill(true) })
	defer timer.Stop()
	closed := writeRequest(k.in, do, payload) // a write fails only if the child has exited; its earlier output may explain why
	err := read(k.out)
	if closed != nil && err == nil {
		err = errEnded
	}
	if err == nil {
		k.count++
		return nil
	}
	if errors.Is(err, errSaid) {
		return fmt.Errorf("%s, message %d (%s): %w", k.name, k.count+1, do, err)
	}
	return k.failure(do, err)
}

// failure ends a child that cannot continue, and returns the reason.
func (k *child) failure(do string, err error) error {
	if errors.Is(err, errEnded) {
		select { // the exit status is more informative than the end of its output
		case <-k.done:
		case <-time.After(goodbye):
		}
	}
	k.mu.Lock()
	late := k.late
	k.mu.Unlock()
	what := err.Error()
	select {
	case <-k.done:
		switch {
		case late:
			what = k.silence()
		case errors.Is(err, errEnded):
			what = "the process exited (" + k.cmd.ProcessState.String() + ")"
		}
	default:
		if late {
			what = k.silence()
		}
	}
	k.kill(false)
	if line := k.said.last(); line != "" {
		what += "; last line on standard error: " + line
	}
	return fmt.Errorf("%s, message %d (%s): %s", k.name, k.count+1, do, what)
}

// silence is the message for a timeout, with how to extend it.
func (k *child) silence() string {
	return fmt.Sprintf("no answer within %g s, so the process was stopped; `slotscope adopt --run RUN --timeout SECONDS COMMAND` sets a longer limit", k.wait.Seconds())
}

func (k *child) kill(late bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	k.stopped, k.late = true, late
	host.KillGroup(k.cmd)
}

// close lets the child exit on its own, then kills it.
func (k *child) close() {
	k.in.Close()
	select {
	case <-k.done:
	case <-time.After(goodbye):
	}
	k.kill(false) // also ends the processes that it started
	<-k.done
}

// lastLines keeps the end of the output.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

const keptOutput = 4096

func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if extra := len(l.text) - keptOutput; extra > 0 {
		l.text = append([]byte{}, l.text[extra:]...)
	}
	return len(b), nil
}

// last is the last non-empty line, with at most 300 bytes of printable text.
func (l *lastLines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := bytes.TrimSpace(l.text)
	if at := bytes.LastIndexAny(line, "\r\n"); at >= 0 {
		line = line[at+1:]
	}
	text := strings.ToValidUTF8(string(line[:min(len(line), 300)]), "")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// title describes a command briefly: its program and arguments.
func title(args []string) string {
	if len(args) == 0 {
		return "no command"
	}
	text := filepath.Base(args[0])
	if len(args) > 1 {
		text += " " + strings.Join(args[1:], " ")
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
