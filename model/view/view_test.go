package view

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slotscope/model"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestTwoTabs: when two tabs edit one view, the second save returns a conflict and nothing is lost.
func TestTwoTabs(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir)
	first, err := s.Save(" best  runs ", "q=infom%3E0.7", 0, now)
	if err != nil || first.Name != "best runs" || first.Version != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := s.Save("best runs", "q=infom%3E0.8", first.Version, now.Add(time.Minute))
	if err != nil || second.Version != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	for say, do := range map[string]func() error{
		`view "best runs" was changed at 2026-03-01 12:01:00 UTC, after you opened it; open it again, or save yours under another name: conflict`: func() error {
			_, err := s.Save("best runs", "q=mine", first.Version, now)
			return errors.Join(err)
		},
		`view "best runs" already exists; choose another name, or open that view and save it: conflict`: func() error { _, err := s.Save("best runs", "", 0, now); return err },
		`view "gone" was deleted after you opened it; save it under another name: conflict`:             func() error { _, err := s.Save("gone", "", 3, now); return err },
		`no saved view "gone": not found`: func() error { return s.Delete("gone", 1) },
	} {
		if err := do(); err == nil || err.Error() != say {
			t.Errorf("%v\nwant %s", err, say)
		}
	}
	if err := s.Delete("best runs", 1); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleted an outdated version: %v", err)
	}
	all, err := Open(dir).List() // as another server
	if err != nil || len(all) != 1 || all[0] != second {
		t.Errorf("%+v, %v", all, err)
	}
	if err := s.Delete("best runs", 2); err != nil {
		t.Error(err)
	}
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestViewsThatAreRefused(t *testing.T) {
	s := Open(t.TempDir())
	for name, address := range map[string]string{"": "", "two\nlines": "", strings.Repeat("x", 61): "", "long": strings.Repeat("x", longest+1), "\xff": ""} {
		var bad model.Invalid
		if _, err := s.Save(name, address, 0, now); name != "two\nlines" && !errors.As(err, &bad) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for i := range Most {
		if _, err := s.Save(fmt.Sprint("view ", i), "", 0, now); err != nil && i != Most-1 {
			t.Fatal(err)
		}
	}
	if _, err := s.Save("one more", "", 0, now); err == nil {
		t.Error("saved more views than the limit")
	}
	if err := os.WriteFile(filepath.Join(s.dir, fileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(); err == nil || !strings.Contains(err.Error(), "views.json in the data folder is damaged") {
		t.Error(err)
	}
}
