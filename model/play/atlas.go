package play

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/whole"
)

// Sample is a checkpoint's encoding of random images from its dataset, the same images for all checkpoints.
type Sample struct {
	Index   []int   `json:"index"`   // [n] indices of the images
	Entries [][]int `json:"entries"` // [n][m] positions in Model.Entries
}

// LifeImages is the number of images encoded with each of a run's checkpoints, to determine when a code is first and last used. They are the
// first images of every sample.
const LifeImages = UsageEarly

// Sampling is the progress of a sample and of the lives of a run's codes.
type Sampling struct {
	Sample *Sample // nil until complete
	Lives  []Life  // of the run's checkpoints, ascending by step; nil until complete
	Done   int     // images encoded, over all checkpoints
	Of     int
	Err    error // why sampling failed
}

// Life is the entries used at one step of training.
type Life struct {
	Step    int
	Entries [][]int // [LifeImages][m]
}

// Carried returns the positions in Index of the images with an entry in a slot.
func (s *Sample) Carried(slot, entry int) (rows []int) {
	for n, e := range s.Entries {
		if e[slot] == entry {
			rows = append(rows, n)
		}
	}
	return rows
}

// Share returns the fraction of a life's images with an entry in a slot.
func (l Life) Share(slot, entry int) float64 {
	taken := 0
	for _, e := range l.Entries {
		if e[slot] == entry {
			taken++
		}
	}
	return float64(taken) / float64(max(1, len(l.Entries)))
}

// Born returns the positions of the first life in which an entry is used and of the first one after its last use; −1 if there is none.
func Born(lives []Life, slot, entry int) (born, died int) {
	taken := func(l Life) bool { return l.Share(slot, entry) > 0 }
	born = slices.IndexFunc(lives, taken)
	died = -1
	for at, l := range lives {
		if taken(l) {
			died = at + 1
		}
	}
	if died == len(lives) {
		died = -1
	}
	return born, died
}

// Probability is a fraction of n trials with its 95% Wilson interval.
type Probability struct {
	Taken int     `json:"taken"`
	Of    int     `json:"of"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// NewProbability returns the probability of taken out of n.
//
//	(p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)            Wilson 1927, z = 1.96
func NewProbability(taken, n int) Probability {
	if n == 0 {
		return Probability{Value: math.NaN(), Low: 0, High: 1}
	}
	const z = 1.959964
	p, m := float64(taken)/float64(n), float64(n)
	middle, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Probability{taken, n, p, max(0, (middle-half)/(1+z*z/m)), min(1, (middle+half)/(1+z*z/m))}
}

// Values returns the probability of each value of a factor among rows of a sample. classes are those of the whole sample.
func Values(classes [][]int, factor, values int, rows []int) []Probability {
	counts := make([]int, values)
	for _, n := range rows {
		counts[classes[n][factor]]++
	}
	out := make([]Probability, values)
	for v, taken := range counts {
		out[v] = NewProbability(taken, len(rows))
	}
	return out
}

// Classes returns the factor values of a sample's images.
func (s *Sample) Classes(set data.Set) ([][]int, error) {
	factors := len(set.Info().Factors)
	flat := make([]int, len(s.Index)*factors)
	if err := set.Classes(flat, s.Index); err != nil {
		return nil, fmt.Errorf("reading the factors of %s: %w", set.Info().Name, err)
	}
	out := make([][]int, len(s.Index))
	for n := range out {
		out[n] = flat[n*factors : (n+1)*factors]
	}
	return out, nil
}

// Sample returns the entries of a checkpoint on UsageImages images, and on the first LifeImages of them for every checkpoint of its run. If
// they are not in the data folder, it starts encoding in the background and returns the progress. It does not block.
func (l *Library) Sample(src Source) Sampling {
	l.mu.Lock()
	c, ok := l.samples[src.Key]
	if !ok {
		c = &guarded[Sampling]{}
		l.samples[src.Key] = c
		if l.ctx.Err() == nil {
			l.tasks.Go(func() { l.encodeSamples(src, c) })
		}
	}
	l.mu.Unlock()
	return c.get()
}

func (l *Library) encodeSamples(src Source, c *guarded[Sampling]) {
	err := func() error {
		set, err := l.Set(l.ctx, src.Config.Dataset)
		if err != nil {
			return err
		}
		steps, n := l.lifeSteps(src), set.Info().Len
		c.set(func(now *Sampling) { now.Of = min(UsageImages, n) + len(steps)*min(LifeImages, n) })
		before := 0
		sample, err := l.sampleOf(src, set, UsageImages, func(done int) { c.set(func(now *Sampling) { now.Done = done }) })
		if err != nil {
			return err
		}
		before += len(sample.Index)
		c.set(func(now *Sampling) { now.Sample, now.Done = sample, before })
		lives := []Life{}
		for _, at := range steps {
			s, err := l.sampleOf(at, set, LifeImages, func(done int) { c.set(func(now *Sampling) { now.Done = before + done }) })
			if err != nil {
				return err
			}
			before += min(LifeImages, n)
			lives = append(lives, Life{at.Step, s.Entries[:min(LifeImages, len(s.Entries))]})
		}
		c.set(func(now *Sampling) { now.Lives, now.Done = lives, now.Of })
		return nil
	}()
	if err != nil {
		c.set(func(now *Sampling) { now.Err = err })
	}
}

// lifeSteps returns the checkpoints of a source's run, ascending by step. It skips unreadable ones.
func (l *Library) lifeSteps(src Source) (out []Source) {
	if src.Run == "" {
		return nil
	}
	for _, step := range l.Steps(src.Run) {
		if at, err := l.shelf.source(src.Run, step); err == nil {
			out = append(out, at)
		}
	}
	return out
}

// sampleOf returns the first n images of the sample, from the data folder if they are saved there.
func (l *Library) sampleOf(src Source, set data.Set, n int, progress func(done int)) (*Sample, error) {
	index := drawShuffled(UsageImages, set.Info().Len)
	index = index[:min(n, len(index))]
	path := l.samplePath(src)
	if s, err := loadSample(path, src.Config.M, index); err == nil {
		return s, nil
	}
	m, release, err := l.Use(l.ctx, src)
	if err != nil {
		return nil, err
	}
	defer release()
	l.counts.Lock()
	defer l.counts.Unlock()
	codes, err := m.encodeAll(l.ctx, set, index, func(codes [][]int) { progress(len(codes)) })
	if err != nil {
		return nil, err
	}
	s := m.sample(index, codes)
	return s, errors.Join(folder.MakeData(l.dir), saveSample(path, s))
}

func (m *Model) sample(index []int, codes [][]int) *Sample {
	s := &Sample{Index: index}
	for _, tuple := range codes {
		entries := make([]int, len(tuple))
		for i, code := range tuple {
			entries[i] = m.entry(code)
		}
		s.Entries = append(s.Entries, entries)
	}
	return s
}

func (l *Library) samplePath(src Source) string {
	return filepath.Join(l.dir, "cache", "play", src.Key+".sample.json")
}

// loadSample reads a saved sample; the error wraps fs.ErrNotExist if it does not start with these images.
func loadSample(path string, m int, index []int) (*Sample, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := new(Sample)
	err = json.Unmarshal(raw, s)
	fits := err == nil && len(s.Index) >= len(index) && len(s.Entries) == len(s.Index) && slices.Equal(s.Index[:len(index)], index)
	if !fits || slices.ContainsFunc(s.Entries, func(e []int) bool { return len(e) != m }) {
		return nil, fmt.Errorf("%s does not fit this checkpoint: %w", path, fs.ErrNotExist)
	}
	return s, nil
}

func saveSample(path string, s *Sample) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("saving the sample: %w", err)
	}
	raw, err := json.Marshal(s)
	if err == nil {
		err = whole.Write(path, func(w *os.File) error {
			_, err := w.Write(raw)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("saving the sample: %w", err)
	}
	return nil
}

// Neighbour is an entry with its distance to another.
type Neighbour struct {
	Code     int     `json:"code"`
	Distance float64 `json:"distance"` // relative to the mean distance between entries
}

// Neighbours returns at most the given number of a slot's entries nearest to one of its codes, nearest first; none without a codebook.
func (m *Model) Neighbours(slot, code, most int) ([]Neighbour, error) {
	distances, err := m.Distances(slot, code)
	if err != nil || distances == nil {
		return nil, err
	}
	var out []Neighbour
	for at, c := range m.Entries() {
		if at != m.entry(code) {
			out = append(out, Neighbour{c, distances[at]})
		}
	}
	slices.SortStableFunc(out, func(a, b Neighbour) int { return cmp.Compare(a.Distance, b.Distance) })
	return out[:min(most, len(out))], nil
}

// Entry returns the position in Entries of the entry nearest to a code.
func (m *Model) Entry(code int) int { return m.entry(code) }
