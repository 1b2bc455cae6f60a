package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"

	"slotscope/model/folder"
	"slotscope/model/format/npz"
)

// Files that Save writes.
const (
	ScoresFile         = "scores.json"
	RepresentationFile = "representation.npz" // codes or latents, factors, factor_names, index and psnr; the input of `slotscope metrics`
	HeldOutFile        = "heldout.npz"        // the same for held-out images
	AssociationsFile   = "associations.json"  // how often each code occurs with each factor value
	AgreementFile      = folder.AgreementFile // codes or latents, index, and kl of a VAE, for images that are the same for all runs on a dataset
	NoiseFile          = folder.NoiseFile     // a sheet of images under noise
)

// Save writes the result into a folder, each file atomically, the scores last.
func (r Result) Save(dir *os.Root) error {
	if err := r.writeArchive(dir, RepresentationFile); err != nil {
		return err
	}
	if err := r.saveOptional(dir); err != nil {
		return err
	}
	if err := r.saveAgreement(dir); err != nil {
		return err
	}
	if r.Codes != nil && len(r.Factors) > 0 {
		if err := writeJSON(dir, AssociationsFile, r.Associations()); err != nil {
			return err
		}
	}
	return writeJSON(dir, ScoresFile, r.Scores)
}

// saveOptional writes the optional files, or removes those of an earlier evaluation.
func (r Result) saveOptional(dir *os.Root) error {
	var heldOut, noise error
	if r.HeldOut != nil {
		heldOut = r.HeldOut.writeArchive(dir, HeldOutFile)
	} else {
		heldOut = remove(dir, HeldOutFile)
	}
	if r.Noisy != nil {
		noise = writePNG(dir, NoiseFile, r.Noisy)
	} else {
		noise = remove(dir, NoiseFile)
	}
	return errors.Join(heldOut, noise)
}

// saveAgreement writes the latents for comparison with other runs, or removes those of an earlier evaluation.
func (r Result) saveAgreement(dir *os.Root) error {
	if r.agreement == nil {
		return remove(dir, AgreementFile)
	}
	content, err := r.agreement.archive(r.slots())
	if err == nil {
		err = folder.WriteFile(dir, AgreementFile, content)
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", AgreementFile, err)
	}
	return nil
}

func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the earlier %s: %w", name, err)
	}
	return nil
}

func (r Result) writeArchive(dir *os.Root, name string) error {
	archive, err := r.archive()
	if err == nil {
		err = folder.WriteFile(dir, name, archive)
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	return nil
}

func writePNG(dir *os.Root, name string, img image.Image) error {
	var b bytes.Buffer
	err := png.Encode(&b, img)
	if err == nil {
		err = folder.WriteFile(dir, name, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	return nil
}

func writeJSON(dir *os.Root, name string, v any) error {
	content, err := json.Marshal(v)
	if err == nil {
		err = folder.WriteFile(dir, name, append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	return nil
}

// archive returns the representation as a NumPy archive, without factors if the dataset has none.
func (r Result) archive() ([]byte, error) {
	n, f := len(r.Index), len(r.Factors)
	slots := npz.Data{Name: "codes", Shape: []int{n, r.slots()}, Values: r.Codes}
	if r.Codes == nil {
		slots = npz.Data{Name: "latents", Shape: []int{n, r.slots()}, Values: r.Numbers}
	}
	arrays := []npz.Data{slots, {Name: "index", Shape: []int{n}, Values: int32s(r.Index)}, {Name: "psnr", Shape: []int{n}, Values: r.PSNR}}
	if f > 0 {
		arrays = append(arrays, npz.Data{Name: "factors", Shape: []int{n, f}, Values: int32s(r.Classes)}, npz.Data{Name: "factor_names", Shape: []int{f}, Values: r.Factors})
	}
	return zipped(arrays)
}

func zipped(arrays []npz.Data) ([]byte, error) {
	var b bytes.Buffer
	err := npz.Write(&b, arrays...)
	return b.Bytes(), err
}

// slots returns m.
func (r Result) slots() int { return max(len(r.Codes), len(r.Numbers)) / len(r.Index) }

func int32s(x []int) []int32 {
	out := make([]int32, len(x))
	for i, v := range x {
		out[i] = int32(v)
	}
	return out
}

// Associations holds P(factor value | code) as counts of images, for the codes that occur.
type Associations struct {
	Images  int        `json:"images"`
	Factors []string   `json:"factors"` // [F]
	Slots   []CodeUses `json:"slots"`   // [m]
}

// CodeUses holds the codes in use in one slot.
type CodeUses struct {
	Codes  []int     `json:"codes"`  // ascending
	Counts [][][]int `json:"counts"` // [code][F][value] images
}

// Associations counts the factor values that occur with each code of every slot.
func (r Result) Associations() Associations {
	f, m := len(r.Factors), len(r.Codes)/len(r.Index)
	a := Associations{Images: len(r.Index), Factors: r.Factors, Slots: make([]CodeUses, m)}
	values := make([]int, f)
	for at, v := range r.Classes {
		values[at%f] = max(values[at%f], v+1)
	}
	for j := range a.Slots {
		a.Slots[j] = r.uses(j, m, values)
	}
	return a
}

func (r Result) uses(j, m int, values []int) CodeUses {
	counts, last := map[int][][]int{}, 0
	for n := range r.Index {
		c := int(r.Codes[n*m+j])
		if counts[c] == nil {
			last = max(last, c)
			for _, k := range values {
				counts[c] = append(counts[c], make([]int, k))
			}
		}
		for i := range values {
			counts[c][i][r.Classes[n*len(values)+i]]++
		}
	}
	var u CodeUses
	for c := range last + 1 {
		if counts[c] != nil {
			u.Codes, u.Counts = append(u.Codes, c), append(u.Counts, counts[c])
		}
	}
	return u
}
