package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// runsFolder returns a data folder with runs in several states, as ended processes leave them.
func runsFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, r := range []struct {
		id, kind string
		state    model.State
		infom    float64
	}{{"a", "hrr", model.Finished, 0.8}, {"b", "betavae", model.Failed, 0}, {"c", "hrr", model.Stopped, 0}, {"d", "hrr", model.Queued, 0}, {"e", "vqvae", model.Running, 0}} {
		cfg, err := model.Default(r.kind, "tiny", "shapes3d-synthetic")
		if err != nil {
			t.Fatal(err)
		}
		f, err := folder.Create(filepath.Join(dir, "runs", r.id), cfg, "Run "+r.id)
		if err == nil {
			err = f.SetStatus(model.Status{State: r.state, Step: 700, Reason: "For a reason."})
		}
		if err != nil {
			t.Fatal(err)
		}
		points, err := f.Points()
		if err != nil {
			t.Fatal(err)
		}
		for step := 1; step <= 700; step++ {
			values := map[string]float64{"total": 1 / float64(step)}
			if step == 500 {
				values["psnr/eval"] = 25.5
			}
			if err := points.Append(model.Point{Step: step, Time: time.Unix(int64(step), 0), Values: values}); err != nil {
				t.Fatal(err)
			}
		}
		if err := points.Close(); err != nil {
			t.Fatal(err)
		}
		if r.infom > 0 {
			err = f.SetScores(model.Scores{Version: model.ScoresVersion, Step: 700, Images: 10, PSNR: 26, Metrics: &model.Metrics{InfoM: model.Score(r.infom)}})
		}
		if err == nil {
			err = os.WriteFile(f.LogPath(), []byte("one\ntwo\nthree\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return dir
}

func TestRunsAreListedByQuery(t *testing.T) {
	dir := runsFolder(t)
	for query, want := range map[string]string{
		"":                            "a b c d e",
		"model=hrr -failed":           "a c d",
		"infom>0.7":                   "a",
		"psnr/eval=25.5 model=vqvae":  "e",
		"interrupted":                 "e", // its state is running, but it has no process
		"scored or queued":            "a d",
		"total<0.002 -model=hrr":      "b e",
		"-(model=hrr or interrupted)": "b",
	} {
		code, out, stderr := called(t, append([]string{"runs", "list", "--data", dir, "--sort", "name", "--columns", "state,infom,psnr/eval"}, strings.Fields(query)...)...)
		var ids []string
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			if i > 0 {
				ids = append(ids, strings.Fields(line)[0])
			}
		}
		if got := strings.Join(ids, " "); code != done || got != want {
			t.Errorf("%s: exit code %d, %q, want %q; %s", query, code, got, want, stderr)
		}
	}
	_, out, _ := called(t, "runs", "list", "--data", dir, "infom>0.7", "--columns", "state,infom,psnr/eval")
	if want := "ID  STATE     INFOM  PSNR/EVAL\na   finished  0.80   25.5\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	code, out, _ := called(t, "runs", "list", "--data", dir, "--json", "--limit", "2", "--sort=-name")
	var listed struct{ Runs []model.Overview }
	if err := json.Unmarshal([]byte(out), &listed); err != nil || code != done || len(listed.Runs) != 2 || listed.Runs[0].ID != "e" || listed.Runs[1].Config.Model != "hrr" || listed.Runs[0].Values["total"] == 0 {
		t.Errorf("exit code %d, %v: %.300s", code, err, out)
	}
	for _, args := range [][]string{{"list", "lr<"}, {"list", "lrr=1"}, {"list", "--columns", "colour"}, {"list", "--sort", "colour"}, {"list", "--nosuch"}, {"paint"}, {}, {"show"}, {"stop"}, {"tag", "a"}, {"tag", "a", "--add", "a'b"}, {"tag", "a", "--star", "--unstar"}} {
		if code, _, stderr := called(t, append(append([]string{"runs"}, args...), "--data", dir)...); code != usage || stderr == "" {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	if code, out, _ := called(t, "runs", "show", "a", "--data", dir); code != done || !strings.Contains(out, "infom") || !strings.Contains(out, "25.5") || !strings.Contains(out, "lambda_cb") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if code, out, _ := called(t, "runs", "logs", "a", "--data", dir, "--lines", "2", "--follow"); code != done || out != "two\nthree\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
	if code, _, stderr := called(t, "runs", "show", "nobody", "--data", dir); code != failed || !strings.Contains(stderr, `there is no run "nobody"`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestRunsAreActedOn(t *testing.T) {
	dir := runsFolder(t)
	call := func(want int, args ...string) (out, stderr string) {
		t.Helper()
		code, out, stderr := called(t, append(append([]string{"runs"}, args...), "--data", dir)...)
		if code != want {
			t.Errorf("%v: exit code %d, want %d; %s%s", args, code, want, out, stderr)
		}
		return out, stderr
	}
	call(done, "tag", "a", "b", "--add", "night,paper", "--star")
	call(done, "tag", "tag:night", "model=hrr", "--remove", "night", "--archive", "--yes")
	if out, _ := call(done, "list", "archived", "--columns", "tag,star"); out != "ID  TAG    STAR\na   paper  yes\n" {
		t.Errorf("%q", out)
	}
	if _, stderr := call(usage, "delete", "failed"); !strings.Contains(stderr, "the query matches 1 run; add --yes to delete them") || !strings.Contains(stderr, "Run b") {
		t.Error(stderr)
	}
	call(done, "delete", "failed", "--yes")
	if _, err := os.Stat(filepath.Join(dir, "runs", "b")); !os.IsNotExist(err) {
		t.Errorf("the folder still exists: %v", err)
	}
	if _, stderr := call(failed, "delete", "d"); !strings.Contains(stderr, "run d is queued; stop it before deleting it") {
		t.Error(stderr)
	}
	out, stderr := call(failed, "stop", "d", "a", "--json")
	if !strings.Contains(stderr, "run a is not running; it is finished") || !strings.Contains(out, `"error": "run a is not running`) {
		t.Error(out, stderr)
	}
	if out, _ := call(done, "list", "id=d", "--columns", "state,reason"); !strings.Contains(out, "stopped  Removed from the queue.") {
		t.Error(out)
	}
	call(failed, "stop", "state=finished", "lr>100", "--yes") // matches none
}

// TestWaitEndsByOutcome checks that the exit code reports how the runs ended.
func TestWaitEndsByOutcome(t *testing.T) {
	dir := runsFolder(t)
	for _, tt := range []struct {
		args string
		code int
	}{{"a", done}, {"a c", 3}, {"a b c", failed}, {"e", failed}, {"finished", done}, {"d --timeout 30ms --poll 10ms", 124}, {"nothing", failed}} {
		code, _, stderr := called(t, append([]string{"runs", "wait", "--data", dir}, strings.Fields(tt.args)...)...)
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d; %s", tt.args, code, tt.code, stderr)
		}
	}
	f, err := folder.Open(filepath.Join(dir, "runs", "d"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	stderr := &onceSaid{what: "d queued, step 700 of ", do: func() { f.SetStatus(model.Status{State: model.Finished, Step: 900}) }}
	code := dispatch(t.Context(), environment{out: &out, err: stderr}, []string{"runs", "wait", "d", "a", "--json", "--poll", "10ms", "--data", dir})
	if code != done || stderr.do != nil || !strings.Contains(stderr.String(), "d finished, step 900 of ") || !strings.Contains(out.String(), `"timed_out": false`) {
		t.Errorf("exit code %d, %s%s", code, &out, stderr)
	}
}

// onceSaid calls do once after what has been written.
type onceSaid struct {
	bytes.Buffer
	what string
	do   func()
}

func (o *onceSaid) Write(p []byte) (int, error) {
	n, err := o.Buffer.Write(p)
	if o.do != nil && strings.Contains(o.String(), o.what) {
		o.do()
		o.do = nil
	}
	return n, err
}
