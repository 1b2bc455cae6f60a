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

// Usage is which codes each slot takes on images of the dataset, and which factor each slot tells of.
type Usage struct {
	Version int        `json:"version"`
	Images  int        `json:"images"` // drawn at random, with a fixed seed
	Counts  [][]int    `json:"counts"` // [m] images per entry, as Entries orders them
	Labels  []Label    `json:"labels"` // [m]
	Factors []string   `json:"factors"`
	NMI     [][]Number `json:"nmi"` // [m][F], corrected for chance

	Joint *model.JointEntropy `json:"joint"` // of all slots' entries together
}

// Label is the factor that a slot tells most of.
type Label struct {
	Factor string  `json:"factor"` // empty where unclear
	Score  float64 `json:"score"`  // share of the factor's entropy, corrected for chance, 0 to 1
	Used   int     `json:"used"`   // codes that the slot takes at least once
}

// Number is a float64 that JSON keeps to four decimals: these are scores of a few thousand images.
type Number float64

func (n Number) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.4f", float64(n)), nil
}

const (
	usageVersion = 2
	// UsageImages are encoded for a checkpoint's usage.
	UsageImages = 4096
	// clearFrom is the score from which on a slot carries its factor's name.
	clearFrom = 0.15
	usageSeed = 20
)

// CountUsage encodes n images of a set and counts. progress, where not nil, hears how many are done.
func (m *Model) CountUsage(ctx context.Context, set data.Set, n int, progress func(done int)) (*Usage, error) {
	info := set.Info()
	if info.H != m.Image.H || info.W != m.Image.W || info.C != m.Image.C {
		return nil, fmt.Errorf("%s holds %d × %d × %d images, the checkpoint reads %d × %d × %d",
			info.Name, info.H, info.W, info.C, m.Image.H, m.Image.W, m.Image.C)
	}
	index := drawIndices(n, info.Len)
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
		if progress != nil {
			progress(len(codes))
		}
	}
	classes := make([]int, len(index)*len(info.Factors))
	if err := set.Classes(classes, index); err != nil {
		return nil, fmt.Errorf("reading the factors of %s: %w", info.Name, err)
	}
	for _, t := range codes {
		for i := range t {
			t[i] = m.entry(t[i])
		}
	}
	return tally(m.Config.M, len(m.Entries()), codes, classes, info), nil
}

// usageBatch is small, so that an image which somebody waits to have encoded never waits long behind it.
const usageBatch = 16

// drawIndices takes n indices without replacement, in order, the same for the same numbers.
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

// tally counts codes [n][m], each below k, and relates them to classes [n × F].
func tally(m, k int, codes [][]int, classes []int, info data.Info) *Usage {
	u := &Usage{Version: usageVersion, Images: len(codes), Joint: jointOf(codes, m)}
	for _, f := range info.Factors {
		u.Factors = append(u.Factors, f.Name)
	}
	factors := columns(classes, len(u.Factors))
	for i := range m {
		slot := make([]int, len(codes))
		counts := make([]int, k)
		for n, t := range codes {
			slot[n] = t[i]
			counts[t[i]]++
		}
		scores := make([]Number, len(factors))
		for f, classes := range factors {
			scores[f] = Number(relation(classes, slot))
		}
		u.Counts = append(u.Counts, counts)
		u.NMI = append(u.NMI, scores)
		u.Labels = append(u.Labels, label(u.Factors, scores, counts))
	}
	return u
}

func jointOf(codes [][]int, m int) *model.JointEntropy {
	flat := make([]int32, 0, len(codes)*m)
	for _, t := range codes {
		for _, c := range t {
			flat = append(flat, int32(c))
		}
	}
	return metric.JointEntropy(flat, m)
}

func columns(classes []int, f int) [][]int {
	out := make([][]int, f)
	for n, c := range classes {
		out[n%f] = append(out[n%f], c)
	}
	return out
}

func label(names []string, scores []Number, counts []int) Label {
	l := Label{}
	for _, c := range counts {
		if c > 0 {
			l.Used++
		}
	}
	for f, s := range scores {
		if float64(s) > l.Score {
			l.Factor, l.Score = names[f], float64(s)
		}
	}
	l.Score = math.Round(l.Score*1e4) / 1e4
	if l.Score < clearFrom {
		l.Factor = ""
	}
	return l
}

// relation is how much of a factor's entropy a slot's code tells, from 0 for nothing beyond chance to 1 for all of it.
//
//	(I(s; z) − E) / (H(s) − E)            E is the mean of I over shuffled codes
//
// The plain ratio I/H (Hsu et al.) rewards slots with many codes for luck on so few images; E takes that away. It orders and
// names slots on the page; it is not the paper's InfoM.
func relation(factor, slot []int) float64 {
	h := entropy(factor)
	chance, shuffled := 0.0, append([]int(nil), slot...)
	rng := rand.New(rand.NewPCG(usageSeed, 1))
	for range shuffles {
		rng.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		chance += mutual(factor, shuffled) / shuffles
	}
	if h-chance < 1e-9 {
		return 0
	}
	return math.Max(0, (mutual(factor, slot)-chance)/(h-chance))
}

const shuffles = 3

// mutual is the plug-in mutual information in nats, I = H(x) + H(y) − H(x, y).
func mutual(x, y []int) float64 {
	joint := make([]int, len(x))
	for n := range x {
		joint[n] = x[n]<<32 | y[n]
	}
	return entropy(x) + entropy(y) - entropy(joint)
}

// entropy is the plug-in entropy in nats. Terms are added in order of value, so that the sum is the same on every run.
func entropy(x []int) float64 {
	sorted := append([]int(nil), x...)
	sort.Ints(sorted)
	h, n := 0.0, float64(len(x))
	for start := 0; start < len(sorted); {
		end := start
		for end < len(sorted) && sorted[end] == sorted[start] {
			end++
		}
		p := float64(end-start) / n
		h -= p * math.Log(p)
		start = end
	}
	return h
}

// LoadUsage reads what SaveUsage wrote for this checkpoint; fs.ErrNotExist is in the chain where there is nothing of use.
func (m *Model) LoadUsage(dir string) (*Usage, error) {
	raw, err := os.ReadFile(m.usagePath(dir))
	if err != nil {
		return nil, err
	}
	u := new(Usage)
	if err := json.Unmarshal(raw, u); err != nil || !m.fits(u) {
		return nil, fmt.Errorf("%s does not fit this checkpoint: %w", m.usagePath(dir), fs.ErrNotExist)
	}
	return u, nil
}

func (m *Model) fits(u *Usage) bool {
	if u.Version != usageVersion || len(u.Counts) != m.Config.M || len(u.Labels) != m.Config.M || len(u.NMI) != m.Config.M {
		return false
	}
	for _, counts := range u.Counts {
		if len(counts) != len(m.Entries()) {
			return false
		}
	}
	return true
}

// SaveUsage writes dir/<key>.json: whole or not at all.
func (m *Model) SaveUsage(dir string, u *Usage) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keeping code usage: %w", err)
	}
	raw, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("keeping code usage: %w", err)
	}
	err = whole.Write(m.usagePath(dir), func(w *os.File) error {
		_, err := w.Write(raw)
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping code usage: %w", err)
	}
	return nil
}

func (m *Model) usagePath(dir string) string { return filepath.Join(dir, m.Key+".json") }

// Ranked are all codes of slot i, most used first, ties by number.
func (u *Usage) Ranked(i int) []int {
	order := make([]int, len(u.Counts[i]))
	for c := range order {
		order[c] = c
	}
	sort.SliceStable(order, func(a, b int) bool { return u.Counts[i][order[a]] > u.Counts[i][order[b]] })
	return order
}
