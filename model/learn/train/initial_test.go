package train

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	gomlx "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/paper/ae"
)

// Variables begin with the same values in an engine's memory, new or used before, as on the host, and moments with zeros.
func TestVariablesBeginAlike(t *testing.T) {
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Batch, cfg.Widths = 2, [4]int{4, 4, 8, 8}
	image := ae.Image{H: 64, W: 64, C: 3}
	net, err := ae.New(cfg, image)
	if err != nil {
		t.Fatal(err)
	}
	scope := gomlx.New().Checked(false)
	if err := net.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	want, err := net.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, memory := range []string{"new", "used"} {
		trainer, err := New(cfg, image, engine)
		if err != nil {
			t.Fatal(err)
		}
		got, err := trainer.Export()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Fatalf("in %s memory: tensors %v, want %v", memory, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		for name := range want {
			if !reflect.DeepEqual(got[name], want[name]) {
				t.Errorf("in %s memory, %s differs from its values on the host", memory, name)
			}
		}
		optimizer, err := trainer.Optimizer(0)
		if err != nil {
			t.Fatal(err)
		}
		moments := optimizer.Tensors
		if len(moments) == 0 {
			t.Fatal("there are no moments")
		}
		for name, m := range moments {
			if i := slices.IndexFunc(m.Data, func(v float32) bool { return v != 0 }); i >= 0 {
				t.Errorf("in %s memory, element %d of %s begins as %v", memory, i, name, m.Data[i])
			}
		}
		if _, err := trainer.Step(1, make([]byte, cfg.Batch*image.H*image.W*image.C)); err != nil {
			t.Fatal(err)
		}
		trainer.Finalize()
	}
}
