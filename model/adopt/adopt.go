package adopt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/whole"
)

// Adopt starts a command, tests it by encoding and decoding images of a dataset, and creates a run for it. name may be empty.
func Adopt(ctx context.Context, root *folder.Data, set data.Set, name string, c Command) (id string, h Hello, err error) {
	c.ID, id = rand.Text(), model.NewID(time.Now())
	m := &Model{command: c}
	defer m.Close()
	file, err := m.meet(ctx, set)
	if err != nil {
		return "", m.Hello, err
	}
	if err := place(root, id, cmp.Or(name, m.Name), file, nil, "Adopted: another program trained and runs this model."); err != nil {
		return "", m.Hello, err
	}
	c.Folder = root.RunDir(id)
	if err := keepCommand(c); err != nil {
		return "", m.Hello, errors.Join(err, root.Remove(id)) // without its command the run would be unusable
	}
	return id, m.Hello, nil
}

// Again replaces the command of an adopted run; the new command must encode the examples like the former one.
func Again(root *folder.Data, id string, c Command) error {
	f, err := root.Open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	steps := f.Checkpoints()
	if len(steps) == 0 || f.Config().Model != model.External {
		return fmt.Errorf("run %s is not an adopted model: %w", id, model.ErrConflict)
	}
	file, err := checkpoint.Read(f.CheckpointPath(steps[len(steps)-1]))
	if err != nil {
		return err
	}
	m, err := described(file)
	if err != nil {
		return err
	}
	defer m.Close()
	c.ID, c.Folder = file.Meta[idKey], f.Dir()
	m.command = c
	m.mu.Lock()
	err = m.ready()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return keepCommand(c)
}

// scaleImages is the number of images used to compute the scales of slots.
const scaleImages = 256

// meet sends the model every kind of message and returns its checkpoint.
func (m *Model) meet(ctx context.Context, set data.Set) (file checkpoint.File, err error) {
	m.mu.Lock()
	err = m.ready()
	m.mu.Unlock()
	if err != nil {
		return file, err
	}
	info := set.Info()
	if m.Image != [3]int{info.H, info.W, info.C} {
		return file, model.Invalid{"model": fmt.Sprintf("%s expects images of %d × %d × %d, but those of %s are %d × %d × %d", m.command.Title(), m.Image[0], m.Image[1], m.Image[2], info.Name, info.H, info.W, info.C)}
	}
	n := min(examplesFor, info.Len)
	if m.examples, err = drawn(set, m.Seed, n); err != nil {
		return file, err
	}
	slots, err := m.Encode(m.examples, n)
	if err != nil {
		return file, err
	}
	if err := m.tryAll(slots, n); err != nil {
		return file, err
	}
	cfg := model.Config{Model: model.External, Preset: m.Name, Dataset: info.Name, Engine: "auto", Steps: m.Step, Seed: m.Seed, M: m.Slots, K: m.Codes, EvalImages: 10_000}
	file = checkpoint.File{Config: cfg, Step: m.Step, Meta: map[string]string{idKey: m.command.ID, latentKey: strconv.Itoa(m.Latent)},
		Tensors: map[string]checkpoint.Tensor{
			imagesName: {Shape: []int{n, info.H, info.W, info.C}, Data: floats(m.examples)},
			slotsName:  {Shape: []int{n, m.Slots}, Data: slices.Concat(floats(slots.Codes), slots.Numbers)},
		}}
	if m.Codes == 0 {
		file.Tensors[scalesName], err = m.scales(ctx, set)
	}
	return file, err
}

// tryAll checks that encoded slots can be decoded, and that latents, if any, are read as encode does.
func (m *Model) tryAll(slots Slots, n int) error {
	if _, err := m.Decode(slots, n); err != nil {
		return err
	}
	if m.Latent == 0 {
		return nil
	}
	z, err := m.Latents(m.examples, n)
	if err != nil {
		return err
	}
	again, err := m.Read(z, n)
	if err != nil {
		return err
	}
	if other := differing(slots, again); other*20 > n*m.Slots {
		return model.Invalid{"model": fmt.Sprintf("%s: read(latent(x)) and encode(x) differ in %d of %d slots; they must be equal", m.command.Title(), other, n*m.Slots)}
	}
	return nil
}

// drawn returns n images of a set, sampled with a seed.
func drawn(set data.Set, seed int64, n int) ([]byte, error) {
	info := set.Info()
	index, err := data.Draw(seed, n, info.Len)
	if err != nil {
		return nil, err
	}
	pixels := make([]byte, n*info.H*info.W*info.C)
	return pixels, set.Images(pixels, index)
}

func floats[T byte | int32](in []T) []float32 {
	out := make([]float32, len(in))
	for i, v := range in {
		out[i] = float32(v)
	}
	return out
}

// scales returns the mean and the deviation of every slot.
func (m *Model) scales(ctx context.Context, set data.Set) (t checkpoint.Tensor, err error) {
	const batch = 64
	n := min(scaleImages, set.Info().Len)
	pixels, err := drawn(set, m.Seed, n)
	if err != nil {
		return t, err
	}
	sum, square := make([]float64, m.Slots), make([]float64, m.Slots)
	for images := range slices.Chunk(pixels, batch*m.size()) {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		s, err := m.Encode(images, len(images)/m.size())
		if err != nil {
			return t, err
		}
		for i, v := range s.Numbers {
			sum[i%m.Slots] += float64(v)
			square[i%m.Slots] += float64(v) * float64(v)
		}
	}
	t.Shape = []int{m.Slots, 2}
	for j := range sum {
		mean := sum[j] / float64(n)
		deviation := math.Sqrt(max(0, square[j]/float64(n)-mean*mean))
		t.Data = append(t.Data, float32(mean), float32(deviation))
	}
	return t, nil
}

// Scales returns the offset and the unit for displaying numeric slots, [m] each: their mean and deviation over images of the dataset, or 0
// and 1 if the values have about the range of a VAE's, and for constant slots.
func Scales(file checkpoint.File) (offset, unit []float32) {
	t := file.Tensors[scalesName].Data
	offset, unit = make([]float32, file.Config.M), slices.Repeat([]float32{1}, file.Config.M)
	if len(t) != 2*file.Config.M {
		return offset, unit
	}
	for j := range offset {
		mean, deviation := t[2*j], t[2*j+1]
		if usual := deviation >= 0.25 && deviation <= 2 && float32(math.Abs(float64(mean))) <= 4; !usual && deviation > 1e-6 {
			offset[j], unit[j] = mean, deviation
		}
	}
	return offset, unit
}

// Take creates a run from a checkpoint in Slotscope's own format, such as a bundle's, with its scores if known. where briefly describes its
// origin.
func Take(root *folder.Data, name, where string, file checkpoint.File, scores *model.Scores) (id string, err error) {
	if problems := file.Config.Validate(); len(problems) > 0 {
		return "", fmt.Errorf("invalid configuration in %s: %w", where, problems)
	}
	id = model.NewID(time.Now())
	return id, place(root, id, name, file, scores, "Taken from "+where+".")
}

// place creates a run's folder atomically.
func place(root *folder.Data, id, name string, file checkpoint.File, scores *model.Scores, reason string) error {
	temp, remove, err := whole.Temp()
	if err != nil {
		return err
	}
	defer remove()
	f, err := folder.Create(filepath.Join(temp, id), file.Config, name)
	if err != nil {
		return err
	}
	defer f.Close()
	now := time.Now().UTC()
	status := model.Status{State: model.Finished, Step: file.Step, Checkpoint: file.Step, Attempt: 1, Engine: "external",
		EngineWhy: "Trained elsewhere.", Started: now, Ended: now, Reason: reason}
	err = errors.Join(checkpoint.Write(f.CheckpointPath(file.Step), file), f.SetStatus(status), keepScores(f, scores))
	if err != nil {
		return err
	}
	return root.Adopt(id, os.DirFS(f.Dir()), func(string) bool { return true })
}

func keepScores(f *folder.Folder, scores *model.Scores) error {
	if scores == nil {
		return nil
	}
	content, err := json.Marshal(scores)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(f.Dir())
	if err != nil {
		return err
	}
	return errors.Join(folder.WriteFile(dir, "scores.json", content), dir.Close())
}
