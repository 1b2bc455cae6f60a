//go:build cgo

package train

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/lower"
	"slotscope/model/paper/ae"
)

// lowered returns a trainer's programs for XLA.
func lowered(t *testing.T, cfg model.Config, devices int, do func(*Trainer) error) []string {
	t.Helper()
	xla := lower.New(devices)
	trainer, err := New(cfg, ae.Image{H: 64, W: 64, C: 3}, &compute.Engine{Backend: xla, Name: "xla:cuda"})
	if err != nil {
		t.Fatal(err)
	}
	if err := do(trainer); !errors.Is(err, lower.ErrLowered) {
		t.Fatalf("XLA rejects: %v", err)
	}
	return xla.Programs()
}

// XLA's builder accepts the programs of every model's reconstruction and of its steps: one or several per call, from images or from a
// resident dataset.
func TestStepsAreProgramsOfXLA(t *testing.T) {
	const batch = 4
	images := make([]byte, 2*batch*64*64*3)
	for _, name := range model.ModelNames() {
		cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Batch = batch
		for what, do := range map[string]func(*Trainer) error{
			"a step": func(t *Trainer) error { _, err := t.Step(1, images[:len(images)/2]); return err },
			"two steps from images": func(t *Trainer) error {
				c, err := t.Load(1, 2, images)
				if err != nil {
					return err
				}
				return (<-t.Launch(c)).Err
			},
			"two steps from the device": func(t *Trainer) error {
				t.Hold(tensors.FromFlatDataAndDimensions(images, 2*batch, 64, 64, 3))
				c, err := t.Gather(1, 2, make([]int32, 2*batch))
				if err != nil {
					return err
				}
				return (<-t.Launch(c)).Err
			},
			"reconstruction": func(t *Trainer) error { _, _, err := t.Reconstruct(images[:len(images)/2]); return err },
		} {
			t.Run(fmt.Sprintf("%s of %s", what, name), func(t *testing.T) {
				programs := lowered(t, cfg, 1, do)
				if len(programs) != 1 || !strings.Contains(programs[0], "stablehlo.convolution") {
					t.Fatalf("%d programs", len(programs))
				}
				text := 1 << 20
				if name == "factorvae" {
					text += 1 << 18 // the discriminator's optimizer
				}
				if size := len(programs[0]); size > text {
					t.Errorf("program has %d bytes; it probably contains a large constant as text", size)
				}
				// feature maps of the widest layer, or circulant matrices; the terms of a matrix product would be larger
				allowed := max(batch*64*64*8, 128*9*128, cfg.DiscWidth*cfg.DiscWidth)
				if name == "tripod" {
					allowed = batch * (1 + 4*cfg.Probes) * 32 * 32 * 16 // Up 3 of images and probes
				}
				if most := largest(programs[0]); most > allowed {
					t.Errorf("a tensor has %d elements", most)
				}
			})
		}
	}
}

var dimensions = regexp.MustCompile(`tensor<([0-9]+(?:x[0-9]+)*)x[a-z]`)

// largest returns the number of elements of a program's largest tensor.
func largest(program string) (most int) {
	for _, m := range dimensions.FindAllStringSubmatch(program, -1) {
		n := 1
		for dim := range strings.SplitSeq(m[1], "x") {
			d, _ := strconv.Atoi(dim)
			n *= d
		}
		most = max(most, n)
	}
	return most
}
