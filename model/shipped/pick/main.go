// Command pick selects finished runs and adds them, with weights in float16, to those that ship with the program:
//
//	go run ./model/shipped/pick --data DIR hrr-small=RUN,RUN,RUN betavae-small=RUN,RUN,RUN …
//
// Shipped runs with other names are kept.
//
// From each list it selects the run with the highest InfoM in its full evaluation, as in the paper. With --psnr, it considers only runs with at
// least this PSNR, so that images are recognizable. The runs of a list must have the same model and dataset. The notes of the selected run list
// the seeds and all other settings in which the candidates differ; --note adds how they were found. pick evaluates the rounded weights again, so
// that the scores are theirs. It logs how many codes differ from those of the original weights, and fails if more than one in 1,000 differs or
// PSNR changes by more than 0.02 dB.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/npz"
	"slotscope/model/learn/evaluate"
	"slotscope/model/play"
	"slotscope/model/shipped"
)

const (
	leastSeeds = 3    // minimum number of seeds to select from
	mostShift  = 0.02 // maximum change of PSNR by float16, in dB
	mostCodes  = 1e-3 // maximum share of codes that differ
	stride     = 100  // steps between the points that are kept, besides those with more than the losses
)

func main() {
	log.SetFlags(0)
	dataDir := flag.String("data", "data", "data folder of the runs")
	out := flag.String("out", "model/shipped/runs", "folder of the embedded runs")
	least := flag.Float64("psnr", 0, "minimum PSNR of a run in dB")
	note := flag.String("note", "", "sentence on how the candidates were found, added to the runs' notes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := pickAll(ctx, *dataDir, *out, *note, *least, flag.Args()); err != nil {
		log.Fatal("pick: ", err)
	}
}

func pickAll(ctx context.Context, dataDir, out, note string, least float64, lists []string) error {
	if len(lists) == 0 {
		return errors.New("no runs given; use NAME=RUN,RUN,RUN …")
	}
	root, err := folder.Root(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	engine, err := compute.Open("cpu")
	if err != nil {
		return err
	}
	ids, err := shippedNow(out)
	if err != nil {
		return err
	}
	for _, list := range lists {
		name, runs, _ := strings.Cut(list, "=")
		p := picker{root: root, engine: engine, dir: filepath.Join(out, "shipped-"+name), note: note, least: least}
		if err := p.pick(ctx, strings.Split(runs, ",")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if id := filepath.Base(p.dir); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	raw, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, shipped.OrderFile), append(raw, '\n'), 0o644)
}

// shippedNow returns the IDs of the embedded runs in the order in which they are shown.
func shippedNow(out string) (ids []string, err error) {
	raw, err := os.ReadFile(filepath.Join(out, shipped.OrderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &ids)
	}
	return ids, err
}

type picker struct {
	root   *folder.Data
	engine *compute.Engine
	dir    string  // folder of the shipped run
	note   string  // how the candidates were found
	least  float64 // minimum PSNR in dB
}

type candidate struct {
	id     string
	cfg    model.Config
	label  string // its seed, and the settings in which the candidates differ
	infoM  float64
	psnr   float64 // in dB
	images int     // number of images evaluated
}

func (p picker) pick(ctx context.Context, ids []string) error {
	all, err := p.candidates(ids)
	if err != nil {
		return err
	}
	best, rule, err := choose(all, p.least)
	if err != nil {
		return err
	}
	if p.note != "" {
		rule += " " + p.note
	}
	f, err := p.root.Open(best.id)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	to, err := p.copy(f, fmt.Sprintf("Ships with the program. %s Weights are stored in float16, and the scores are those of the stored weights. "+
		"Every %dth step of the series is kept.", rule, stride))
	if err != nil {
		return err
	}
	defer to.Close()
	return p.measure(ctx, f, to)
}

// choose returns the candidate with the highest InfoM of those with at least the given PSNR, and a sentence about the selection.
func choose(all []candidate, least float64) (best candidate, rule string, err error) {
	enough := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.psnr < least })
	if len(enough) == 0 {
		return best, "", fmt.Errorf("no run has a PSNR of at least %g dB", least)
	}
	best = slices.MaxFunc(enough, func(a, b candidate) int { return cmp.Compare(a.infoM, b.infoM) })
	said := make([]string, len(all))
	what, among := "seeds", ""
	if least > 0 {
		among = fmt.Sprintf(" and a PSNR of at least %g dB", least)
	}
	for i, c := range all {
		said[i] = fmt.Sprintf("%s: %.3f", c.label, c.infoM)
		if least > 0 {
			said[i] += fmt.Sprintf(" at %.1f dB", c.psnr)
		}
		if c.label != seedOf(c.cfg) {
			what = "runs"
		}
	}
	return best, fmt.Sprintf("Selected from %d %s for the highest InfoM on %s images%s (%s).", len(all), what, humanize.Comma(int64(best.images)), among, strings.Join(said, "; ")), nil
}

// candidates returns runs of one model and dataset, with several seeds, evaluated on the same number of images.
func (p picker) candidates(ids []string) ([]candidate, error) {
	var all []candidate
	seeds := map[int64]bool{}
	for _, id := range ids {
		c, err := p.candidate(id)
		if err != nil {
			return nil, err
		}
		seeds[c.cfg.Seed] = true
		if len(all) > 0 && c.images != all[0].images {
			return nil, fmt.Errorf("%s was evaluated on %d images, but %s on %d", ids[0], all[0].images, id, c.images)
		}
		all = append(all, c)
	}
	if len(seeds) < leastSeeds {
		return nil, fmt.Errorf("%d seeds given; a run is selected from at least %d", len(seeds), leastSeeds)
	}
	return all, label(all)
}

func (p picker) candidate(id string) (candidate, error) {
	f, err := p.root.Open(id)
	if err != nil {
		return candidate{}, err
	}
	defer f.Close()
	scores, err := f.Scores()
	if err != nil {
		return candidate{}, err
	}
	if scores.Metrics == nil || scores.Effort != model.Full {
		return candidate{}, fmt.Errorf("%s has no full evaluation; run slotscope eval %s", id, id)
	}
	return candidate{id: id, cfg: f.Config(), infoM: float64(scores.Metrics.InfoM), psnr: scores.PSNR, images: scores.Images}, nil
}

// label sets the labels of candidates: their seeds and the hyperparameters in which they differ, except for engine and cadence.
func label(all []candidate) error {
	var differ []model.Field
	for _, f := range model.FieldsOf(all[0].cfg.Model) {
		other := slices.IndexFunc(all, func(c candidate) bool { return f.Get(c.cfg) != f.Get(all[0].cfg) })
		switch {
		case other < 0 || f.Name == "seed" || f.Computing() || f.Group == "cadence":
		case f.Name == "model" || f.Name == "dataset":
			return fmt.Errorf("%s and %s differ in their %s", all[0].id, all[other].id, f.Name)
		default:
			differ = append(differ, f)
		}
	}
	known := map[string]string{}
	for i := range all {
		c := &all[i]
		c.label = seedOf(c.cfg)
		for _, f := range differ {
			c.label += fmt.Sprintf(", %s %s", cmp.Or(f.Symbol, strings.ToLower(f.Label)), f.Get(c.cfg))
		}
		if other, taken := known[c.label]; taken {
			return fmt.Errorf("%s and %s have the same configuration and %s", other, c.id, seedOf(c.cfg))
		}
		known[c.label] = c.id
	}
	return nil
}

func seedOf(c model.Config) string { return fmt.Sprintf("seed %d", c.Seed) }

// copy creates the run folder, without the files of an evaluation.
func (p picker) copy(f *folder.Folder, notes string) (*folder.Folder, error) {
	meta, err := f.Meta()
	if err != nil {
		return nil, err
	}
	status, err := f.Status()
	if err != nil {
		return nil, err
	}
	cfg, step := f.Config(), f.Latest()
	to, err := folder.Create(p.dir, cfg, "")
	if err != nil {
		return nil, err
	}
	meta.ID, meta.Name, meta.Notes = to.ID(), fmt.Sprintf("%s %s, as shipped", model.ModelTitle(cfg.Model), cfg.Preset), notes
	err = errors.Join(to.SetMeta(meta), to.SetStatus(status), f.Thin(to, stride), halve(f, to, step))
	if samples := f.Samples(); err == nil && len(samples) > 0 {
		last := samples[len(samples)-1]
		var png []byte
		if png, err = os.ReadFile(f.SamplePath(last)); err == nil {
			err = to.WriteSample(last, png)
		}
	}
	return to, err
}

// halve writes the checkpoint in float16.
func halve(f, to *folder.Folder, step int) error {
	file, err := checkpoint.Read(f.CheckpointPath(step))
	if err != nil {
		return err
	}
	var half bytes.Buffer
	if err := checkpoint.EncodeHalf(&half, file); err != nil {
		return err
	}
	return os.WriteFile(to.CheckpointPath(step), half.Bytes(), 0o644)
}

// newest returns the path of a folder's last checkpoint.
func newest(f *folder.Folder) string {
	steps := f.Checkpoints()
	return f.CheckpointPath(steps[len(steps)-1])
}

// measure evaluates the rounded weights, compares them with the original ones and counts codes.
func (p picker) measure(ctx context.Context, f, to *folder.Folder) error {
	cfg, path := to.Config(), newest(to)
	file, err := checkpoint.Read(path)
	if err != nil {
		return err
	}
	set, err := data.Open(ctx, cfg.Dataset, p.root.Dir())
	if err != nil {
		return err
	}
	defer set.Close()
	started := time.Now().UTC()
	o := evaluate.Default(cfg.Seed)
	o.Images, o.Probes = cfg.EvalImages, filepath.Join(p.root.Dir(), evaluate.ProbesDir)
	r, err := evaluate.Run(ctx, p.engine, file, set, o)
	if err != nil {
		return err
	}
	r.Scores.Effort = model.Full
	ended := time.Now().UTC()
	if err := compare(f, r); err != nil {
		return err
	}
	dir, err := os.OpenRoot(to.Dir())
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := r.Save(dir); err != nil {
		return err
	}
	if err := keepProbe(o.Probes, filepath.Join(filepath.Dir(p.dir), "..", "probes"), r.Scores.Probe); err != nil {
		return err
	}
	account := model.Evaluation{State: model.Finished, Effort: model.Full, Started: started, Ended: ended}
	return errors.Join(p.count(ctx, to, set), to.SetEvaluation(account), dir.Remove(evaluate.RepresentationFile))
}

// keepProbe copies the probe used for the scores next to the runs, so that bundles can include it.
func keepProbe(from, to, sum string) error {
	if sum == "" {
		return nil
	}
	probe, err := evaluate.FindProbe(os.DirFS(from), sum)
	if err != nil {
		return err
	}
	return evaluate.KeepProbe(to, probe)
}

// compare compares the evaluation of the float16 weights with that of the original ones.
func compare(f *folder.Folder, r evaluate.Result) error {
	before, err := f.Scores()
	if err != nil {
		return err
	}
	shift := math.Abs(r.Scores.PSNR - before.PSNR)
	differ := 0
	if r.Codes != nil {
		codes, err := codesOf(filepath.Join(f.Dir(), evaluate.RepresentationFile))
		if err != nil {
			return err
		}
		if len(codes) != len(r.Codes) {
			return fmt.Errorf("%s was evaluated on %d codes, but the rounded weights on %d", f.ID(), len(codes), len(r.Codes))
		}
		for i, c := range codes {
			if c != int(r.Codes[i]) {
				differ++
			}
		}
	}
	log.Printf("%s: PSNR %.3f dB, %.3f dB from float32; %d of %d codes differ", f.ID(), r.Scores.PSNR, shift, differ, len(r.Codes))
	if shift > mostShift || float64(differ) > mostCodes*float64(len(r.Codes)) {
		return fmt.Errorf("float16 changes %s too much: PSNR by %.3f dB (at most %g), %d of %d codes (at most %g%%)", f.ID(), shift, mostShift, differ, len(r.Codes), 100*mostCodes)
	}
	return nil
}

func codesOf(path string) ([]int, error) {
	archive, err := npz.Open(path)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	a, err := archive.Array("codes")
	if err != nil {
		return nil, err
	}
	return a.Ints()
}

// count saves the code counts of each slot.
func (p picker) count(ctx context.Context, to *folder.Folder, set data.Set) error {
	path := newest(to)
	file, err := checkpoint.Read(path)
	if err != nil {
		return err
	}
	sum, err := checkpoint.Hash(path)
	if err != nil {
		return err
	}
	file.Meta[play.HashKey] = play.KeyOf(sum)
	m, err := play.Open(ctx, p.engine, file)
	if err != nil {
		return err
	}
	defer m.Close()
	u, err := m.CountUsage(ctx, set, play.UsageImages, nil)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to.Dir(), shipped.UsageFile), append(raw, '\n'), 0o644)
}
