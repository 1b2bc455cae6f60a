package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/npz"
)

// checkTensors compares the weights of the model and of the probe with the sums in config.json.
func (o *Opened) checkTensors() {
	o.checkSumsOf("tensor", WeightsFile, o.File, o.Manifest.Tensors)
	if o.Probe == nil {
		if len(o.Manifest.Probe) > 0 {
			o.say(ProbeFile, "listed in "+ConfigFile+", but missing")
		}
		return
	}
	o.checkSumsOf("tensor of the probe", ProbeFile, *o.Probe, o.Manifest.Probe)
	if o.Scores != nil && checkpoint.Sum(o.Probe.Tensors) != o.Scores.Probe {
		o.say(ProbeFile, "not the probe used for "+ScoresFile)
	}
}

func (o *Opened) checkSumsOf(what, in string, file checkpoint.File, want map[string]string) {
	names := slices.Collect(maps.Keys(file.Tensors))
	names = slices.AppendSeq(names, maps.Keys(want))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		tensor, there := file.Tensors[name]
		sum, known := want[name]
		where := fmt.Sprintf("%s %q", what, name)
		switch {
		case !there:
			o.say(where, "listed in "+ConfigFile+", but missing in "+in)
		case !known:
			o.say(where, "not listed in "+ConfigFile)
		case tensor.Sum() != sum:
			o.say(where, "its SHA-256 does not match "+ConfigFile)
		}
	}
}

// checkConfig compares the configuration in config.json with that in the weights.
func (o *Opened) checkConfig() error {
	image, err := ImageOf(o.File)
	if err != nil {
		return in(WeightsFile, err)
	}
	if have := (ImageShape{image.H, image.W, image.C}); have != o.Manifest.Image {
		o.say(ConfigFile, fmt.Sprintf("image is %v, but the weights decode to %v", o.Manifest.Image, have))
	}
	if o.Manifest.Step != o.File.Step {
		o.say(ConfigFile, fmt.Sprintf("step is %d, but %d in %s", o.Manifest.Step, o.File.Step, WeightsFile))
	}
	if !reflect.DeepEqual(o.Manifest.Config, o.File.Config) {
		for _, f := range model.Fields() {
			if a, b := f.Get(o.Manifest.Config), f.Get(o.File.Config); a != b {
				o.say(ConfigFile, fmt.Sprintf("%s is %s, but %s in %s", f.Name, a, b, WeightsFile))
			}
		}
	}
	return nil
}

// decodedWithin is the tolerance for decoded images compared to check.npz, of 1. Engines differ in the order of summation.
const decodedWithin = 1e-3

// CheckExamples re-encodes and decodes the images in check.npz and reports differences in Problems. It does nothing without the file.
func (o *Opened) CheckExamples(engine *compute.Engine) error {
	raw, err := o.text(CheckFile)
	if err != nil {
		return nil //nolint:nilerr // without examples there is nothing to check; a listed but missing file is already a problem
	}
	arrays, err := readExamples(raw)
	if err != nil {
		return in(CheckFile, err)
	}
	got, err := Represent(engine, o.File, arrays.Images)
	if err != nil {
		return in(CheckFile, err)
	}
	if len(got.Codes) != len(arrays.Codes) || len(got.Numbers) != len(arrays.Numbers) || len(got.Decoded) != len(arrays.Decoded) {
		return fmt.Errorf("%s: the array shapes do not match the model", CheckFile)
	}
	for i := range got.Codes {
		if got.Codes[i] != arrays.Codes[i] {
			m := o.File.Config.M
			o.say(CheckFile, fmt.Sprintf("image %d: slot %d has code %d, but %d in the file", i/m, i%m, got.Codes[i], arrays.Codes[i]))
			break
		}
	}
	for i := range got.Numbers {
		if math.Abs(float64(got.Numbers[i]-arrays.Numbers[i])) > decodedWithin*math.Max(1, math.Abs(float64(arrays.Numbers[i]))) {
			m := o.File.Config.M
			o.say(CheckFile, fmt.Sprintf("image %d: slot %d is %v, but %v in the file", i/m, i%m, got.Numbers[i], arrays.Numbers[i]))
			break
		}
	}
	for i := range got.Decoded {
		if !(math.Abs(float64(got.Decoded[i]-arrays.Decoded[i])) <= decodedWithin) {
			o.say(CheckFile, fmt.Sprintf("image %d: a pixel decodes to %v, but is %v in the file", i/(len(got.Decoded)/(len(arrays.Images)/o.imageSize())), got.Decoded[i], arrays.Decoded[i]))
			break
		}
	}
	return nil
}

func (o *Opened) imageSize() int {
	i := o.Manifest.Image
	return max(1, i.Height*i.Width*i.Channels)
}

// mostExamples is the maximum number of example images in a bundle.
const mostExamples = 64

func readExamples(raw []byte) (e Examples, err error) {
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return e, err
	}
	images, err := readArray(archive, "images")
	if err != nil {
		return e, err
	}
	if images.DType() != "uint8" || len(images.Shape) != 4 || images.Shape[0] > mostExamples {
		return e, fmt.Errorf("images is %s of shape %v; must be uint8 [N, H, W, C] with at most %d images", images.DType(), images.Shape, mostExamples)
	}
	if e.Images, err = images.Elements(); err != nil {
		return e, err
	}
	slots, err := readArray(archive, "slots")
	if err != nil {
		return e, err
	}
	values, err := slots.Float64s()
	if err != nil {
		return e, err
	}
	for _, v := range values {
		if slots.DType() == "int32" {
			e.Codes = append(e.Codes, int32(v))
		} else {
			e.Numbers = append(e.Numbers, float32(v))
		}
	}
	decoded, err := readArray(archive, "decoded")
	if err != nil {
		return e, err
	}
	if values, err = decoded.Float64s(); err != nil {
		return e, err
	}
	for _, v := range values {
		e.Decoded = append(e.Decoded, float32(v))
	}
	return e, nil
}

// readArray reads an array of an archive. It enforces a limit of maxText bytes, regardless of the archive's headers.
func readArray(archive *zip.Reader, name string) (*npz.Array, error) {
	f, err := archive.Open(name + ".npy")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(raw) > maxText {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxText)
	}
	return npz.Parse(name, raw)
}

// circumstances lists the keys of scores.json that describe how scores were measured.
var circumstances = []string{"version", "seconds", "engine", "precision", "revision", "effort", "options"}

// CompareScores compares the recorded scores with measured ones and reports differences in Problems. The tolerance is relative to the recorded
// value, or absolute below 1. If the sum of scores.json does not match, the tolerance is 0, so that the changed score is reported.
func (o *Opened) CompareScores(measured model.Scores, tolerance float64) error {
	if o.Scores == nil {
		return nil
	}
	for _, p := range o.Problems {
		if p.Where == ScoresFile {
			tolerance = 0
		}
	}
	want, err := flat(*o.Scores)
	if err != nil {
		return err
	}
	got, err := flat(measured)
	if err != nil {
		return err
	}
	others := 0 // scores read by another probe
	for _, key := range slices.Sorted(maps.Keys(want)) {
		within := tolerance
		if o.Probe == nil && readByProbe.MatchString(key) {
			within, others = math.Max(tolerance, betweenProbes), others+1
		}
		if o.Probe == nil && (key == "probe" || strings.HasSuffix(key, ".leaks_most")) {
			continue // an identifier and an index, which cannot be compared within a tolerance
		}
		have, measured := got[key]
		if measured && near(want[key], have, within) {
			continue
		}
		if !measured {
			have = "nothing"
		}
		o.say("score "+key, fmt.Sprintf("recorded %s, measured %s", want[key], have))
	}
	if others > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("The bundle does not include the probe used for its scores: %d scores of swaps and of factors under noise were compared with those of another probe, within %g; all others within %g.",
			others, betweenProbes, tolerance))
	}
	return nil
}

// betweenProbes is the tolerance between shares that two probes read from the same images, almost twice the maximum observed; see
// docs/bundles.md.
const betweenProbes = 0.1

// readByProbe matches the scores that depend on the probe. Pairs, edits and the factors that own slots do not.
var readByProbe = regexp.MustCompile(`^(probe$|noise\.(clean_accuracy|\w+\[\d+\]\.accuracy)|swap\.(exact|none|others|probe_accuracy|probe_reconstructions)|` +
	`swap\.slots\[\d+\]\.(exact|none|others|leakage)|swap_truth\.(slots|groups)\[\d+\]\.leak)`)

func near(a, b string, tolerance float64) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Abs(x-y) <= tolerance*math.Max(1, math.Abs(y))
}

// flat returns every leaf of scores by its path in scores.json, such as "metrics.infom" or "usage.counts[3][17]".
func flat(s model.Scores) (map[string]string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	for _, key := range circumstances {
		delete(tree, key)
	}
	out := map[string]string{}
	walk("", tree, out)
	return out, nil
}

func walk(at string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			walk(strings.TrimPrefix(at+"."+key, "."), child, out)
		}
	case []any:
		for i, child := range v {
			walk(fmt.Sprintf("%s[%d]", at, i), child, out)
		}
	default:
		out[at] = fmt.Sprint(v)
	}
}
