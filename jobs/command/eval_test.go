package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
)

const trained = "../../model/play/testdata/tiny.safetensors"

// quickly are flags for a short evaluation.
var quickly = []string{"--images", "64", "--noise", "8", "--pairs", "2", "--probe", "2", "--trees", "2", "--engine", "cpu"}

// small returns the checkpoint of a model with few channels after one step, which is fast to compute.
var small = sync.OnceValues(func() (raw []byte, err error) {
	dir, err := os.MkdirTemp("", "small")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	words := []string{"train", "--data", dir, "--model", "hrr", "--preset", "tiny", "--steps", "1", "--batch", "2", "--engine", "cpu",
		"--set", "widths=4,8,8,16", "--set", "fc=32", "--set", "d=64", "--set", "k=32", "--set", "eval_images=8", "--set", "evaluate=none"}
	var said bytes.Buffer
	if code := dispatch(context.Background(), environment{out: io.Discard, err: &said}, words); code != done {
		return nil, fmt.Errorf("exit code %d: %s", code, &said)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "runs", "*", "checkpoints", "step-*.safetensors"))
	if err != nil || len(paths) != 1 {
		return nil, fmt.Errorf("checkpoints %v, %v", paths, err)
	}
	return os.ReadFile(paths[0])
})

// smallFile writes the small checkpoint to a file.
func smallFile(t *testing.T) (path string, file checkpoint.File) {
	t.Helper()
	raw, err := small()
	path = filepath.Join(t.TempDir(), "small.safetensors")
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err == nil {
		file, err = checkpoint.Read(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, file
}

// smallRun returns a data folder with one run that has the small checkpoint.
func smallRun(t *testing.T) (dataDir string, f *folder.Folder) {
	t.Helper()
	_, file := smallFile(t)
	dataDir = t.TempDir()
	return dataDir, onDataset(t, dataDir, "small", file.Config.Dataset)
}

func TestEvalOfARun(t *testing.T) {
	dataDir, f := smallRun(t)
	if code, out, stderr := called(t, append([]string{"eval", "small", "--data", dataDir}, quickly...)...); code != done ||
		!strings.Contains(out, "PSNR  ") || !strings.Contains(out, "noise on z") || !strings.Contains(out, "swaps") || !strings.Contains(stderr, "encoding  64 of 64 images") {
		t.Fatalf("exit code %d, %s, %s", code, out, stderr)
	}
	lock, err := f.LockEvaluation()
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := called(t, "eval", "small", "--data", dataDir); code != failed || !strings.Contains(stderr, "in use by process") {
		t.Errorf("during another evaluation: exit code %d, %s", code, stderr)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	s, err := f.Scores()
	if err != nil || s.Metrics == nil || s.Step != 1 || s.Images != 64 || s.Noise == nil || s.Swap == nil || s.Usage == nil || s.Revision == "" {
		t.Errorf("scores of the run: %+v, %v", s, err)
	}
	if code, out, stderr := called(t, "metrics", filepath.Join(f.Dir(), "representation.npz"), "--json", "--trees", "2"); code != done || !strings.Contains(out, `"floor_hue"`) {
		t.Errorf("metrics of the representation: exit code %d, %s, %s", code, out, stderr)
	}
}

// TestEvalAsJSON checks that a checkpoint outside a run can be evaluated and its results go to --out.
func TestEvalAsJSON(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "folder")
	code, text, stderr := called(t, append([]string{"eval", trained, "--json", "--pairs", "0", "--probe", "2", "--trees", "2", "--out", out, "--data", t.TempDir()}, quickly[:4]...)...)
	var s model.Scores
	if err := json.Unmarshal([]byte(text), &s); code != done || err != nil || s.PSNR < 20 || s.Metrics == nil {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	for _, name := range []string{"scores.json", "representation.npz", "associations.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
}

// onDataset creates a run with the small checkpoint, as if it had been trained on another dataset.
func onDataset(t *testing.T, dataDir, id, dataset string) *folder.Folder {
	t.Helper()
	_, file := smallFile(t)
	file.Config.Dataset = dataset
	f, err := folder.Create(filepath.Join(dataDir, "runs", id), file.Config, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := checkpoint.Write(f.CheckpointPath(1), file); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEvalOfAPart checks that held-out images are measured too, also if the part has a name, and that a part with no held-out images has
// no such scores.
func TestEvalOfAPart(t *testing.T) {
	dataDir := t.TempDir()
	const all = "shapes3d-synthetic[not(shape=cube;floor_hue=0.0)]"
	if _, err := (data.Catalogue{Dir: dataDir}).Add(t.Context(), data.Request{Name: "most", From: all}, nil); err != nil {
		t.Fatal(err)
	}
	for dataset, want := range map[string]string{all: "shapes3d-synthetic[shape=cube;floor_hue=0.0]", "most": "shapes3d-synthetic[shape=cube;floor_hue=0.0]", "shapes3d-synthetic[every=1]": ""} {
		if dataset == all && !expect.All() {
			continue // the named part covers this case
		}
		f := onDataset(t, dataDir, model.NewID(time.Now()), dataset)
		code, out, stderr := called(t, append([]string{"eval", f.ID(), "--data", dataDir}, append(quickly, "--pairs", "0")...)...)
		if code != done {
			t.Fatalf("%s: exit code %d, %s", dataset, code, stderr)
		}
		s, err := f.Scores()
		if err != nil || (s.HeldOut != nil) != (want != "") || strings.Contains(out, "held out from training") != (want != "") {
			t.Errorf("%s: %+v, %v, %s", dataset, s.HeldOut, err, out)
		}
		if h := s.HeldOut; h != nil && (h.Dataset != want || h.Images != 64 || !strings.Contains(out, want) || h.Metrics == nil) {
			t.Errorf("%s: %+v, %s", dataset, h, out)
		}
	}
}

// TestEvalWithoutFactors checks that a dataset without varying factors gives a reason instead of metrics, and exit code 0.
func TestEvalWithoutFactors(t *testing.T) {
	dataDir := t.TempDir()
	const one = "shapes3d-synthetic[floor_hue=0.0;wall_hue=0.0;object_hue=0.0;scale=#0;shape=cube;orientation=#0]"
	f := onDataset(t, dataDir, "one", one)
	code, out, stderr := called(t, append([]string{"eval", "one", "--data", dataDir, "--heldout=false"}, quickly...)...)
	s, err := f.Scores()
	if code != done || err != nil || s.NoFactors == "" || !strings.Contains(out, s.NoFactors) || !strings.Contains(out, "PSNR") {
		t.Errorf("exit code %d, %v, %s, %s", code, err, out, stderr)
	}
}

func TestEvalRefuses(t *testing.T) {
	dataDir, f := smallRun(t)
	empty, err := folder.Create(filepath.Join(dataDir, "runs", "empty"), f.Config(), "")
	if err != nil {
		t.Fatal(err)
	}
	empty.Close()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, usage, "slotscope eval <run> ... [flags]"},
		{[]string{"a", "b"}, failed, "2 of 2 runs could not be evaluated"},
		{[]string{"nobody"}, failed, "nobody"},
		{[]string{"empty"}, failed, "run empty has no checkpoint to evaluate"},
		{[]string{"small@7"}, failed, "run small has no checkpoint of step 7"},
		{[]string{"small@x"}, usage, `"x" is not a step`},
		{[]string{"nowhere.safetensors"}, failed, "nowhere.safetensors"},
		{[]string{"small", "--images", "1"}, usage, "--images is 1"},
		{[]string{"small", "--engine", "abacus"}, usage, "abacus"},
		{[]string{trained, "--out", filepath.Join(trained, "scores"), "--engine", "cpu"}, failed, "saving scores"}, // before anything is computed
	} {
		code, out, stderr := called(t, append([]string{"eval", "--data", dataDir}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("%v: exit code %d, %q, %q", c.args, code, out, stderr)
		}
	}
}

// TestEvalImages checks that without --images an evaluation uses the number of images in the run's configuration.
func TestEvalImages(t *testing.T) {
	_, file := smallFile(t)
	file.Config.EvalImages = 66
	path := filepath.Join(t.TempDir(), "few.safetensors")
	if err := checkpoint.Write(path, file); err != nil {
		t.Fatal(err)
	}
	flags := []string{"eval", path, "--json", "--noise", "0", "--pairs", "0", "--trees", "2", "--engine", "cpu", "--data", t.TempDir()}
	for want, more := range map[int][]string{66: nil, 70: {"--images", "70"}} {
		code, out, stderr := called(t, append(flags, more...)...)
		var s model.Scores
		if err := json.Unmarshal([]byte(out), &s); code != done || err != nil || s.Images != want {
			t.Errorf("%v: %d images, want %d; exit code %d, %v, %s", more, s.Images, want, code, err, stderr)
		}
	}
	for _, bad := range []string{"0", "1", "2000000"} {
		if code, _, stderr := called(t, append(flags, "--images", bad)...); code != usage || !strings.Contains(stderr, "--images is "+bad) {
			t.Errorf("--images %s: exit code %d, %s", bad, code, stderr)
		}
	}
}

// TestEvalOfSeveral checks that runs are evaluated one after another, and that a failure is reported without stopping the others.
func TestEvalOfSeveral(t *testing.T) {
	dataDir, f := smallRun(t)
	names := []string{"nobody", "small"}
	if expect.All() {
		names = append(names, "small@1")
	}
	words := slices.Concat([]string{"eval"}, names, []string{"--json", "--data", dataDir}, quickly)
	code, out, stderr := called(t, words...)
	var all struct {
		Runs []struct {
			Run    string
			Scores *model.Scores
			Error  string
		}
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != failed || len(all.Runs) != len(names) || !strings.Contains(stderr, fmt.Sprintf("1 of %d runs could not be evaluated", len(names))) {
		t.Fatalf("exit code %d, %v, %s, %s", code, err, out, stderr)
	}
	for i, want := range names {
		r := all.Runs[i]
		if r.Run != want || (r.Scores != nil) != (want != "nobody") || (r.Error != "") != (want == "nobody") {
			t.Errorf("%+v", r)
		}
	}
	if e, err := f.Evaluation(); err != nil || e.State != model.Finished || e.Effort != model.Full || e.PID != os.Getpid() || e.Started.IsZero() || e.Ended.Before(e.Started) {
		t.Errorf("the folder has %+v, %v", e, err)
	}
	probes, err := filepath.Glob(filepath.Join(dataDir, "probes", "*.safetensors"))
	if err != nil || len(probes) != 1 {
		t.Errorf("probes %v, %v", probes, err)
	}
	if code, _, stderr := called(t, "eval", "small", "nobody", "--out", dataDir, "--data", dataDir); code != usage || !strings.Contains(stderr, "--out takes one run") {
		t.Errorf("--out: exit code %d, %s", code, stderr)
	}
}

// TestEvalQuick checks that a quick evaluation trains no probe and records its effort.
func TestEvalQuick(t *testing.T) {
	dataDir, f := smallRun(t)
	// the flags of quickly without --probe, which would train one
	code, out, stderr := called(t, "eval", f.Dir(), "--effort", "quick", "--images", "64", "--noise", "8", "--trees", "2", "--engine", "cpu", "--json")
	var s model.Scores
	if err := json.Unmarshal([]byte(out), &s); code != done || err != nil || s.Effort != model.Quick || s.Swap != nil || s.Metrics == nil {
		t.Fatalf("exit code %d, %v, %+v, %s", code, err, s, stderr)
	}
	if _, err := os.Stat(filepath.Join(dataDir, "probes")); err != nil {
		t.Errorf("the data folder was not found from the run's folder: %v", err)
	}
	s.Effort, s.Images = model.Full, 10000
	if err := f.SetScores(s); err != nil {
		t.Fatal(err)
	}
	quick := []string{"eval", f.Dir(), "--effort", "quick", "--images", "64", "--noise", "0", "--trees", "1", "--engine", "cpu", "--json"}
	if code, _, stderr := called(t, quick...); code != failed || !strings.Contains(stderr, "has full scores (10,000 images at step") || !strings.Contains(stderr, "add --replace") {
		t.Errorf("a quick evaluation over full scores: exit code %d, %s", code, stderr)
	}
	if kept, err := f.Scores(); err != nil || kept.Images != 10000 {
		t.Errorf("the full scores are now %+v, %v", kept, err)
	}
	if code, _, stderr := called(t, append(quick, "--replace")...); code != done {
		t.Errorf("--replace: exit code %d, %s", code, stderr)
	}
	if kept, err := f.Scores(); err != nil || kept.Images != 64 || kept.Effort != model.Quick {
		t.Errorf("with --replace the scores are %+v, %v", kept, err)
	}
	if code, _, stderr := called(t, "eval", "small", "--data", dataDir, "--effort", "some"); code != usage || !strings.Contains(stderr, `--effort "some" is not one of quick, full`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	o := evaluate.Default(0)
	o.Pairs = 7
	q := withEffort(given{"pairs": true}, o, model.Quick)
	if q.Pairs != 7 || !q.KeptProbe || q.Noise != evaluate.Quick(0).Noise || q.Trees != evaluate.Quick(0).Trees {
		t.Errorf("%+v", q)
	}
}

// TestEvalEnds checks that the run's folder records that an evaluation was cancelled or why it failed, and that earlier scores remain.
func TestEvalEnds(t *testing.T) {
	dataDir, f := smallRun(t)
	before := model.Scores{Version: model.ScoresVersion, Step: 1, PSNR: 12}
	if err := f.SetScores(before); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := evalWork{env: environment{out: io.Discard, err: io.Discard}, o: evaluate.Default(0), effort: model.Full, engine: "cpu", dataDir: dataDir}
	if _, _, err := w.run(ctx, "small"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if e, err := f.Evaluation(); err != nil || e.State != model.Stopped || e.Reason == "" {
		t.Errorf("cancelled: %+v, %v", e, err)
	}
	w.engine = "abacus"
	if _, _, err := w.run(t.Context(), "small"); err == nil {
		t.Error("an unknown engine is accepted")
	}
	if e, err := f.Evaluation(); err != nil || e.State != model.Failed || !strings.Contains(e.Reason, "abacus") {
		t.Errorf("failed: %+v, %v", e, err)
	}
	if s, err := f.Scores(); err != nil || s.PSNR != before.PSNR || s.Step != before.Step {
		t.Errorf("the earlier scores are now %+v, %v", s, err)
	}
}

// TestTrainEvaluates checks that a run from a shell is evaluated after training, and that --evaluate-later queues the evaluation.
func TestTrainEvaluates(t *testing.T) {
	words := []string{"train", "--json", "--data"}
	net := []string{"--steps", "2", "--batch", "2", "--engine", "cpu", "--model", "betavae", "--set", "widths=2,2,2,2", "--set", "fc=4", "--set", "eval_images=8", "--set", "evaluate=quick"}
	for _, later := range []bool{false, true} {
		dataDir := t.TempDir()
		args := append(append(append([]string{}, words...), dataDir), net...)
		if later {
			args = append(args, "--evaluate-later")
		}
		code, out, stderr := called(t, args...)
		var status model.Status
		if err := json.Unmarshal([]byte(out), &status); code != done || err != nil || status.State != model.Finished {
			t.Fatalf("exit code %d, %v, %s", code, err, stderr)
		}
		dirs, err := filepath.Glob(filepath.Join(dataDir, "runs", "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatal(dirs, err)
		}
		f, err := folder.Open(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		e, err := f.Evaluation()
		s, scoresErr := f.Scores()
		want := map[bool]model.State{false: model.Finished, true: model.Queued}[later]
		if err != nil || scoresErr != nil || e.State != want || e.Effort != model.Quick || s.Evaluated() == later || s.PSNR == 0 {
			t.Errorf("later %v: %+v, %v; evaluated: %v", later, e, errors.Join(err, scoresErr), s.Evaluated())
		}
	}
}
