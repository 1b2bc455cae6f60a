package play_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/play"
)

func of[T any](v T) *T { return &v }

// naming returns a library with one run, and its open model.
func naming(t *testing.T) (lib *play.Library, src play.Source, m *play.Model, file string) {
	t.Helper()
	dir := t.TempDir()
	writeRun(t, dir, "run-a", randomFile(t, 1))
	lib = play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
	t.Cleanup(lib.Close)
	src, err := lib.Find("run-a")
	if err != nil {
		t.Fatal(err)
	}
	m, release, err := lib.Use(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return lib, src, m, filepath.Join(dir, "runs", "run-a", play.NamesFile)
}

func TestNamesAreKeptBesideTheRun(t *testing.T) {
	lib, src, m, _ := naming(t)
	for _, c := range []play.NameChange{
		{Slot: of(1), Name: of("  wall <b>colour</b> ")}, {Factor: "shape", Name: of("form")},
		{Slot: of(1), Code: of(3), Name: of("teal"), Pin: of(true)}, {Slot: of(1), Code: of(2), Pin: of(true)}, {Slot: of(0), Code: of(0), Name: of("x")},
		{Slot: of(0), Code: of(0), Name: of("")}, {Slot: of(1), Code: of(3), Pin: of(true)},
	} {
		if _, err := lib.Rename(m, src, []string{"shape"}, c); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
	want := play.Names{
		Slots: map[int]string{1: "wall <b>colour</b>"}, Groups: map[string]string{"shape": "form"},
		Codes: map[int]map[int]string{1: {3: "teal"}}, Pins: map[int][]int{1: {2, 3}},
	}
	got, err := lib.Names(src)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := lib.Rename(m, src, nil, play.NameChange{Slot: of(1), Code: of(2), Pin: of(false)}); err != nil {
		t.Fatal(err)
	}
	if got, _ := lib.NamesOf("run-a"); !reflect.DeepEqual(got.Pins, map[int][]int{1: {3}}) {
		t.Errorf("after removing a pin: %v", got.Pins)
	}
}

func TestNamesRefuseBadInput(t *testing.T) {
	lib, src, m, file := naming(t)
	for text, c := range map[string]play.NameChange{
		"at most 60":                        {Slot: of(1), Name: of(strings.Repeat("ä", 10_000))},
		"control characters":                {Slot: of(1), Name: of("a\nb")},
		"slot 99 does not exist":            {Slot: of(99), Name: of("a")},
		"code 5000 does not exist":          {Slot: of(1), Code: of(5000), Name: of("a")},
		"is not a factor":                   {Factor: "colour", Name: of("a")},
		"not both":                          {Factor: "shape", Slot: of(1), Name: of("a")},
		"give the code to pin":              {Slot: of(1), Pin: of(true)},
		"give a name or pin":                {Slot: of(1)},
		"give a slot or a factor":           {Name: of("a")},
		"control characters; use a single ": {Slot: of(1), Name: of("a\xffb")},
	} {
		_, err := lib.Rename(m, src, []string{"shape"}, c)
		if !errors.As(err, new(model.Invalid)) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"slots":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := lib.Rename(m, src, nil, play.NameChange{Slot: of(1), Name: of("a")}); !errors.As(err, new(model.Invalid)) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("with a damaged file: %v", err)
	}
	if raw, _ := os.ReadFile(file); string(raw) != `{"slots":` {
		t.Errorf("the damaged file was replaced by %s", raw)
	}
	src.Run = ""
	if _, err := lib.Rename(m, src, nil, play.NameChange{Slot: of(1), Name: of("a")}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a model without a run: %v", err)
	}
	if n, err := lib.NamesOf("../run-a"); err != nil || len(n.Slots) > 0 {
		t.Errorf("an invalid run ID: %+v, %v", n, err)
	}
}

// If two tabs rename concurrently, both names are saved.
func TestNamesOfTwoTabs(t *testing.T) {
	lib, src, m, _ := naming(t)
	var tabs sync.WaitGroup
	for code := range 12 {
		tabs.Go(func() {
			if _, err := lib.Rename(m, src, nil, play.NameChange{Slot: of(code % 2), Code: of(code), Name: of("n")}); err != nil {
				t.Error(err)
			}
		})
	}
	tabs.Wait()
	if got, err := lib.Names(src); err != nil || len(got.Codes[0])+len(got.Codes[1]) != 12 {
		t.Errorf("%+v, %v", got, err)
	}
}
