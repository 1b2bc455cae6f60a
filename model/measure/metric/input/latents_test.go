package input

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/format/npz"
)

// archived writes an archive into a temporary directory.
func archived(t *testing.T, arrays ...npz.Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := npz.Write(&b, arrays...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agreement.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLatents(t *testing.T) {
	index := npz.Data{Name: "index", Shape: []int{3}, Values: []int32{7, 0, 5}}
	codes := npz.Data{Name: "codes", Shape: []int{3, 2}, Values: []int32{1, 2, 3, 4, 5, 6}}
	numbers := npz.Data{Name: "latents", Shape: []int{3, 2}, Values: []float32{0.5, 2, 1.5, 4, 2.5, 6}}
	l, err := Latents(archived(t, index, codes))
	if err != nil || !reflect.DeepEqual(l.Index, []int{7, 0, 5}) || !reflect.DeepEqual(l.Codes, [][]int{{1, 3, 5}, {2, 4, 6}}) || l.Values != nil || l.KL != nil {
		t.Errorf("codes: %+v, %v", l, err)
	}
	l, err = Latents(archived(t, index, numbers, npz.Data{Name: "kl", Shape: []int{2}, Values: []float64{0.25, 4}}))
	if err != nil || !reflect.DeepEqual(l.Values, [][]float64{{0.5, 1.5, 2.5}, {2, 4, 6}}) || l.Codes != nil || !reflect.DeepEqual(l.KL, []float64{0.25, 4}) {
		t.Errorf("numbers: %+v, %v", l, err)
	}
	for want, arrays := range map[string][]npz.Data{
		"index":         {codes},
		"latents":       {index},
		"but index has": {index, {Name: "codes", Shape: []int{2, 2}, Values: []int32{1, 2, 3, 4}}},
		"one value per": {index, numbers, {Name: "kl", Shape: []int{1}, Values: []float64{1}}},
	} {
		if _, err := Latents(archived(t, arrays...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if l, err := Kept("", fmt.Errorf("no such file: %w", model.ErrNotFound)); l != nil || err != nil {
		t.Errorf("run without latents: %v, %v", l, err)
	}
	if _, err := Kept("", errors.New("no permission")); err == nil {
		t.Error("an unreadable file was treated as missing")
	}
}
