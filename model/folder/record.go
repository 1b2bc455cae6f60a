package folder

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"slotscope/model"
)

// Record copies a run that has scores into dir/ID without its weights: what it was asked, what it is called, how it ended, its scores,
// the latents by which seeds are compared, and every strideth step of its series. Data.Adopt makes a run of it in another data folder;
// what is lost is that it can be resumed and played with. One that is there already stays.
func (f *Folder) Record(dir string, stride int) error {
	at := filepath.Join(dir, f.ID())
	if Recorded(at) {
		return nil
	}
	scores, err := f.Scores()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(at); err != nil { // of a writer that was killed
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
	return to.SetScores(scores) // last: by these it is known to be whole
}

// Recorded says whether dir holds a whole record of a run.
func Recorded(dir string) bool {
	f, err := Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Scores()
	return err == nil
}

// Thin copies the points of every strideth step, the first and last, and those that say more of the model than a training step does, with 5
// digits, as many as a chart and its tip show.
func (f *Folder) Thin(to *Folder, stride int) error {
	out, err := to.Points()
	if err != nil {
		return err
	}
	var held *model.Point
	least := math.MaxInt
	var offset int64
	for {
		points, next, err := f.Tail(offset)
		if err != nil {
			return err
		}
		if next == offset {
			break
		}
		for _, p := range points {
			said := ofModel(p)
			least = min(least, said)
			held = nil
			if p.Step == 1 || p.Step%stride == 0 || said > least+1 {
				err = out.Append(rounded(p))
			} else {
				held = &p
			}
			if err != nil {
				return err
			}
		}
		offset = next
	}
	if held != nil {
		if err := out.Append(rounded(*held)); err != nil {
			return err
		}
	}
	return out.Close()
}

// ofModel is how many values of a point are not the process's.
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
		if v != 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
			unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-4)
			p.Values[name] = math.Round(v/unit) * unit
		}
	}
	return p
}
