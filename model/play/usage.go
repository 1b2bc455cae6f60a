package play

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
	"slotscope/model/whole"
)

// Usage counts the codes of each slot on images of the dataset, and relates the slots to factors.
type Usage struct {
	Version   int             `json:"version"`
	Images    int             `json:"images"` // number of random images, drawn with a fixed seed
	Counts    [][]int         `json:"counts"` // [m] images per entry, in the order of Model.Entries
	Factors   []string        `json:"factors"`
	Labels    []Label         `json:"labels"`    // [m]
	Ownership model.Ownership `json:"ownership"` // with the NMI of every factor and slot
	Meanings  [][]Meaning     `json:"meanings"`  // [m] of the entries that a slot uses; empty for slots without a factor, and for real numbers
	Pair      *TruePair       `json:"pair"`      // shown initially; nil if the dataset has no true images

	Joint *model.JointEntropy `json:"joint"` // over all slots
}

// Label is the name of a slot.
type Label struct {
	Name  string          `json:"name"`  // "shape", "shape + wall hue", "partly shape", "mixed", "unused"; empty if the dataset has no factors
	Kind  model.OwnerKind `json:"kind"`  // reason for the name
	Score float64         `json:"score"` // NMI with the slot's first factor, chance-corrected, 0–1
	Used  int             `json:"used"`  // number of codes used at least once
}

const (
	usageVersion = 4
	// UsageImages is the number of images encoded to count codes.
	UsageImages = 4096
	// UsageEarly is the number of images after which slots get preliminary names.
	UsageEarly = 512
	usageSeed  = 20
)

// CountUsage encodes n images of a dataset and counts their codes. If progress is not nil, it is called with the number of images done, and
// once with the usage of the first UsageEarly.
func (m *Model) CountUsage(ctx context.Context, set data.Set, n int, progress func(done int, early *Usage)) (*Usage, error) {
	u, _, err := m.count(ctx, set, n, progress)
	return u, err
}

// count is CountUsage, but also returns the entries of each image.
func (m *Model) count(ctx context.Context, set data.Set, n int, progress func(done int, early *Usage)) (*Usage, *Sample, error) {
	info := set.Info()
	index := drawShuffled(n, info.Len)
	classes := make([]int, len(index)*len(info.Factors))
	if err := set.Classes(classes, index); err != nil {
		return nil, nil, fmt.Errorf("reading the factors of %s: %w", info.Name, err)
	}
	codes, err := m.encodeAll(ctx, set, index, func(codes [][]int) {
		if progress == nil {
			return
		}
		var early *Usage
		if len(codes) == UsageEarly && n > UsageEarly {
			early = m.tally(codes, classes[:len(codes)*len(info.Factors)], info)
		}
		progress(len(codes), early)
	})
	if err != nil {
		return nil, nil, err
	}
	u := m.tally(codes, classes, info)
	if info.Complete {
		u.Pair, err = m.truePair(ctx, set, u)
	}
	return u, m.sample(index, codes), err
}

// usageBatch is small, so that interactive encoding does not wait long for a batch.
const usageBatch = 16

// drawShuffled returns the indices of drawIndices in random order, so that the first of them are representative.
func drawShuffled(n, of int) []int {
	index := drawIndices(n, of)
	rand.New(rand.NewPCG(usageSeed, 'e')).Shuffle(len(index), func(i, j int) { index[i], index[j] = index[j], index[i] })
	return index
}

// encodeAll encodes images of a dataset and calls progress with the codes so far after each batch.
func (m *Model) encodeAll(ctx context.Context, set data.Set, index []int, progress func(codes [][]int)) ([][]int, error) {
	info := set.Info()
	if info.H != m.Image.H || info.W != m.Image.W || info.C != m.Image.C {
		return nil, fmt.Errorf("images of %s are %d × %d × %d, but the checkpoint takes %d × %d × %d",
			info.Name, info.H, info.W, info.C, m.Image.H, m.Image.W, m.Image.C)
	}
	codes := make([][]int, 0, len(index))
	images := make([]byte, usageBatch*m.Size())
	for start := 0; start < len(index); start += usageBatch {
		part := index[start:min(len(index), start+usageBatch)]
		if err := set.Images(images[:len(part)*m.Size()], part); err != nil {
			return nil, fmt.Errorf("reading %s: %w", info.Name, err)
		}
		got, err := m.Encode(ctx, images[:len(part)*m.Size()])
		if err != nil {
			return nil, err
		}
		codes = append(codes, got...)
		progress(codes)
	}
	return codes, nil
}

// drawIndices returns n random indices below of without replacement, ascending and reproducible.
func drawIndices(n, of int) []int {
	if n >= of {
		n = of
	}
	taken := make(map[int]bool, n)
	rng := rand.New(rand.NewPCG(usageSeed, uint64(of)))
	index := make([]int, 0, n)
	for len(index) < n {
		if i := rng.IntN(of); !taken[i] {
			taken[i] = true
			index = append(index, i)
		}
	}
	sort.Ints(index)
	return index
}

// tally counts codes [n][m] by entry and relates them to classes [n × F].
func (m *Model) tally(codes [][]int, classes []int, info data.Info) *Usage {
	u := &Usage{Version: usageVersion, Images: len(codes), Factors: []string{}, Joint: m.jointOf(codes)}
	table := metric.Table{Factors: columns(classes, len(info.Factors))}
	for _, f := range info.Factors {
		u.Factors = append(u.Factors, f.Name)
	}
	for i := range m.Config.M {
		counts, slot, numbers := make([]int, len(m.Entries())), make([]int, len(codes)), make([]float64, len(codes))
		for n, t := range codes {
			slot[n], numbers[n] = t[i], m.Value(t[i])
			counts[m.entry(t[i])]++
		}
		u.Counts = append(u.Counts, counts)
		if m.Continuous() {
			table.Values = append(table.Values, numbers)
		} else {
			table.Codes = append(table.Codes, slot)
		}
	}
	u.Ownership = metric.Own(table, usageSeed)
	for i, o := range u.Ownership.Slots {
		u.Labels = append(u.Labels, u.label(o, i))
		meanings := []Meaning{}
		if !m.Continuous() {
			meanings = meaningsOf(table.Codes[i], classes, len(info.Factors), o.Factors)
		}
		u.Meanings = append(u.Meanings, meanings)
	}
	return u
}

// jointOf returns the joint entropy of the entries of tuples.
func (m *Model) jointOf(codes [][]int) *model.JointEntropy {
	flat := make([]int32, 0, len(codes)*m.Config.M)
	for _, t := range codes {
		for _, c := range t {
			flat = append(flat, int32(m.entry(c)))
		}
	}
	return metric.JointEntropy(flat, m.Config.M)
}

func columns(classes []int, f int) [][]int {
	out := make([][]int, f)
	for n, c := range classes {
		out[n%f] = append(out[n%f], c)
	}
	return out
}

func (u *Usage) label(o model.Owner, slot int) Label {
	l := Label{Kind: o.Kind}
	for _, c := range u.Counts[slot] {
		if c > 0 {
			l.Used++
		}
	}
	if len(u.Factors) > 0 {
		l.Name = metric.OwnerName(o, u.Factors)
	}
	if o.First >= 0 {
		l.Score = math.Round(float64(u.Ownership.NMI[o.First][slot])*1e4) / 1e4
	}
	return l
}

// keptUsage reads the saved usage of a checkpoint; the error wraps fs.ErrNotExist if there is no usable one.
func keptUsage(dir string, src Source) (*Usage, error) {
	path := usagePath(dir, src.Key)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u := new(Usage)
	if err := json.Unmarshal(raw, u); err != nil || !u.fits(src.Config) {
		return nil, fmt.Errorf("%s does not fit this checkpoint: %w", path, fs.ErrNotExist)
	}
	return u, nil
}

// fits reports whether a usage has the current version and the shape required by a configuration.
func (u *Usage) fits(c model.Config) bool {
	if u.Version != usageVersion || u.Joint == nil || len(u.Counts) != c.M || len(u.Labels) != c.M || len(u.Meanings) != c.M || len(u.Ownership.Slots) != c.M || len(u.Ownership.NMI) != len(u.Factors) {
		return false
	}
	for _, counts := range u.Counts {
		if len(counts) != len(entriesOf(c)) {
			return false
		}
	}
	return true
}

// SaveUsage writes dir/<key>.json atomically.
func (m *Model) SaveUsage(dir string, u *Usage) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("saving code counts: %w", err)
	}
	raw, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("saving code counts: %w", err)
	}
	err = whole.Write(usagePath(dir, m.Key), func(w *os.File) error {
		_, err := w.Write(raw)
		return err
	})
	if err != nil {
		return fmt.Errorf("saving code counts: %w", err)
	}
	return nil
}

func usagePath(dir, key string) string { return filepath.Join(dir, key+".json") }

// Ranked returns all codes of slot i, most used first, ties by number.
func (u *Usage) Ranked(i int) []int {
	order := make([]int, len(u.Counts[i]))
	for c := range order {
		order[c] = c
	}
	sort.SliceStable(order, func(a, b int) bool { return u.Counts[i][order[a]] > u.Counts[i][order[b]] })
	return order
}
