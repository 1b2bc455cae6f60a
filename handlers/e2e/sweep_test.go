//go:build linux

package e2e_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/folder"
)

// tinySweep is a plan of three real runs of a small network.
const tinySweep = `{"name": "tiny", "preset": "tiny", "steps": 12, "set": {"batch": "4", "eval_images": "96", "widths": "4,4,8,8", "fc": "8", "d": "32", "k": "16"},
 "eval": {"pairs": 0, "noise": 20, "probe": 5, "trees": 10},
 "parts": [{"name": "main", "models": ["hrr"], "datasets": ["shapes3d-synthetic"], "seeds": [0, 1],
            "select": {"seeds": [1000], "axes": [{"field": "lr", "values": ["0.001"]}]}}]}`

// TestSweepAndReport trains and evaluates a plan from the command line, extends it, and writes its report.
func TestSweepAndReport(t *testing.T) {
	t.Parallel()
	expect.Long(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(plan, []byte(strings.Replace(tinySweep, `"seeds": [0, 1]`, `"seeds": [0]`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	var record struct {
		ID         string
		Runs, Done int
		Items      []struct{ Run, Stage string }
		Choices    []struct{ Chosen string }
	}
	data, records := dir, filepath.Join(dir, "records")
	run := func(args ...string) []byte {
		t.Helper()
		out, err := command(t, append(args, "--data", data)...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	if err := json.Unmarshal(run("sweep", plan, "--dry", "--json"), &record); err != nil || record.Done != 0 || record.Runs != 2 || record.Items[0].Stage != "planned" {
		t.Fatalf("%v %+v", err, record)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("a dry sweep left %v, %v", left, err)
	}
	if err := json.Unmarshal(run("sweep", plan, "--json"), &record); err != nil || record.Done != 2 || record.Runs != 2 || record.Choices[0].Chosen != "0.001" {
		t.Fatalf("%v %+v", err, record)
	}
	var own struct {
		Runs     int
		Estimate struct {
			Runs, Steps int
			Seconds     *float64
		}
	}
	if err := json.Unmarshal(run("sweep", "own", "--vary", "lr=0.0001..0.01 log", "--vary", "k=32,64", "--random", "3", "--seeds", "3", "--race", "2", "--preset", "tiny", "--steps", "7", "--dry", "--json"), &own); err != nil || own.Runs != 9 || own.Estimate.Steps != 63 || own.Estimate.Seconds == nil {
		t.Errorf("a custom sweep: %v %+v", err, own)
	}
	first := record.Items[1].Run
	before := attemptsOf(t, dir, first)
	if err := os.WriteFile(plan, []byte(tinySweep), 0o644); err != nil { // one more seed
		t.Fatal(err)
	}
	if err := json.Unmarshal(run("sweep", plan, "--json", "--records", records), &record); err != nil || record.Done != 3 {
		t.Fatalf("%v %+v", err, record)
	}
	if attemptsOf(t, dir, first) != before {
		t.Error("a finished run was trained again")
	}
	out := filepath.Join(dir, "report")
	var report struct{ Files []string }
	if err := json.Unmarshal(run("report", record.ID, "--out", out, "--json"), &report); err != nil || len(report.Files) < 12 {
		t.Fatalf("%v %+v", err, report)
	}
	text, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil || !strings.Contains(string(text), "| HRR | 2 |") || !strings.Contains(string(text), "Selected hyperparameters") {
		t.Errorf("%v: %s", err, text)
	}
	archive, err := zip.OpenReader(filepath.Join(out, "report.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if len(archive.File) != len(report.Files)-1 { // all but the archive itself
		t.Errorf("%d files in the archive, %d in the folder", len(archive.File), len(report.Files)-1)
	}

	data = filepath.Join(dir, "elsewhere") // its runs and the report come from the records
	if err := json.Unmarshal(run("sweep", plan, "--json", "--records", records, "--dry"), &record); err != nil || record.Done != 3 {
		t.Errorf("dry: %v %+v", err, record)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("a dry sweep created a data folder from the records")
	}
	if err := json.Unmarshal(run("sweep", plan, "--json", "--records", records), &record); err != nil || record.Done != 3 {
		t.Fatalf("%v %+v", err, record)
	}
	if weights, err := filepath.Glob(filepath.Join(data, "runs", "*", "checkpoints", "*")); err != nil || len(weights) > 0 {
		t.Errorf("trained again: %v, %v", weights, err)
	}
	again := filepath.Join(dir, "again")
	run("report", record.ID, "--out", again, "--json")
	same(t, filepath.Join(out, "summary.csv"), filepath.Join(again, "summary.csv"))
}

// TestSweepInParallel trains two runs at the same time, each on a share of the cores, saves both when interrupted, and resumes.
func TestSweepInParallel(t *testing.T) {
	t.Parallel()
	expect.Long(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.json")
	long := strings.Replace(tinySweep, `"steps": 12`, `"steps": 3000`, 1)
	long = long[:strings.Index(long, `"seeds": [0, 1]`)] + `"seeds": [0, 1, 2]}]}`
	if err := os.WriteFile(plan, []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	states := func() (all []model.Status) {
		runs, _ := filepath.Glob(filepath.Join(dir, "runs", "*"))
		for _, run := range runs {
			if f, err := folder.Open(run); err == nil {
				if s, err := f.Status(); err == nil {
					all = append(all, s)
				}
				f.Close()
			}
		}
		return all
	}
	said := &text{}
	begin := func() *exec.Cmd {
		cmd := command(t, "sweep", plan, "--parallel", "2", "--engine", "cpu", "--data", dir)
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	cmd := begin()
	await(t, "two runs are running", func() bool {
		working := 0
		for _, s := range states() {
			if s.State == model.Running && s.Step > 0 {
				working++
			}
		}
		return working == 2
	})
	cmd.Process.Signal(os.Interrupt)
	if code := exitCode(t, cmd); code == 0 {
		t.Errorf("interrupted, but exit code 0: %s", said)
	}
	stopped := states()
	for _, s := range stopped {
		if s.State != model.Stopped || s.Step == 0 {
			t.Errorf("after the interruption a run is %s at step %d", s.State, s.Step)
		}
	}
	if len(stopped) != 2 {
		t.Errorf("%d runs started", len(stopped))
	}
	for _, part := range []string{"hrr tiny shapes3d-synthetic seed 0", "  |  hrr tiny shapes3d-synthetic seed 1", "interrupted; run the same command to resume"} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("%q is not in %s", part, said)
		}
	}
	cmd = begin()
	await(t, "both resume", func() bool {
		on := 0
		for _, s := range states() {
			if s.Attempt == 2 && s.Step > stopped[0].Step {
				on++
			}
		}
		return on == 2
	})
	cmd.Process.Signal(os.Interrupt)
	exitCode(t, cmd)
}

// same fails the test unless two files have the same content.
func same(t *testing.T, a, b string) {
	t.Helper()
	x, errX := os.ReadFile(a)
	y, errY := os.ReadFile(b)
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ: %v %v", a, b, errX, errY)
	}
}

func attemptsOf(t *testing.T, dir, id string) int {
	t.Helper()
	f, err := folder.Open(filepath.Join(dir, "runs", id))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := f.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s.Attempt
}

// TestSweepAndReportRefuse checks the errors of invalid sweeps and reports.
func TestSweepAndReportRefuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"name": "x", "preset": "tiny", "parts": [{"name": "p", "models": ["hrr"], "datasets": ["nowhere"], "seeds": [0]}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"sweep", 2, "slotscope sweep <paper|field|own|file|id>"},
		{"sweep nothing.json", 2, "nothing.json"},
		{"sweep " + bad, 2, "nowhere"},
		{"sweep " + bad + " --steps 4", 2, "--steps"},
		{"sweep paper --preset huge", 2, "huge"},
		{"sweep paper --datasets shapes3d-synthetic --parts all", 2, "all"},
		{"report", 2, "slotscope report <run> ..."},
		{"report nothing", 1, "nothing"},
	} {
		cmd := command(t, append(strings.Fields(c.args), "--data", dir)...)
		said := &text{}
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd); code != c.code || !strings.Contains(said.String(), c.say) {
			t.Errorf("%s: exit code %d, want %d; output %q", c.args, code, c.code, said)
		}
	}
}
