package whole

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"slotscope/model/expect"
)

// TestTempOfKilledProcess: the folder of a killed process is removed, but not while the process is alive; other folders are kept.
func TestTempOfKilledProcess(t *testing.T) {
	if os.Getenv("WHOLE_TEMP_CHILD") != "" {
		dir, _, err := Temp()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "upload"), []byte("half"), 0o600)
		}
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(dir + "\n")
		time.Sleep(time.Minute)
		return
	}
	place := t.TempDir()
	t.Setenv("TMPDIR", place)
	past := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"slotscope-tmp-new", "slotscope-tmp-old", "another"} { // without a lock
		if err := os.Mkdir(filepath.Join(place, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(place, "slotscope-tmp-old"), past, past); err != nil {
		t.Fatal(err)
	}
	own, remove, err := Temp()
	if err != nil {
		t.Fatal(err)
	}
	dir, kill := expect.Child(t, "WHOLE_TEMP_CHILD=1")
	left := func(when string, want ...string) {
		t.Helper()
		if err := CleanTemp(); err != nil {
			t.Error(err)
		}
		got := map[string]bool{}
		for _, name := range names(t, place) {
			got[filepath.Join(place, name)] = true
		}
		for _, path := range want {
			if !got[path] {
				t.Errorf("%s: %s is gone", when, path)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: left %v, want %v", when, got, want)
		}
	}
	young, another := filepath.Join(place, "slotscope-tmp-new"), filepath.Join(place, "another")
	left("while all are alive", own, dir, young, another)
	kill()
	left("after a kill", own, young, another)
	remove()
	left("after the end", young, another)
}
