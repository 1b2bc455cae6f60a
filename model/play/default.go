package play

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"

	"github.com/dustin/go-humanize"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/shipped"
)

// Card describes the training and the scores of a shipped checkpoint.
type Card struct {
	Dataset string             `json:"dataset"`
	Model   string             `json:"model"`
	Preset  string             `json:"preset"`
	Seed    int64              `json:"seed"`
	Steps   int                `json:"steps"`
	Batch   int                `json:"batch"`
	Engine  string             `json:"engine"`
	Program string             `json:"program"` // revision that trained it
	Scores  map[string]float64 `json:"scores"`  // by name with unit, such as "PSNR (dB)"
	Note    string             `json:"note"`
}

// Default returns the shipped checkpoint that is shown first; the error wraps model.ErrNotFound if the build has none.
func Default() (Source, error) {
	all, err := Shipped()
	if err != nil {
		return Source{}, err
	}
	if len(all) == 0 {
		return Source{}, fmt.Errorf("this build has no demo model; train a model first: %w", model.ErrNotFound)
	}
	return all[0], nil
}

// Shipped returns the checkpoints embedded in the program, in the order in which they are shown.
func Shipped() ([]Source, error) { return shippedSources() }

// Contrast returns the key of the checkpoint initially shown beside an HRR model: the first β-VAE in among with the same dataset. It is empty
// if there is none or src is not an HRR model.
func Contrast(among []Source, src Source) string {
	if src.Config.Model != "hrr" {
		return ""
	}
	i := slices.IndexFunc(among, func(s Source) bool { return s.Config.Model == "betavae" && s.Config.Dataset == src.Config.Dataset })
	if i < 0 {
		return ""
	}
	return among[i].Key
}

var shippedSources = sync.OnceValues(func() ([]Source, error) {
	var out []Source
	for _, run := range shipped.Runs() {
		src, err := shippedSource(run)
		if err != nil {
			return nil, fmt.Errorf("shipped run %s: %w", run.ID, err)
		}
		out = append(out, src)
	}
	return out, nil
})

func shippedSource(run shipped.Run) (Source, error) {
	path, err := run.Checkpoint()
	if err != nil {
		return Source{}, err
	}
	raw, err := fs.ReadFile(run.Files, path)
	if err != nil {
		return Source{}, err
	}
	file, err := checkpoint.ReadFS(run.Files, path)
	if err != nil {
		return Source{}, err
	}
	var meta struct{ Name, Notes string }
	var status model.Status
	var scores model.Scores
	for name, v := range map[string]any{"run.json": &meta, "state.json": &status, "scores.json": &scores} {
		if err := readIn(run.Files, name, v); err != nil {
			return Source{}, err
		}
	}
	sum := sha256.Sum256(raw)
	c := file.Config
	card := &Card{Dataset: c.Dataset, Model: c.Model, Preset: c.Preset, Seed: c.Seed, Steps: status.Step, Batch: c.Batch,
		Engine: status.Engine, Program: status.Revision, Scores: headline(scores), Note: meta.Notes}
	return Source{Key: KeyOf(hex.EncodeToString(sum[:])), Title: meta.Name, Step: file.Step, Config: c, Card: card, shipped: &run}, nil
}

// headline returns the scores for a one-line summary of a model.
func headline(s model.Scores) map[string]float64 {
	round := func(v model.Score) float64 { return math.Round(float64(v)*100) / 100 }
	out := map[string]float64{fmt.Sprintf("PSNR over %s images (dB)", humanize.Comma(int64(s.Images))): round(model.Score(s.PSNR))}
	if m := s.Metrics; m != nil {
		out["InfoM"], out["InfoE"], out["InfoC"] = round(m.InfoM), round(m.InfoE), round(m.InfoC)
	}
	if t := s.SwapTruth; t != nil {
		out["swaps of groups that give the true image"] = round(t.Group.Value)
	}
	return out
}

func readIn(files fs.FS, name string, v any) error {
	raw, err := fs.ReadFile(files, name)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// shippedUsage returns the code counts that ship with a checkpoint; the error wraps fs.ErrNotExist for any other checkpoint.
func shippedUsage(src Source) (*Usage, error) {
	all, err := Shipped()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s Source) bool { return s.Key == src.Key })
	if i < 0 {
		return nil, fs.ErrNotExist
	}
	u := new(Usage)
	if err := readIn(all[i].shipped.Files, shipped.UsageFile, u); err != nil || !u.fits(src.Config) {
		return nil, fmt.Errorf("%s of %s does not fit its checkpoint: %w", shipped.UsageFile, all[i].shipped.ID, fs.ErrNotExist)
	}
	return u, nil
}
