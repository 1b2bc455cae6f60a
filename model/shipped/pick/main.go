// Command pick chooses finished runs and puts them, with weights in float16, among those that the program ships:
//
//	go run ./model/shipped/pick --data DIR hrr-small=RUN,RUN,RUN betavae-small=RUN,RUN,RUN …
//
// What ships already and is not named stays.
//
// Of each list it takes the run with the highest InfoM in its full evaluation, the score by which the paper selects; with --psnr, of those
// whose PSNR is at least so high, so that what is shown can be seen. The runs of a list are of one model and dataset; where they differ in more than their seed, the sentence that says how the run was chosen names what they differ in,
// and --note adds how they came to be tried. The rounded
// weights are evaluated anew, so that the scores are theirs; pick says how many codes differ from those of the run's own weights, and
// refuses where more than one in 1,000 does or PSNR moves by more than 0.02 dB.
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
	leastSeeds = 3    // that a run is chosen among
	mostShift  = 0.02 // dB of PSNR by which float16 may move a run
	mostCodes  = 1e-3 // share of codes that may differ
	stride     = 100  // steps between the points that are kept, beside those that hold more than the losses
)

func main() {
	log.SetFlags(0)
	dataDir := flag.String("data", "data", "data folder of the runs")
	out := flag.String("out", "model/shipped/runs", "folder that the program embeds")
	least := flag.Float64("psnr", 0, "the least PSNR, in dB, of a run that is chosen")
	note := flag.String("note", "", "a sentence on how the candidates were found, for the notes of the runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := pickAll(ctx, *dataDir, *out, *note, *least, flag.Args()); err != nil {
		log.Fatal("pick: ", err)
	}
}

func pickAll(ctx context.Context, dataDir, out, note string, least float64, lists []string) error {
	if len(lists) == 0 {
		return errors.New("name the runs: NAME=RUN,RUN,RUN …")
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

// shippedNow lists the runs in the program's folder, the one shown first first.
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
	dir    string  // where the run goes
	note   string  // how the candidates were found
	least  float64 // PSNR of a run that is chosen, in dB
}

type candidate struct {
	id     string
	cfg    model.Config
	label  string // its seed, and what else tells it from the others
	infoM  float64
	psnr   float64 // in dB
	images int     // that InfoM was measured on
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

// choose takes the candidate with the highest InfoM of those with the least PSNR asked for, and says so in a sentence.
func choose(all []candidate, least float64) (best candidate, rule string, err error) {
	enough := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.psnr < least })
	if len(enough) == 0 {
		return best, "", fmt.Errorf("no run has a PSNR of %g dB", least)
	}
	best = slices.MaxFunc(enough, func(a, b candidate) int { return cmp.Compare(a.infoM, b.infoM) })
	said := make([]string, len(all))
	what, among := "seeds", ""
	if least > 0 {
		among = fmt.Sprintf(" of those with at least %g dB", least)
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
	return best, fmt.Sprintf("Of %d %s the one with the highest InfoM over %s images%s (%s).", len(all), what, humanize.Comma(int64(best.images)), among, strings.Join(said, "; ")), nil
}

// candidates are runs of one model and dataset, of several seeds, evaluated on equally many images.
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
			return nil, fmt.Errorf("%s was evaluated on %d images, %s on %d", ids[0], all[0].images, id, c.images)
		}
		all = append(all, c)
	}
	if len(seeds) < leastSeeds {
		return nil, fmt.Errorf("%d seeds; a run is chosen among at least %d", len(seeds), leastSeeds)
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
		return candidate{}, fmt.Errorf("%s has no full evaluation: slotscope eval %s", id, id)
	}
	return candidate{id: id, cfg: f.Config(), infoM: float64(scores.Metrics.InfoM), psnr: scores.PSNR, images: scores.Images}, nil
}

// label names candidates by their seeds and the hyperparameters in which they differ, when to measure not being one.
func label(all []candidate) error {
	var differ []model.Field
	for _, f := range model.FieldsOf(all[0].cfg.Model) {
		other := slices.IndexFunc(all, func(c candidate) bool { return f.Get(c.cfg) != f.Get(all[0].cfg) })
		switch {
		case other < 0 || f.Name == "seed" || f.Name == "engine" || f.Group == "cadence":
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
			return fmt.Errorf("%s and %s have one configuration and %s", other, c.id, seedOf(c.cfg))
		}
		known[c.label] = c.id
	}
	return nil
}

func seedOf(c model.Config) string { return fmt.Sprintf("seed %d", c.Seed) }

// copy makes the run folder, without what evaluation adds.
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

// newest is the path of a folder's last checkpoint.
func newest(f *folder.Folder) string {
	steps := f.Checkpoints()
	return f.CheckpointPath(steps[len(steps)-1])
}

// measure evaluates the rounded weights, compares them with the run's own and counts the use of codes.
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

// keepProbe puts the probe that read images for the scores beside the runs, so that their bundles can hold it.
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

// compare holds what float16 weights gave against what the run's own gave.
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
			return fmt.Errorf("%s was evaluated on %d codes, the rounded weights on %d", f.ID(), len(codes), len(r.Codes))
		}
		for i, c := range codes {
			if c != int(r.Codes[i]) {
				differ++
			}
		}
	}
	log.Printf("%s: PSNR %.3f dB, %.3f dB from float32; %d of %d codes differ", f.ID(), r.Scores.PSNR, shift, differ, len(r.Codes))
	if shift > mostShift || float64(differ) > mostCodes*float64(len(r.Codes)) {
		return fmt.Errorf("float16 changes %s too much", f.ID())
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

// count keeps how often each slot takes each code.
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
