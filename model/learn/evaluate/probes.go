package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
)

const (
	probeSeed     = 0                      // selects every probe's training images, independent of the run's seed
	contentImages = 256                    // images whose pixels and classes identify a dataset
	probeEvery    = 500                    // steps between saves of an unfinished probe
	probeWait     = 500 * time.Millisecond // polling interval for a probe that another process trains
)

// probeStore stores the probe of a dataset: one file per dataset, architecture, number of steps and seed, shared by all runs. Unfinished
// probes are stored too, so that a cancelled or killed training can resume.
type probeStore struct {
	dir, key string
	lock     *folder.Lock
}

// openProbes returns the store of e's probe; nil if no folder is configured or it is not writable.
func (e *evaluation) openProbes() (*probeStore, error) {
	if e.o.Probes == "" {
		return nil, nil
	}
	err := folder.MakeData(filepath.Dir(e.o.Probes))
	if err == nil {
		err = os.MkdirAll(e.o.Probes, 0o755)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating the folder of probes: %w", err)
	}
	key, err := e.probeKey()
	return &probeStore{dir: e.o.Probes, key: key}, err
}

// probeKey returns a hash of everything that determines a probe: the dataset's size, factors and a sample of its images, and the probe's
// training settings.
func (e *evaluation) probeKey() (string, error) {
	h := sha256.New()
	i := e.info
	fmt.Fprintf(h, "images %d×%d×%d×%d, classes %v; channels %v, hidden %d, steps %d of %d images, rate %g, from %d, seed %d\n",
		i.Len, i.H, i.W, i.C, i.Sizes(), probeWidths, probeHidden, e.o.Probe, batchSize, probeRate, probeImages, probeSeed)
	index, err := data.Draw(probeSeed, min(contentImages, i.Len), i.Len)
	if err != nil {
		return "", err
	}
	pixels, classes := make([]byte, len(index)*i.H*i.W*i.C), make([]int, len(index)*len(i.Factors))
	if err := errors.Join(e.set.Images(pixels, index), e.set.Classes(classes, index)); err != nil {
		return "", fmt.Errorf("reading images of %s: %w", i.Name, err)
	}
	h.Write(pixels)
	for _, c := range classes {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(c)))
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:24], nil
}

func (s *probeStore) path(suffix string) string { return filepath.Join(s.dir, s.key+suffix) }

const (
	finishedProbe = ".safetensors"
	halfProbe     = ".part.safetensors"
)

// take loads the finished probe, waiting while another process trains it; found reports whether there is one.
func (s *probeStore) take(ctx context.Context, e *evaluation, p *probe) (accuracy []float64, found bool, err error) {
	for {
		if accuracy, found = s.load(p); found {
			return accuracy, true, nil
		}
		if s.lock != nil || e.o.KeptProbe {
			return nil, false, nil
		}
		s.lock, err = folder.LockFile(s.path(".lock"), "the probe of "+e.info.Name)
		switch {
		case err == nil:
			continue // it may just have been finished
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			return nil, false, nil
		case !errors.Is(err, model.ErrConflict):
			return nil, false, err
		}
		e.o.Progress("waiting for the probe that another evaluation is training", "", 0, 1)
		select {
		case <-ctx.Done():
			return nil, false, fmt.Errorf("evaluation: %w", ctx.Err())
		case <-time.After(probeWait):
		}
	}
}

// load restores a finished probe. A damaged file counts as missing and is rewritten.
func (s *probeStore) load(p *probe) (accuracy []float64, found bool) {
	file, err := checkpoint.Read(s.path(finishedProbe))
	if err != nil || json.Unmarshal([]byte(file.Meta["accuracy"]), &accuracy) != nil || len(accuracy) != len(p.sizes) {
		return nil, false
	}
	return accuracy, p.restore(file, weights) == nil
}

// resume restores an unfinished probe and returns its last step; 0 if there is none.
func (s *probeStore) resume(p *probe) int {
	if s == nil {
		return 0
	}
	file, err := checkpoint.Read(s.path(halfProbe))
	if err != nil || p.restore(file, append([]string{weights}, moments...)...) != nil {
		return 0
	}
	return file.Step
}

// keepHalf saves the unfinished probe after a step, with its optimizer state.
func (s *probeStore) keepHalf(p *probe, step int) error {
	if s == nil || s.lock == nil {
		return nil
	}
	return s.write(halfProbe, checkpoint.File{Step: step, Tensors: p.export(append([]string{weights}, moments...)...)})
}

// keep saves the finished probe with its accuracy.
func (s *probeStore) keep(p *probe, steps int, accuracy []float64) error {
	if s == nil || s.lock == nil {
		return nil
	}
	text, err := json.Marshal(accuracy)
	if err == nil {
		err = s.write(finishedProbe, checkpoint.File{Step: steps, Tensors: p.export(weights), Meta: map[string]string{"accuracy": string(text)}})
	}
	if err == nil {
		os.Remove(s.path(halfProbe)) // no longer needed; ignored if it remains
	}
	return err
}

func (s *probeStore) write(suffix string, file checkpoint.File) error {
	err := checkpoint.Write(s.path(suffix), file)
	if err != nil {
		return fmt.Errorf("saving the probe: %w", err)
	}
	return nil
}

func (s *probeStore) close() {
	if s != nil && s.lock != nil {
		s.lock.Unlock()
	}
}

// export returns copies of the probe's variables of the given kinds.
func (p *probe) export(kinds ...string) map[string]checkpoint.Tensor {
	all := map[string]checkpoint.Tensor{}
	for _, kind := range kinds {
		for _, q := range p.params {
			value := p.variable(kind, q.Name).MustValue()
			all[tensorName(kind, q.Name)] = checkpoint.Tensor{Shape: q.Shape, Data: tensors.MustCopyFlatData[float32](value)}
		}
	}
	return all
}

// restore is the inverse of export. It changes nothing unless all variables exist with the right shapes.
func (p *probe) restore(file checkpoint.File, kinds ...string) error {
	for _, kind := range kinds {
		for _, q := range p.params {
			if t, ok := file.Tensors[tensorName(kind, q.Name)]; !ok || fmt.Sprint(t.Shape) != fmt.Sprint(q.Shape) {
				return fmt.Errorf("the probe has no %s of shape %v", tensorName(kind, q.Name), q.Shape)
			}
		}
	}
	for _, kind := range kinds {
		for _, q := range p.params {
			t := file.Tensors[tensorName(kind, q.Name)]
			if err := p.variable(kind, q.Name).SetValue(tensors.FromFlatDataAndDimensions(t.Data, t.Shape...)); err != nil {
				return fmt.Errorf("restoring the probe's %s: %w", q.Name, err)
			}
		}
	}
	return nil
}

func tensorName(kind, name string) string { return strings.TrimPrefix(kind+"/"+name, "/") }
