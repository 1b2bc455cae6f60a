package train

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
	"slotscope/model/data"
)

// Environment variables that set how batches reach the engine; what a run learns is the same.
const (
	ResidentEnv = "SLOTSCOPE_RESIDENT"       // "always" or "never": whether the dataset lies on the device; else where it fits
	StepsEnv    = "SLOTSCOPE_STEPS_PER_CALL" // gradient steps that one call of the engine takes, 1 to 64
)

const (
	residentShare = 0.4 // of a GPU's memory that a dataset may take; while it is copied there, twice that is needed
	gpuSteps      = 4   // steps that a GPU takes in a call
	mostSteps     = 64  // the graph of a call grows with its steps

	partBytes = 128 << 20 // of a dataset that are copied to a device at once
)

// Feeding is how batches reach an engine.
type Feeding struct {
	Resident bool // the dataset lies on the device, from which steps gather
	Insist   bool // on that, or the contrary: the environment says so
	Steps    int  // gradient steps that one call takes
}

// FeedingOf says how an engine is fed with a dataset of so many bytes; total is the GPU's memory in bytes, −1 where it is not known.
// What the environment asks for in vain is model.Invalid.
func FeedingOf(engine string, bytes, total int64) (Feeding, error) {
	f := Feeding{Steps: 1}
	if engine == "xla:cuda" {
		f.Resident, f.Steps = float64(bytes) <= residentShare*float64(total), gpuSteps
	}
	switch v := os.Getenv(ResidentEnv); v {
	case "":
	case "always", "never":
		f.Resident, f.Insist = v == "always", true
	default:
		return f, model.Invalid{ResidentEnv: fmt.Sprintf("%q is neither always nor never", v)}
	}
	if v := os.Getenv(StepsEnv); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > mostSteps {
			return f, model.Invalid{StepsEnv: fmt.Sprintf("%q is not a number from 1 to %d", v, mostSteps)}
		}
		f.Steps = n
	}
	return f, nil
}

// place puts the dataset onto the device where that is to be, and notes how many steps a call takes.
func (s *session) place(ctx context.Context) error {
	total := int64(-1)
	if s.engine.Name == "xla:cuda" {
		total = gpu.Total()
	}
	bytes := s.bytes()
	how, err := FeedingOf(s.engine.Name, bytes, total)
	if err != nil {
		return err
	}
	if s.trainer.spread != nil {
		how.Resident = false // it would lie on every device
	}
	if how.Resident {
		s.copying = true
		err := s.upload(ctx, bytes)
		if err != nil && (how.Insist || ctx.Err() != nil) {
			return err
		}
		s.copying = false
		if err != nil {
			how.Resident = false
			s.Log.Warn("the dataset stays on the host", "error", err)
		}
	}
	s.feeding = how
	s.Log.Info("feeding", "resident", how.Resident, "dataset_bytes", bytes, "device_bytes", total, "steps_per_call", how.Steps)
	return nil
}

// bytes is the size of the dataset's images.
func (s *session) bytes() int64 {
	info := s.set.Info()
	return int64(info.Len) * int64(info.H*info.W*info.C)
}

// upload copies the dataset to the device and has the trainer hold it.
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

// fed is a call that is ready to be launched, or why none is.
type fed struct {
	Call
	err error
}

// feed prepares the calls of steps from first on, one ahead of the call that works, until ctx ends.
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

// prepare makes a call of n steps, from indices where the dataset lies on the device, else from images.
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
	images, err := read(s.set, index)
	if err != nil {
		f.err = fmt.Errorf("reading the images of step %d: %w", first, err)
		return f
	}
	f.Call, f.err = s.trainer.Load(first, n, images)
	return f
}

// span is how many steps the call takes that begins with a step: those of a call, counted from where something was due last, or one where
// less are left until something is due. It follows from the configuration, so that a resumed run falls into the same calls.
func (s *session) span(first int) int {
	if first == 1 {
		return 1 // something is due after the first step
	}
	n, last, next := s.feeding.Steps, 1, s.cfg.Steps
	for _, every := range []int{s.cfg.SampleEvery, s.cfg.CheckpointEvery, s.cfg.EvalEvery} {
		last = max(last, (first-1)/every*every)
		next = min(next, ((first-1)/every+1)*every)
	}
	if (first-1-last)%n != 0 || first+n-1 > next {
		return 1
	}
	return n
}

// due says whether a step is followed by a sample, a checkpoint or an evaluation.
func (s *session) due(step int) bool {
	return step == 1 || step == s.cfg.Steps || step%s.cfg.SampleEvery == 0 || step%s.cfg.CheckpointEvery == 0 || step%s.cfg.EvalEvery == 0
}

// read fetches images by index.
func read(set data.Set, index []int) ([]byte, error) {
	info := set.Info()
	images := make([]byte, len(index)*info.H*info.W*info.C)
	return images, set.Images(images, index)
}
