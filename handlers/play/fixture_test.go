package play_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/handlers/handlertest"
	playpage "slotscope/handlers/play"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/play"
	"slotscope/static"
)

// shared holds code counts of the models and frozen pages, which are slow to create. Tests share them, and the last one removes them.
var shared struct {
	dir    string // "cache" of every data folder, and frozen pages
	frozen map[string]frozenFile
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slotscope-play-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	shared.dir, shared.frozen = dir, map[string]frozenFile{}
	return handlertest.Main(m)
}

// shareCounts links a data folder's cache to one shared by all tests, which is safe because its keys are hashes of the models.
func shareCounts(t *testing.T, dir string) {
	t.Helper()
	cache := filepath.Join(shared.dir, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "cache")); err == nil {
		return
	}
	if err := os.Symlink(cache, filepath.Join(dir, "cache")); err != nil {
		t.Fatal(err)
	}
}

// frozenFile is a frozen page of some models.
type frozenFile struct {
	path string
	keys []string
}

// frozenOf returns a frozen page of models: untrained ones by model name, or "tiny", which is trained.
func frozenOf(t *testing.T, names ...string) frozenFile {
	t.Helper()
	name := strings.Join(names, "+")
	if have, ok := shared.frozen[name]; ok {
		return have
	}
	f, keys := freezer(t, names...)
	file := frozenFile{filepath.Join(shared.dir, name+".html"), keys}
	page, err := os.Create(file.path)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if err := f.Freeze(t.Context(), keys, page); err != nil {
		t.Fatal(err)
	}
	shared.frozen[name] = file
	return file
}

// freezer returns a Freezer for a folder with a run of each model, and their keys.
func freezer(t *testing.T, models ...string) (f playpage.Freezer, keys []string) {
	t.Helper()
	dir := t.TempDir()
	shareCounts(t, dir)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	f = playpage.Freezer{Library: library, Static: static.Files(), Revision: "test"}
	for _, name := range models {
		if name == "tiny" {
			keys = append(keys, handlertest.WriteTiny(t, dir))
			continue
		}
		handlertest.WriteRunOf(t, dir, name)
		src, err := f.Library.Find(handlertest.RunID)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "runs", handlertest.RunID), filepath.Join(dir, "runs", handlertest.RunID+"-"+name)); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, src.Key)
	}
	return f, keys
}
