package command

import (
	"regexp"
	"slices"
	"testing"

	"slotscope/model"
)

// TestTrainListsHyperparameters checks that -h lists exactly the hyperparameters of the model, with their values.
func TestTrainListsHyperparameters(t *testing.T) {
	for _, name := range []string{"hrr", "factorvae"} {
		code, help, stderr := called(t, "train", "--model", name, "--preset", "small", "-h")
		if code != done || stderr != "" {
			t.Fatalf("%s: exit code %d, %q", name, code, stderr)
		}
		cfg, err := model.Default(name, "small", "shapes3d-synthetic")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range model.Fields() {
			line := regexp.MustCompile(`(?m)^  ` + f.Name + ` +` + regexp.QuoteMeta(f.Get(cfg)) + `  +\S`).MatchString(help)
			if want := f.Of(name) && !slices.Contains(namedFlags, f.Name); line != want {
				t.Errorf("%s: %s is listed: %v, want %v\n%s", name, f.Name, line, want, help)
			}
		}
	}
	if code, help, _ := called(t, "train", "-model", "none", "-h"); code != done || !regexp.MustCompile(`No hyperparameters to list: .*"none"`).MatchString(help) {
		t.Errorf("of an unknown model: exit code %d, %s", code, help)
	}
}
