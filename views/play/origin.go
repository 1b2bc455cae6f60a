package play

import (
	"fmt"
	"maps"
	"slices"

	"slotscope/model"
	"slotscope/views"
)

// Origin is where a checkpoint comes from.
type Origin struct {
	Title  string
	Config model.Config
	Step   int
	Engine string             // empty if its card does not name one
	Scores map[string]float64 // of its card
}

// Named returns a checkpoint's title with its step.
func Named(title string, step int) string {
	return fmt.Sprintf("%s, step %s", title, views.Count(step))
}

// Option returns the text of a checkpoint in a list.
func (o Origin) Option() string {
	return fmt.Sprintf("%s · %s %s · step %s", o.Title, model.ModelTitle(o.Config.Model), o.Config.Preset, views.Count(o.Step))
}

// About returns one sentence on the origin of a checkpoint.
func (o Origin) About() string {
	c := o.Config
	text := fmt.Sprintf("%s, %s, seed %d, %s steps of %d images", model.ModelTitle(c.Model), c.Preset, c.Seed, views.Count(o.Step), c.Batch)
	if o.Engine != "" {
		text += ", engine " + o.Engine
	}
	for _, name := range slices.Sorted(maps.Keys(o.Scores)) {
		text += fmt.Sprintf(", %s %.4g", name, o.Scores[name])
	}
	return text + "."
}

// Short returns the abbreviated origin of a checkpoint.
func (o Origin) Short() string {
	text := fmt.Sprintf("Seed %d", o.Config.Seed)
	for _, name := range slices.Sorted(maps.Keys(o.Scores)) {
		if short, ok := map[string]string{"PSNR over 10,000 images (dB)": "PSNR %.1f dB", "InfoM": "InfoM %.2f"}[name]; ok {
			text += " · " + fmt.Sprintf(short, o.Scores[name])
		}
	}
	return text
}

// NoDataset says what the playground can do without the checkpoint's dataset.
func NoDataset(why error) string {
	return "This checkpoint’s dataset is not available, so you can only upload images or edit codes: " + why.Error() + "."
}

// CountingFailed is the reason why the codes are not counted.
func CountingFailed(why string) string { return "Counting the codes failed: " + why }

// FrozenFacts are the facts of a standalone playground about itself. precision is the type of its weights; difference is the greatest
// difference of a pixel from the original model's images.
func FrozenFacts(o Origin, key, run, revision, precision string, difference, images int) []PlayFact {
	weights := precision
	if precision != "float32" {
		weights += fmt.Sprintf("; images differ from the original model's by at most %d of 255", difference)
	}
	out := []PlayFact{
		{Name: "Model", Text: o.About()},
		{Name: "Dataset", Text: fmt.Sprintf("%s; this file includes %d of its images", o.Config.Dataset, images)},
		{Name: "Checkpoint", Text: key},
		{Name: "Weights", Text: weights},
		{Name: "Written by", Text: "Slotscope " + revision + "; scripts under the Apache License 2.0"},
	}
	if run != "" {
		out = append(out, PlayFact{Name: "Run", Text: run})
	}
	return out
}

// FrozenHead begins the file of a standalone playground; it takes the program's revision and the title, escaped.
const FrozenHead = `<!DOCTYPE html>
<!-- Standalone playground, exported by Slotscope %s; needs no server. Scripts: Apache License 2.0,
     https://www.apache.org/licenses/LICENSE-2.0. The model and the images keep the licenses of their authors. -->
<html lang="en" data-frozen>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<link rel="icon" href="data:,">
</head>
<body>
<main id="main"><noscript>This page decodes images in your browser and needs JavaScript.</noscript></main>
`
