package evaluate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"slotscope/model/folder"
	"slotscope/model/npz"
)

// Files that Save writes.
const (
	ScoresFile         = "scores.json"
	RepresentationFile = "representation.npz" // codes or latents, factors, factor_names, index and psnr: what `slotscope metrics` reads
	AssociationsFile   = "associations.json"  // how often each code stands beside each factor value
)

// Save writes what was measured into a folder, each file whole or not at all, the scores last.
func (r Result) Save(dir *os.Root) error {
	archive, err := r.archive()
	if err == nil {
		err = folder.WriteFile(dir, RepresentationFile, archive)
	}
	if err != nil {
		return fmt.Errorf("keeping the representation: %w", err)
	}
	if r.Codes != nil {
		if err := writeJSON(dir, AssociationsFile, r.Associations()); err != nil {
			return err
		}
	}
	return writeJSON(dir, ScoresFile, r.Scores)
}

func writeJSON(dir *os.Root, name string, v any) error {
	content, err := json.Marshal(v)
	if err == nil {
		err = folder.WriteFile(dir, name, append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	return nil
}

// archive is the representation as NumPy reads it.
func (r Result) archive() ([]byte, error) {
	n, f := len(r.Index), len(r.Factors)
	slots := npz.Data{Name: "codes", Shape: []int{n, len(r.Codes) / n}, Values: r.Codes}
	if r.Codes == nil {
		slots = npz.Data{Name: "latents", Shape: []int{n, len(r.Numbers) / n}, Values: r.Numbers}
	}
	var b bytes.Buffer
	err := npz.Write(&b, slots,
		npz.Data{Name: "factors", Shape: []int{n, f}, Values: int32s(r.Classes)},
		npz.Data{Name: "factor_names", Shape: []int{f}, Values: r.Factors},
		npz.Data{Name: "index", Shape: []int{n}, Values: int32s(r.Index)},
		npz.Data{Name: "psnr", Shape: []int{n}, Values: r.PSNR})
	return b.Bytes(), err
}

func int32s(x []int) []int32 {
	out := make([]int32, len(x))
	for i, v := range x {
		out[i] = int32(v)
	}
	return out
}

// Associations is P(factor value | code) in counts of images, for the codes that occur.
type Associations struct {
	Images  int        `json:"images"`
	Factors []string   `json:"factors"` // [F]
	Slots   []CodeUses `json:"slots"`   // [m]
}

// CodeUses is the codes that one slot takes.
type CodeUses struct {
	Codes  []int     `json:"codes"`  // ascending
	Counts [][][]int `json:"counts"` // [code][F][value] images
}

// Associations counts what the codes of every slot stand beside.
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
