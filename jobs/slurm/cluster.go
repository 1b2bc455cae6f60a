package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
)

// patience bounds every question to SLURM's controller.
const patience = 30 * time.Second

// Cluster is the SLURM cluster that this machine's commands speak to.
type Cluster struct {
	Options Options
	Program string // path of this program on every node; empty for the one that runs
	Logs    string // folder of what jobs print before and after their runs
}

// Missing says in a sentence what SLURM lacks here, or is empty.
func Missing() string {
	for _, tool := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "SLURM's " + tool + " was not found on the PATH; runs can be submitted from a machine that has SLURM's commands, such as a cluster's login node"
		}
	}
	return ""
}

// Check says as model.Invalid, by option, what of a visitor's asks cannot be asked for. "line" and "setup" run what they say with the
// rights of the server's user, so they are refused unless lines.
func (c Cluster) Check(asks model.Asks, lines bool) error {
	bad := model.Invalid{}
	for name := range asks {
		if !lines && (name == "line" || name == "setup") {
			bad[name] = "this server takes further SLURM options from its command line only; start it with --allow-slurm-lines to allow them here"
		}
	}
	if len(bad) > 0 {
		return bad
	}
	_, err := c.Options.With(asks)
	return err
}

// Submit has SLURM queue the runs in dirs, as one job or as an array, and returns the id of each. What they ask for takes the place of
// the cluster's options of the same name.
func (c Cluster) Submit(ctx context.Context, dirs []string, asks model.Asks) ([]string, error) {
	if err := check(append(dirs, c.Logs)); err != nil {
		return nil, err
	}
	options, err := c.Options.With(asks)
	if err != nil {
		return nil, err
	}
	program := c.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	if err := os.MkdirAll(c.Logs, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of SLURM's logs: %w", err)
	}
	out, err := ask(ctx, options.script(program, c.Logs, dirs), "sbatch", "--parsable")
	if err != nil {
		return nil, err
	}
	job, _, _ := strings.Cut(strings.TrimSpace(out), ";") // the name of the cluster may follow
	if _, err := strconv.ParseUint(job, 10, 64); err != nil {
		return nil, fmt.Errorf("sbatch printed no job ID: %q", strings.TrimSpace(out))
	}
	if len(dirs) == 1 {
		return []string{job}, nil
	}
	ids := make([]string, len(dirs))
	for i := range dirs {
		ids[i] = fmt.Sprintf("%s_%d", job, i)
	}
	return ids, nil
}

// Tasks says how jobs stand. Those that SLURM has forgotten are over.
func (c Cluster) Tasks(ctx context.Context, ids []string) (map[string]model.Task, error) {
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find the current user: %w", err)
	}
	out, err := ask(ctx, "", "squeue", "--noheader", "--array", "--states=all", "--user="+me.Username, "--format=%i|%T|%r|%N")
	if err != nil {
		return nil, err
	}
	queue := parse(out)
	tasks := make(map[string]model.Task, len(ids))
	var lost []string
	for _, id := range ids {
		if t, ok := queue[id]; ok {
			tasks[id] = t
		} else {
			lost = append(lost, id)
		}
	}
	for id, t := range past(ctx, lost) {
		tasks[id] = t
	}
	return tasks, nil
}

// past asks the accounts, where the cluster keeps any, about jobs that have left the queue's memory.
func past(ctx context.Context, ids []string) map[string]model.Task {
	tasks := make(map[string]model.Task, len(ids))
	for _, id := range ids {
		tasks[id] = model.Task{State: model.TaskOver, Word: "FORGOTTEN"}
	}
	if len(ids) == 0 {
		return tasks
	}
	out, err := ask(ctx, "", "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+strings.Join(ids, ","), "--format=JobID,State,Reason,NodeList")
	if err != nil {
		return tasks // no accounts here
	}
	for id, t := range parse(out) {
		if _, asked := tasks[id]; asked {
			tasks[id] = t
		}
	}
	return tasks
}

// parse reads lines of id, state, reason and node.
func parse(out string) map[string]model.Task {
	tasks := map[string]model.Task{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 || f[0] == "" {
			continue
		}
		word, _, _ := strings.Cut(f[1], " ") // "CANCELLED by 1000"
		tasks[f[0]] = model.Task{State: stateOf(word), Word: word, Why: reason(f[2]), Node: reason(f[3])}
	}
	return tasks
}

// reason drops what SLURM writes for nothing.
func reason(text string) string {
	if text == "None" || text == "(null)" || text == "None assigned" {
		return ""
	}
	return text
}

// stateOf sorts SLURM's job states. One that is not known here is taken to run, until SLURM says another.
func stateOf(word string) model.TaskState {
	switch word {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return model.TaskWaits
	case "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT", "LAUNCH_FAILED", "RECONFIG_FAIL":
		return model.TaskOver
	}
	return model.TaskRuns
}

// Ask tells the run of a job to save and end.
func (c Cluster) Ask(ctx context.Context, id string) error {
	_, err := ask(ctx, "", "scancel", "--batch", "--signal=TERM", id)
	return err
}

// Cancel takes a job out of the queue, or ends it within the cluster's KillWait.
func (c Cluster) Cancel(ctx context.Context, id string) error {
	_, err := ask(ctx, "", "scancel", id)
	return err
}

// ask runs one of SLURM's commands. Its complaint becomes the error.
func ask(ctx context.Context, input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("SLURM's %s did not answer within %v: %w", name, patience, ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New(Missing())
	}
	said := strings.Join(strings.Fields(complaint.String()), " ")
	if said == "" {
		said = err.Error()
	}
	return "", fmt.Errorf("SLURM's %s refused: %s", name, said)
}

// logsIn is where jobs of a data folder print.
func logsIn(dataDir string) string { return filepath.Join(dataDir, "slurm") }

// New is the cluster for runs of a data folder.
func New(dataDir string, o Options) Cluster { return Cluster{Options: o, Logs: logsIn(dataDir)} }
