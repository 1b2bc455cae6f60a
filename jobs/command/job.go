package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slotscope/jobs/slurm"
	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/host"
)

// executorFlags set where runs are trained, and the options of SLURM jobs.
type executorFlags struct {
	Executor  string   `default:"local" enum:"${executors}" placeholder:"NAME" help:"train runs on this machine, or as jobs of the SLURM cluster that this machine submits to"`
	Slurm     []string `sep:"none" placeholder:"NAME=VALUE" help:"SLURM job option (repeatable): ${slurm}; also in $SLOTSCOPE_SLURM, separated by ;"`
	SlurmFile []string `sep:"none" placeholder:"FILE" help:"file of SLURM job options, one name=value per line, # for comments; --slurm takes precedence"`
}

func slurmNames() string { return strings.Join(slurm.Names(), ", ") }

// executor returns where runs are trained, and the SLURM options from the variable, files and flags, in ascending precedence.
func (f executorFlags) executor() (string, slurm.Options, error) {
	var options slurm.Options
	if err := options.SetAll(os.Getenv("SLOTSCOPE_SLURM")); err != nil {
		return "", options, fmt.Errorf("%w: $SLOTSCOPE_SLURM: %w", errUsage, err)
	}
	for _, path := range f.SlurmFile {
		text, err := os.ReadFile(path)
		if err == nil {
			err = options.SetLines(string(text))
		}
		if err != nil {
			return "", options, badFlag{"slurm-file", err}
		}
	}
	for _, text := range f.Slurm {
		if err := options.Set(text); err != nil {
			return "", options, badFlag{"slurm", err}
		}
	}
	if f.Executor == model.Slurm {
		if missing := slurm.Missing(); missing != "" {
			return "", options, errors.New(missing)
		}
	}
	return f.Executor, options, nil
}

// heeded returns the executor of a command that can submit runs; it is an error to give --slurm if nothing is submitted.
func (f executorFlags) heeded() (string, slurm.Options, error) {
	where, options, err := f.executor()
	if err == nil && len(f.Slurm) > 0 && where != model.Slurm {
		err = fmt.Errorf("%w: --slurm requires --executor %s", errUsage, model.Slurm)
	}
	return where, options, err
}

// submitted is the output of `train --executor slurm --json`.
type submitted struct {
	Run    string `json:"run"`
	Folder string `json:"folder"`
	Job    string `json:"job"`
}

// submit submits the run of a folder to SLURM, to start or to continue; a server on the same data folder follows it.
func submit(ctx context.Context, env environment, f *folder.Folder, cluster slurm.Cluster, asJSON bool) error {
	var err error
	if cluster.Logs, err = filepath.Abs(cluster.Logs); err != nil {
		return fmt.Errorf("find the data folder: %w", err)
	}
	asks, err := queue(ctx, f, cluster)
	if err != nil {
		return err
	}
	ids, err := cluster.Submit(ctx, []string{f.Dir()}, asks)
	if err != nil {
		return errors.Join(err, fail(f, err))
	}
	job := model.Job{Executor: model.Slurm, ID: ids[0], Submitted: time.Now().UTC().Truncate(time.Millisecond), Asks: asks}
	if err := note(f, job); err != nil {
		return err
	}
	if asJSON {
		return printJSON(env.out, submitted{f.ID(), f.Dir(), ids[0]})
	}
	fmt.Fprintf(env.out, "submitted run %s as SLURM job %s\n", f.ID(), ids[0])
	return nil
}

// queue marks the run as queued for SLURM, so that no server starts it meanwhile, and returns its SLURM options: the current ones, or the
// previous ones if none are given. It returns model.ErrConflict if SLURM already has the run.
func queue(ctx context.Context, f *folder.Folder, cluster slurm.Cluster) (asks model.Asks, err error) {
	lock, err := f.Lock()
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	status, err := f.Status()
	if err != nil {
		return nil, err
	}
	job, err := f.Job()
	if err != nil {
		return nil, err
	}
	if job.ID != "" && status.State != model.Finished {
		tasks, err := cluster.Tasks(ctx, []string{job.ID})
		if err != nil {
			return nil, err
		}
		if tasks[job.ID].State != model.TaskOver {
			return nil, fmt.Errorf("run %s is already SLURM job %s: %w", f.ID(), job.ID, model.ErrConflict)
		}
	}
	if asks = cluster.Options.Asks(); len(asks) == 0 {
		asks = job.Asks
	}
	if err := f.SetJob(model.Job{Executor: model.Slurm, Held: true, Asks: asks}); err != nil {
		return nil, err
	}
	status.State, status.Reason, status.Ended = model.Queued, "", time.Time{}
	return asks, f.SetStatus(status)
}

// note records the job of a run, unless the job has already done so.
func note(f *folder.Folder, job model.Job) error {
	present, err := f.Job()
	if err == nil && present.ID == job.ID {
		return nil
	}
	return f.SetJob(job)
}

// fail marks a run as failed that SLURM rejected.
func fail(f *folder.Folder, why error) error {
	status, err := f.Status()
	if err != nil {
		return err
	}
	status.State, status.Reason, status.Ended = model.Failed, sentence(why)+".", time.Now().UTC()
	return errors.Join(f.SetJob(model.Job{Executor: model.Slurm}), f.SetStatus(status))
}

type jobCommand struct {
	Folder string `arg:"" help:"folder of the run"`
}

// Run trains the run of a folder inside the job that SLURM started.
func (c *jobCommand) Run(ctx context.Context, env environment) error {
	program, err := host.Self()
	if err != nil {
		return err
	}
	code, err := slurm.Step(ctx, c.Folder, program, env.err)
	if err == nil && code != done {
		err = exitStatus(code)
	}
	return err
}

// exitStatus is an exit status of the program that needs no further message: that of a child process, or that for the runs waited for.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
