package wandb

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"slotscope/model/expect"
)

// logOf lays out records in LevelDB's format.
func logOf(records ...[]byte) []byte {
	b := []byte(magic)
	for _, content := range records {
		for begun := false; ; begun = true {
			left := blockSize - len(b)%blockSize
			if left < headSize {
				b = append(b, make([]byte, left)...)
				left = blockSize
			}
			n := min(len(content), left-headSize)
			kind := byte(middle)
			switch whole := n == len(content); {
			case whole && !begun:
				kind = fullRecord
			case whole:
				kind = last
			case !begun:
				kind = first
			}
			sum := crc32.Update(crc32.ChecksumIEEE([]byte{kind}), crc32.IEEETable, content[:n])
			b = binary.LittleEndian.AppendUint32(b, sum)
			b = binary.LittleEndian.AppendUint16(b, uint16(n))
			b = append(append(b, kind), content[:n]...)
			content = content[n:]
			if kind == fullRecord || kind == last {
				break
			}
		}
	}
	return b
}

func message(field protowire.Number, content ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}

func text(field protowire.Number, s string) []byte { return message(field, []byte(s)...) }

func item(key, value string) []byte {
	return message(1, append(text(1, key), text(16, value)...)...)
}

func row(step int, values ...string) []byte {
	b := item("_step", fmt.Sprint(step))
	for i := 0; i < len(values); i += 2 {
		b = append(b, item(values[i], values[i+1])...)
	}
	return message(historyField, b...)
}

func sample() []byte {
	long := "\"" + strings.Repeat("x", 3*blockSize) + "\"" // a record over several blocks
	records := [][]byte{
		message(runField, append(append(text(1, "abc"), text(8, "lively-sun-1")...), message(4, item("lr", "0.001")...)...)...),
		message(configField, item("model", `{"value": "resnet"}`)...),
		row(0, "loss", "2.5", "_timestamp", "1700000000.25", "note", long),
	}
	for step := 1; step < 2000; step++ {
		records = append(records, row(step, "loss", fmt.Sprint(1/float64(step))))
	}
	nested := message(1, append(append(text(2, "val"), text(2, "acc")...), text(16, "NaN")...)...)
	records = append(records, message(historyField, append(nested, message(2, 8, 144, 78)...)...), message(exitField, 8, 1))
	return logOf(records...)
}

func write(t testing.TB, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run-abc.wandb")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	var rows []Row
	l, err := Read(write(t, append(sample(), make([]byte, 40)...)), func(r Row) { rows = append(rows, r) }) // zeros: not written yet
	if err != nil || len(rows) != 2001 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if l.Name != "lively-sun-1" || l.ID != "abc" || l.Config["lr"] != 0.001 || l.Config["model"] != "resnet" || !l.Ended || !l.Failed {
		t.Errorf("%+v", l)
	}
	if r := rows[0]; r.Step != 0 || r.Seconds != 1700000000.25 || len(r.Values) != 1 || r.Values["loss"] != 2.5 {
		t.Errorf("%+v", r)
	}
	if r := rows[1999]; r.Step != 1999 || r.Values["loss"] != 1.0/1999 {
		t.Errorf("%+v", r)
	}
	if r := rows[2000]; r.Step != 10000 || !math.IsNaN(r.Values["val/acc"]) {
		t.Errorf("%+v", r)
	}
}

// TestGrowing: all complete records of a growing file are read, wherever it ends.
func TestGrowing(t *testing.T) {
	raw, before := sample(), 0
	for cut := len(magic); cut < len(raw); cut += 1711 {
		n := 0
		if _, err := Read(write(t, raw[:cut]), func(Row) { n++ }); err != nil || n < before {
			t.Fatalf("cut at %d: %d rows after %d, %v", cut, n, before, err)
		}
		before = n
	}
}

func TestDamaged(t *testing.T) {
	raw := sample()
	for _, at := range []int{0, 5, 8, 40, len(raw) / 2} {
		damaged := append([]byte{}, raw...)
		damaged[at] ^= 1
		if _, err := Read(write(t, damaged), func(Row) {}); err == nil {
			t.Errorf("a changed bit in byte %d is not detected", at)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Add(logOf(row(1, "loss", "1")))
	path := filepath.Join(f.TempDir(), "run.wandb")
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, b := range [][]byte{raw, logOf(raw)} { // as is, and with valid checksums
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			expect.Frugal(t, len(b), 64, func() { _, _ = Read(path, func(Row) {}) })
		}
	})
}
