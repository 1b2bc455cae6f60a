package command

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/folder"
	"slotscope/model/shipped"
)

// TestShippedRunsByName checks that every command that takes a run's name adds a shipped run to a data folder that no server has used, adds
// no other run, and does not restore a deleted one.
func TestShippedRunsByName(t *testing.T) {
	id, other := shipped.Runs()[0].ID, shipped.Runs()[1].ID
	placed := func(dataDir string) bool {
		f, err := folder.Open(filepath.Join(dataDir, "runs", id))
		if err != nil {
			return false
		}
		defer f.Close()
		return len(f.Checkpoints()) == 1
	}
	var dataDir string
	env := environment{
		freeze: func(_ context.Context, o FreezeOptions, _ io.Writer) error {
			if !placed(o.Data) {
				return model.ErrNotFound
			}
			return nil
		},
		export: func(_ context.Context, o ExportOptions) (bundle.Bundle, func(), error) {
			if !placed(o.Data) {
				return bundle.Bundle{}, nil, model.ErrNotFound
			}
			return bundle.Bundle{}, nil, errors.New("nothing more is asked")
		},
	}
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"runs show " + id, id, done},
		{"runs wait " + id, id, done},
		{"export " + id, "nothing more is asked", failed},
		{"export --as tensorboard --out OUT " + id, "OUT", done},
		{"freeze --out OUT.html " + id, "OUT.html", done},
		{"report --out OUT " + id, "OUT", done},
		{"eval --out OUT --engine cpu " + id + "@1", "checkpoint", failed},
		{"eval --out OUT --engine cpu " + id + "@best", "checkpoint", failed},
	} {
		dataDir = t.TempDir()
		out := filepath.Join(t.TempDir(), "out")
		args := append(strings.Fields(strings.ReplaceAll(c.args, "OUT", out)), "--data", dataDir)
		code, said, stderr := calledIn(t, env, args...)
		if code != c.code || !strings.Contains(said+stderr, strings.ReplaceAll(c.says, "OUT", out)) {
			t.Errorf("%s: exit code %d, %s%s", c.args, code, said, stderr)
		}
		if !placed(dataDir) {
			t.Errorf("%s: the run is not in the data folder", c.args)
		}
		if _, err := os.Stat(filepath.Join(dataDir, "runs", other)); err == nil {
			t.Errorf("%s: the data folder contains %s, which was not named", c.args, other)
		}
	}
	if err := os.RemoveAll(filepath.Join(dataDir, "runs", id)); err != nil {
		t.Fatal(err)
	}
	if code, said, stderr := called(t, "runs", "show", id, "--data", dataDir); code != failed || !strings.Contains(stderr, "there is no run") {
		t.Errorf("a deleted run: exit code %d, %s%s", code, said, stderr)
	}
}
