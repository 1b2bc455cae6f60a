package folder

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slotscope/model"
)

// Record copies a run with scores into dir/ID without its weights: configuration, name, status, scores, the latents for comparing seeds, and
// every strideth step of its series. Data.Adopt imports the copy into another data folder, where it cannot be resumed or used in the
// playground. An existing record is kept.
func (f *Folder) Record(dir string, stride int) error {
	at := filepath.Join(dir, f.ID())
	if Recorded(at) {
		return nil
	}
	scores, err := f.Scores()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(at); err != nil { // left by a killed writer
		return err
	}
	to, err := Create(at, f.cfg, "")
	if err != nil {
		return err
	}
	defer to.Close()
	meta, metaErr := f.Meta()
	status, statusErr := f.Status()
	account, accountErr := f.Evaluation()
	if err := errors.Join(metaErr, statusErr, accountErr); err != nil {
		return err
	}
	status.Checkpoint = 0
	latents, err := os.ReadFile(filepath.Join(f.dir, AgreementFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(at, AgreementFile), latents, 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(f.Thin(to, stride), to.SetMeta(meta), to.SetStatus(status), to.SetEvaluation(account)); err != nil {
		return err
	}
	return to.SetScores(scores) // last, because scores mark the record as complete
}

// Recorded reports whether dir holds a complete record of a run.
func Recorded(dir string) bool {
	f, err := Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Scores()
	return err == nil
}

// Thin copies the points of every strideth step, the first and last, and those with more model values than a training step, with 5 digits,
// which is what a chart and its tooltip show.
func (f *Folder) Thin(to *Folder, stride int) error {
	out, err := to.Points()
	if err != nil {
		return err
	}
	var held *model.Point
	least := math.MaxInt
	err = f.Each(func(p model.Point) error {
		said := ofModel(p)
		least = min(least, said)
		if p.Step == 1 || p.Step%stride == 0 || said > least+1 {
			held = nil
			return out.Append(rounded(p))
		}
		held = &p
		return nil
	})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	if held != nil {
		if err := out.Append(rounded(*held)); err != nil {
			return err
		}
	}
	return out.Close()
}

// ofModel is the number of values of a point that are not about the process.
func ofModel(p model.Point) (n int) {
	for name := range p.Values {
		if !strings.HasPrefix(name, "process/") {
			n++
		}
	}
	return n
}

func rounded(p model.Point) model.Point {
	for name, v := range p.Values {
		if five, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64); err == nil {
			p.Values[name] = five
		}
	}
	return p
}
