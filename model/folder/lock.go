package folder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slotscope/model"
	"slotscope/model/host"
)

// patience is the maximum wait for a lock that another process only inspects or is about to release.
const patience = 500 * time.Millisecond

// Lock is the exclusive right to work on a run or a data folder, held until Unlock or the end of the process.
type Lock struct{ file *os.File }

// Holder is the process that holds a lock.
type Holder struct {
	PID   int       // 0 if not written yet
	Host  string    // name of its machine
	Since time.Time // time of locking
}

// Here reports whether the holder runs on this machine.
func (h Holder) Here() bool {
	host, err := os.Hostname()
	return err != nil || h.Host == "" || h.Host == host
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	if h.Here() {
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("process %d on %s", h.PID, h.Host)
}

// Lock locks the run for this process. The error wraps model.ErrConflict if another process holds the lock.
func (f *Folder) Lock() (*Lock, error) {
	l, err := f.lock(lockFile, "run folder "+f.dir)
	if err == nil {
		f.sweep()
		for _, sub := range []string{checkpointDir, sampleDir} {
			f.root.Mkdir(sub, 0o755) // copies may omit empty folders; if Mkdir fails, later writes return the error
		}
	}
	return l, err
}

// LockEvaluation locks the run's evaluation for this process. The error wraps model.ErrConflict if another process holds the lock.
func (f *Folder) LockEvaluation() (*Lock, error) {
	return f.lock(evalLock, "the evaluation of run folder "+f.dir)
}

func (f *Folder) lock(name, what string) (*Lock, error) {
	file, err := f.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", f.path(name), bare(err))
	}
	return take(file, what)
}

// LockFile locks a file that represents what, and creates the file if missing. The error wraps model.ErrConflict if another process holds
// the lock.
func LockFile(path, what string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: write %s: %w", what, path, bare(err))
	}
	return take(file, what)
}

// LockData locks the whole data folder for a server. For a second server, the error names the first.
func LockData(dataDir string) (*Lock, error) {
	d, err := Root(dataDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	path := filepath.Join(d.dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write the data folder: %s: %w", path, bare(err))
	}
	l, err := flock(file, "data folder "+d.dir)
	if err != nil {
		return nil, err
	}
	if err := l.sign(); err != nil && !Full(err) { // on a full disk, a server must start, so that its user can delete runs
		l.Unlock()
		return nil, fmt.Errorf("cannot write the data folder: %s: %w", path, bare(err))
	}
	return l, nil
}

// Full reports whether an error means that the disk is full or the user's quota is used up.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// take locks file and signs it.
func take(file *os.File, what string) (*Lock, error) {
	l, err := flock(file, what)
	if err != nil {
		return nil, err
	}
	if err := l.sign(); err != nil {
		l.Unlock()
		return nil, fmt.Errorf("lock %s: write %s: %w", what, file.Name(), bare(err))
	}
	return l, nil
}

// flock locks file without writing to it. It retries, because other processes hold a shared lock for microseconds to inspect it.
func flock(file *os.File, what string) (*Lock, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := host.Lock(file)
		if err == nil {
			break
		}
		if errors.Is(err, host.ErrLocked) && time.Now().Before(deadline) {
			continue
		}
		defer file.Close()
		if errors.Is(err, host.ErrLocked) {
			return nil, fmt.Errorf("%s is in use by %v: %w", what, readHolder(file), model.ErrConflict)
		}
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	return &Lock{file}, nil
}

// sign writes this process's identity into the lock's file. If the disk is full, the file is empty.
func (l *Lock) sign() error {
	host, _ := os.Hostname()
	text := fmt.Sprintf("%d %s\n", os.Getpid(), host)
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		l.file.Truncate(0)
		return err
	}
	return l.file.Truncate(int64(len(text)))
}

// Unlock releases the lock; a second call does nothing.
func (l *Lock) Unlock() error {
	l.file.Truncate(0)
	host.Unlock(l.file)
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Locked reports whether a process is working on the run.
func (f *Folder) Locked() bool {
	_, held := f.Holder()
	return held
}

// Holder returns the process working on the run, if any.
func (f *Folder) Holder() (Holder, bool) { return f.holder(lockFile) }

// Evaluator returns the process evaluating the run, if any.
func (f *Folder) Evaluator() (Holder, bool) { return f.holder(evalLock) }

func (f *Folder) holder(name string) (Holder, bool) {
	file, err := f.root.Open(name)
	if err != nil {
		return Holder{}, false // no file, or one that cannot be locked
	}
	defer file.Close()
	return holderOf(file)
}

func holderOf(file *os.File) (Holder, bool) {
	err := host.Share(file)
	if errors.Is(err, host.ErrLocked) {
		return readHolder(file), true
	}
	host.Unlock(file)
	return Holder{}, false
}

func readHolder(file *os.File) Holder {
	b, _ := io.ReadAll(io.NewSectionReader(file, 0, 512))
	pid, host, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	h := Holder{Host: host}
	h.PID, _ = strconv.Atoi(pid)
	if info, err := file.Stat(); err == nil {
		h.Since = info.ModTime()
	}
	return h
}

// Signal sends a signal to the holder of the lock, after checking that it still is the holder. The error wraps model.ErrConflict if no
// process holds the lock, if the holder is on another machine, or if it is this process, which is then recording how the run ended and must
// not stop itself.
func (f *Folder) Signal(sig os.Signal) error { return f.signal(lockFile, sig) }

func (f *Folder) signal(lock string, sig os.Signal) error {
	h, held := f.holder(lock)
	switch {
	case !held:
		return fmt.Errorf("no process is training run %s: %w", f.ID(), model.ErrConflict)
	case !h.Here():
		return fmt.Errorf("run %s is being trained by %v; stop it there: %w", f.ID(), h, model.ErrConflict)
	case h.PID == os.Getpid():
		return fmt.Errorf("the final state of run %s is being written; try again in a moment: %w", f.ID(), model.ErrConflict)
	case h.PID == 0:
		return fmt.Errorf("the process of run %s is still starting; try again in a moment: %w", f.ID(), model.ErrConflict)
	}
	p, err := os.FindProcess(h.PID) // holds the process itself, so its id cannot be reused before Signal
	if err != nil {
		return fmt.Errorf("find %v of run %s: %w", h, f.ID(), err)
	}
	defer p.Release()
	if again, held := f.holder(lock); !held || again != h {
		return fmt.Errorf("%v of run %s has just ended: %w", h, f.ID(), model.ErrConflict)
	}
	if err := p.Signal(sig); err != nil {
		return fmt.Errorf("signal %v of run %s: %w", h, f.ID(), err)
	}
	return nil
}
