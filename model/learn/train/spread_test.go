//go:build cgo

package train

import (
	"errors"
	"math"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/lower"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/paper/ae"
)

// trained takes steps, two per call, on a number of devices, and returns every step's values and the model.
func trained(t *testing.T, cfg model.Config, devices int) (steps []Step, learned map[string][]float32) {
	t.Helper()
	set, err := data.Open(t.Context(), cfg.Dataset, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	several := &simulated{Backend: engine.Backend, devices: devices}
	engine.Backend = several
	trainer, err := New(cfg, ae.Image{H: 64, W: 64, C: 3}, engine)
	if err != nil {
		t.Fatal(err)
	}
	if err := trainer.Spread(devices); err != nil {
		t.Fatal(err)
	}
	sampler, err := data.NewSampler(cfg.Seed, cfg.Batch, set.Info().Len)
	if err != nil {
		t.Fatal(err)
	}
	for first := 1; first <= cfg.Steps; first += 2 {
		images, err := read(set, append(sampler.Batch(first), sampler.Batch(first+1)...))
		if err != nil {
			t.Fatal(err)
		}
		call, err := trainer.Load(first, 2, images)
		if err != nil {
			t.Fatal(err)
		}
		out := <-trainer.Launch(call)
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		steps = append(steps, out.Steps...)
		if _, _, err := trainer.Reconstruct(images[:len(images)/2]); err != nil { // runs on one device, between steps on several
			t.Fatal(err)
		}
	}
	if want := devices > 1; (several.split > 0) != want {
		t.Errorf("%d inputs were sharded among %d devices", several.split, devices)
	}
	exported, err := trainer.Export()
	if err != nil {
		t.Fatal(err)
	}
	learned = map[string][]float32{}
	for name, tensor := range exported {
		learned[name] = tensor.Data
	}
	return steps, learned
}

// Several devices that share every batch measure and learn the same as one, for models with and without noise.
func TestDevicesShareABatch(t *testing.T) {
	for _, name := range []string{"hrr", "betatcvae"} {
		cfg := little(t, name)
		cfg.Batch, cfg.Steps = 8, 6
		alone, one := trained(t, cfg, 1)
		for _, devices := range []int{2, 4} {
			if !expect.All() && (devices == 2) == (name == "hrr") {
				continue
			}
			together, all := trained(t, cfg, devices)
			for i, step := range alone {
				for series, want := range step.Values {
					if got := together[i].Values[series]; math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
						t.Errorf("%s on %d devices: %s is %v at step %d, on one %v", name, devices, series, got, i+1, want)
					}
				}
			}
			for tensor, want := range one {
				for i := range want {
					if math.Abs(float64(all[tensor][i]-want[i])) > 1e-4 {
						t.Fatalf("%s on %d devices: %s[%d] is %v, on one %v", name, devices, tensor, i, all[tensor][i], want[i])
					}
				}
			}
		}
	}
}

// For XLA the step is one program over a mesh of devices, with images and noise sharded along the batch and everything else replicated.
func TestSharedStepIsAProgramOfXLA(t *testing.T) {
	images := make([]byte, 2*8*64*64*3)
	names := []string{"hrr", "betavae", "tripod"} // images only, with noise, with other random numbers
	if expect.All() {
		names = model.ModelNames()
	}
	for _, name := range names {
		cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Batch = 8
		program := lowered(t, cfg, 4, func(t *Trainer) error {
			c, err := t.Load(1, 2, images)
			return errors.Join(err, (<-t.Launch(c)).Err)
		})[0]
		if strings.Contains(program, "sdy.mesh") {
			t.Errorf("%s: a program for one device has a mesh", name)
		}
		program = lowered(t, cfg, 4, func(t *Trainer) error {
			if err := t.Spread(4); err != nil {
				return err
			}
			c, err := t.Load(1, 2, images)
			if err != nil {
				return err
			}
			return (<-t.Launch(c)).Err
		})[0]
		head, _, _ := strings.Cut(program, "-> (")
		shared := 1
		if cfg.Variational() || name == "tripod" { // images and random numbers
			shared = 2
		}
		if !strings.Contains(program, `sdy.mesh`) || strings.Count(head, `{"batch"}`) != shared {
			t.Errorf("%s: %d inputs are sharded:\n%.600s", name, strings.Count(head, `{"batch"}`), program)
		}
	}
}

func TestHowManyDevices(t *testing.T) {
	four := lower.New(4)
	for _, c := range []struct {
		devices, want int
		bad           string
	}{
		{0, 1, ""}, {1, 1, ""}, {2, 2, ""}, {4, 4, ""}, {8, 0, "devices: 8 devices requested, but the engine has 4"},
	} {
		n, err := devicesOf(four, model.Config{Devices: c.devices})
		if n != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%d devices: %d, %v", c.devices, n, err)
		}
	}
}
