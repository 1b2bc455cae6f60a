package bundle

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/report"
)

// card returns README.md, a Hugging Face model card with YAML front matter.
func (b Bundle) card(page bool) string {
	var s strings.Builder
	b.head(&s)
	c := b.File.Config
	fmt.Fprintf(&s, "# %s\n\n", oneLine(b.Name))
	fmt.Fprintf(&s, "A %s autoencoder that packs an image into %d slots, trained with Slotscope on `%s` for %d steps of %d images (preset `%s`, seed %d).\n\n", kind(c.Model), c.M, c.Dataset, b.File.Step, c.Batch, c.Preset, c.Seed)
	s.WriteString("## Use\n\n```python\nfrom slotscope_model import SlotModel      # the file in this folder; PyTorch and NumPy only\n" +
		"model = SlotModel.from_pretrained(\".\")\ncodes = model.codes(images)                # uint8 [B, H, W, C] or floats [B, C, H, W]\n" +
		"decoded = model.decode(codes)              # [B, C, H, W] in [0, 1]\nswapped = model.swap(a, b, slots=[0])      # images a with slot 0 of images b\n```\n\n")
	s.WriteString("`python slotscope_model.py` compares the loader's outputs with Slotscope's; `slotscope verify FOLDER` measures the scores again.\n\n")
	s.WriteString("| file | content |\n|---|---|\n")
	for _, row := range [][2]string{
		{WeightsFile, "weights, with PyTorch names and layouts"}, {ConfigFile, "shapes, all hyperparameters, a SHA-256 of each tensor"},
		{LoaderFile, "the loader"}, {ScoresFile, "all scores, if the model was evaluated"}, {ProbeFile, "the probe used for the scores of swaps and noise, if any"}, {"onnx/", "encoder, retrieval with codebook, decoder as ONNX, opset 13"}, {AboutScores, "definitions of the scores"},
		{CheckFile, "images, their slots and reconstructions, if the dataset was available"}, {SumsFile, "SHA-256 of every file"},
	} {
		fmt.Fprintf(&s, "| `%s` | %s |\n", row[0], row[1])
	}
	if page {
		fmt.Fprintf(&s, "| `%s` | the playground; open it in a browser, works offline |\n", PageFile)
	}
	b.scoreTable(&s)
	s.WriteString("\n## Limits\n\nFor research and teaching on disentangled representations of synthetic images. Scores are measured on images that the model was trained on, " +
		"unless they are labelled unseen. Not intended for images of people or for decisions about people.\n")
	return s.String()
}

// kind returns the name of a model for use in a sentence.
func kind(name string) string {
	if name == "hrr" {
		return "holographic (HRR)"
	}
	return model.ModelTitle(name)
}

// head writes the card's YAML front matter. Strings are quoted as JSON, which is valid YAML.
func (b Bundle) head(s *strings.Builder) {
	c := b.File.Config
	license := b.License
	if license == "" {
		license = "unknown"
	}
	fmt.Fprintf(s, "---\nlicense: %s\nlibrary_name: slotscope\npipeline_tag: image-feature-extraction\ntags:\n- disentanglement\n- representation-learning\n- autoencoder\n- pytorch\n- %s\n", quoted(license), c.Model)
	if c.Model == "hrr" {
		s.WriteString("- holographic-reduced-representations\n- vector-symbolic-architectures\n")
	}
	scores := b.scores()
	if len(scores) == 0 {
		s.WriteString("---\n\n")
		return
	}
	s.WriteString("metrics:\n")
	for _, v := range scores {
		fmt.Fprintf(s, "- %s\n", v.metric.Key)
	}
	fmt.Fprintf(s, "model-index:\n- name: %s\n  results:\n  - task:\n      type: image-feature-extraction\n    dataset:\n      name: %s\n      type: %s\n    metrics:\n", quoted(b.Name), quoted(c.Dataset), quoted(c.Dataset))
	for _, v := range scores {
		fmt.Fprintf(s, "    - type: %s\n      name: %s\n      value: %s\n", v.metric.Key, quoted(v.metric.Label), number(v.value))
	}
	s.WriteString("---\n\n")
}

type measured struct {
	metric report.Metric
	value  float64
}

// scores returns the metrics that have a value.
func (b Bundle) scores() (all []measured) {
	if b.Scores == nil {
		return nil
	}
	for _, m := range report.AllMetrics() {
		if v := m.Of(*b.Scores); !math.IsNaN(v) {
			all = append(all, measured{m, v})
		}
	}
	return all
}

func (b Bundle) scoreTable(s *strings.Builder) {
	s.WriteString("\n## Scores\n\n")
	scores := b.scores()
	if len(scores) == 0 {
		s.WriteString("Not evaluated yet.\n")
		return
	}
	fmt.Fprintf(s, "On %d random images (seed %d). See `%s` for definitions.\n\n| score | value |\n|---|---|\n", b.Scores.Images, b.Scores.Seed, AboutScores)
	for _, v := range scores {
		fmt.Fprintf(s, "| %s | %s |\n", v.metric.Label, strings.TrimSpace(fmt.Sprintf("%.*f %s", v.metric.Decimals+1, v.value, v.metric.Unit)))
	}
}

// definitions returns SCORES.md.
func definitions() string {
	var s strings.Builder
	s.WriteString("# Definitions of the scores\n\n`scores.json` has all numbers; its tables' keys are documented in Slotscope's docs/metrics.md.\n\n| key | score | definition |\n|---|---|---|\n")
	for _, m := range report.AllMetrics() {
		label := m.Label
		if m.Unit != "" {
			label += ", " + m.Unit
		}
		fmt.Fprintf(&s, "| `%s` | %s | %s |\n", m.Key, label, strings.ReplaceAll(m.About, "|", `\|`))
	}
	return s.String()
}

func number(v float64) string {
	raw, err := model.Score(v).MarshalJSON()
	if err != nil {
		return "null"
	}
	return string(raw)
}

func quoted(s string) string {
	raw, err := json.Marshal(oneLine(s))
	if err != nil {
		return `""`
	}
	return string(raw)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
