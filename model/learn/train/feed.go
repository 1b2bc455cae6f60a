package train

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
	"slotscope/model/data"
)

const (
	residentShare = 0.4 // share of a GPU's memory that a dataset may take; copying it there needs twice that
	gpuSteps      = 4   // steps per call on a GPU

	partBytes = 128 << 20 // bytes of a dataset copied to a device at once
)

// Feeding describes how batches reach an engine. It does not change the results.
type Feeding struct {
	Resident bool // the dataset is on the device, and steps gather from it
	Insist   bool // Resident is required
	Steps    int  // gradient steps per call
}

// FeedingOf returns how a run feeds an engine with a dataset of so many bytes; total is the GPU's memory in bytes, −1 if unknown.
func FeedingOf(c model.Config, engine string, bytes, total int64) Feeding {
	f := Feeding{Steps: 1}
	if engine == "xla:cuda" {
		f.Resident, f.Steps = float64(bytes) <= residentShare*float64(total), gpuSteps
	}
	if c.Resident != "" {
		f.Resident, f.Insist = c.Resident == model.Always, true
	}
	if c.Devices > 1 {
		f.Resident = false // every device would need a copy
	}
	f.Steps = cmp.Or(c.StepsPerCall, f.Steps)
	return f
}

// place copies the dataset to the device if it is to be resident, and sets the steps per call.
func (s *session) place(ctx context.Context) error {
	total := int64(-1)
	if s.engine.Name == "xla:cuda" {
		total = gpu.Total()
	}
	bytes := s.bytes()
	how := FeedingOf(s.cfg, s.engine.Name, bytes, total)
	if how.Resident {
		s.copying = true
		err := s.upload(ctx, bytes)
		if err != nil && (how.Insist || ctx.Err() != nil) {
			return err
		}
		s.copying = false
		if err != nil {
			how.Resident = false
			s.Log.Warn("keeping the dataset on the host", "error", err)
		}
	}
	s.feeding = how
	s.Log.Info("feeding", "resident", how.Resident, "dataset_bytes", bytes, "device_bytes", total, "steps_per_call", how.Steps)
	return nil
}

// bytes returns the size of the dataset's images.
func (s *session) bytes() int64 {
	info := s.set.Info()
	return int64(info.Len) * int64(info.H*info.W*info.C)
}

// upload copies the dataset to the device and passes it to the trainer.
func (s *session) upload(ctx context.Context, bytes int64) error {
	s.Log.Info("copying the dataset to the device", "images", s.set.Info().Len, "bytes", bytes)
	told := time.Now()
	images, err := upload(ctx, s.set, s.engine, partBytes, func(done int) {
		if all := s.set.Info().Len; done == all || time.Since(told) >= statusEvery {
			told = time.Now()
			s.Log.Info("copied to the device", "images", done, "of", all)
			s.tell(told)
		}
	})
	if err != nil {
		return fmt.Errorf("copying the dataset to the device: %w", err)
	}
	s.trainer.Hold(images)
	return nil
}

// fed is a call that is ready to be launched, or the error in preparing it.
type fed struct {
	Call
	err error
}

// feed prepares the calls of steps from first on, one ahead of the running call, until ctx ends.
func (s *session) feed(ctx context.Context, first int) <-chan fed {
	next := make(chan fed)
	go func() {
		defer close(next)
		for step := first; step <= s.cfg.Steps; {
			f := s.prepare(step, s.span(step))
			select {
			case next <- f:
			case <-ctx.Done():
				return
			}
			step += f.N
		}
	}()
	return next
}

// prepare returns a call of n steps, with indices if the dataset is on the device, otherwise with images.
func (s *session) prepare(first, n int) (f fed) {
	defer compute.Recovered(fmt.Sprintf("preparing step %d", first), &f.err)
	f.N = n
	var index []int
	for step := first; step < first+n; step++ {
		index = append(index, s.sampler.Batch(step)...)
	}
	if s.feeding.Resident {
		numbers := make([]int32, len(index))
		for i, image := range index {
			numbers[i] = int32(image)
		}
		f.Call, f.err = s.trainer.Gather(first, n, numbers)
		return f
	}
	var err error
	if s.images, err = readInto(s.images, s.set, index); err != nil {
		f.err = fmt.Errorf("reading the images of step %d: %w", first, err)
		return f
	}
	f.Call, f.err = s.trainer.Load(first, n, s.images)
	return f
}

// span returns the number of steps of the call that begins with step first: a full call, counted from the last step at which something was
// due, or 1 if fewer steps are left until something is due. It depends only on the configuration, so a resumed run makes the same calls.
func (s *session) span(first int) int {
	n, last, next := s.feeding.Steps, 0, s.cfg.Steps
	for _, every := range []int{s.cfg.SampleEvery, s.cfg.CheckpointEvery, s.cfg.EvalEvery} {
		last = max(last, (first-1)/every*every)
		next = min(next, ((first-1)/every+1)*every)
	}
	if (first-1-last)%n != 0 || first+n-1 > next {
		return 1
	}
	return n
}

// due reports whether a sample, a checkpoint or an evaluation follows a step. The first sample follows the first full call, so that a run whose
// intervals are multiples of a call needs no program for single steps.
func (s *session) due(step int) bool {
	return step == s.feeding.Steps || step == s.cfg.Steps || step%s.cfg.SampleEvery == 0 || step%s.cfg.CheckpointEvery == 0 || step%s.cfg.EvalEvery == 0
}

// read returns images by index.
func read(set data.Set, index []int) ([]byte, error) { return readInto(nil, set, index) }

// readInto returns images by index, in the memory of images that are no longer needed if it is large enough.
func readInto(images []byte, set data.Set, index []int) ([]byte, error) {
	info := set.Info()
	bytes := len(index) * info.H * info.W * info.C
	images = slices.Grow(images[:0], bytes)[:bytes]
	return images, set.Images(images, index)
}
