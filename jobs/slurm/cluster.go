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
	"slotscope/model/host"
)

// patience is the time limit of every command to SLURM's controller.
const patience = 30 * time.Second

// Cluster is the SLURM cluster of this machine's commands.
type Cluster struct {
	Options Options
	Program string // path of this program on every node; empty for the running program
	Logs    string // folder for the output of jobs outside their runs
}

// Missing returns a sentence on the SLURM command that is not installed, or an empty string.
func Missing() string {
	for _, tool := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "SLURM's " + tool + " was not found on the PATH; submit runs from a machine with SLURM's commands, e.g. the cluster's login node"
		}
	}
	return ""
}

// Check returns a model.Invalid naming each option that is not allowed. "line" and "setup" execute commands with the rights of the
// server's user, so they are allowed only if lines is set.
func (c Cluster) Check(asks model.Asks, lines bool) error {
	bad := model.Invalid{}
	for name := range asks {
		if !lines && (name == "line" || name == "setup") {
			bad[name] = "this server accepts this option only on its command line; start it with --allow-slurm-lines to allow it here"
		}
	}
	if len(bad) > 0 {
		return bad
	}
	_, err := c.Options.With(asks)
	return err
}

// Submit queues the runs in dirs as one job or as an array, and returns the job ID of each. asks override the cluster's options of the
// same name.
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
		if program, err = host.File(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(c.Logs, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder for SLURM's logs: %w", err)
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

// Tasks returns the state of each job. Jobs that SLURM no longer lists count as ended.
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

// past queries SLURM's accounting, if the cluster has it, for jobs that squeue no longer lists.
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
		return tasks // no accounting
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

// reason converts SLURM's words for an empty value to an empty string.
func reason(text string) string {
	if text == "None" || text == "(null)" || text == "None assigned" {
		return ""
	}
	return text
}

// stateOf maps SLURM's job states. An unknown state counts as running.
func stateOf(word string) model.TaskState {
	switch word {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return model.TaskWaits
	case "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT", "LAUNCH_FAILED", "RECONFIG_FAIL":
		return model.TaskOver
	}
	return model.TaskRuns
}

// Ask signals the run of a job to save and end.
func (c Cluster) Ask(ctx context.Context, id string) error {
	_, err := ask(ctx, "", "scancel", "--batch", "--signal=TERM", id)
	return err
}

// Cancel removes a job from the queue, or ends it within the cluster's KillWait.
func (c Cluster) Cancel(ctx context.Context, id string) error {
	_, err := ask(ctx, "", "scancel", id)
	return err
}

// ask runs one of SLURM's commands and returns its output. Its standard error becomes the error.
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
		return "", fmt.Errorf("SLURM's %s did not respond within %v: %w", name, patience, ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New(Missing())
	}
	said := strings.Join(strings.Fields(complaint.String()), " ")
	if said == "" {
		said = err.Error()
	}
	return "", fmt.Errorf("SLURM's %s failed: %s", name, said)
}

// logsIn returns the folder for the output of a data folder's jobs.
func logsIn(dataDir string) string { return filepath.Join(dataDir, "slurm") }

// New returns the cluster for the runs of a data folder.
func New(dataDir string, o Options) Cluster { return Cluster{Options: o, Logs: logsIn(dataDir)} }
