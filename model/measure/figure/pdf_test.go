package figure_test

import (
	"bytes"
	"regexp"
	"testing"
)

var mediaBox = regexp.MustCompile(`/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]`)

// TestPDF: each figure is one page of its size with its images and fonts, and the bytes are reproducible.
func TestPDF(t *testing.T) {
	for _, f := range figures() {
		raw, err := f.PDF()
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if !bytes.HasPrefix(raw, []byte("%PDF-1.")) || !bytes.HasSuffix(bytes.TrimSpace(raw), []byte("%%EOF")) || bytes.Count(raw, []byte("/Type /Page\n")) != 1 {
			t.Errorf("%s: not one page: %.40q", f.Name, raw)
		}
		if !mediaBox.Match(raw) {
			t.Errorf("%s: no size", f.Name)
		}
		if again, _ := f.PDF(); !bytes.Equal(raw, again) {
			t.Errorf("%s: different bytes the second time", f.Name)
		}
	}
	raw, err := sheet().Draw().PDF()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte("/Subtype /Image")); n != 1 {
		t.Errorf("a sheet has %d images, want a single merged image", n)
	}
	if n := bytes.Count(raw, []byte("/Type /FontDescriptor")); n != 2 {
		t.Errorf("%d fonts are embedded", n)
	}
}
