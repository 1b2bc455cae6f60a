package report

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
)

// SumsName is the name of the file with the SHA-256 checksums of all other files.
const SumsName = "SHA256SUMS"

// Sums writes SHA256SUMS in the format of sha256sum -c.
func (r *Report) Sums(w io.Writer) error {
	var sums []string
	files, err := r.All()
	if err != nil {
		return err
	}
	for i, f := range files {
		r.Begin(f.Name, i+1, len(files))
		line, err := copySummed(io.Discard, f)
		if err != nil {
			return err
		}
		sums = append(sums, line)
	}
	return writeSums(w, sums)
}

// copySummed writes a file and returns its line for SHA256SUMS.
func copySummed(w io.Writer, f File) (line string, err error) {
	hash := sha256.New()
	if err := f.Write(io.MultiWriter(w, hash)); err != nil {
		return "", fmt.Errorf("writing %s: %w", f.Name, err)
	}
	return fmt.Sprintf("%x  %s\n", hash.Sum(nil), f.Name), nil
}

func writeSums(w io.Writer, sums []string) error {
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	_, err := io.WriteString(w, strings.Join(sums, ""))
	return err
}

// zipped is the modification time of every file in an archive: a constant, so that equal reports give identical archives.
var zipped = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Zip streams an archive of all files, sorted by name, followed by SHA256SUMS.
func (r *Report) Zip(w io.Writer) error {
	return r.ZipBeside(w, func(_ string, write func(io.Writer) error) error { return write(io.Discard) })
}

// ZipBeside is Zip for callers that also keep the files separately: each file is generated once, and keep chooses where write copies it.
func (r *Report) ZipBeside(w io.Writer, keep func(name string, write func(io.Writer) error) error) error {
	files, err := r.All()
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) }) // curves of long runs are hundreds of megabytes
	var sums []string
	add := func(f File) error {
		method := zip.Deflate
		if f.Type == "application/zip" {
			method = zip.Store
		}
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: f.Name, Method: method, Modified: zipped})
		if err != nil {
			return err
		}
		return keep(f.Name, func(own io.Writer) error {
			line, err := copySummed(io.MultiWriter(own, entry), f)
			sums = append(sums, line)
			return err
		})
	}
	for i, f := range files {
		r.Begin(f.Name, i+1, len(files)+1)
		if err := add(f); err != nil {
			return err
		}
	}
	r.Begin(SumsName, len(files)+1, len(files)+1)
	listed := slices.Clone(sums)
	if err := add(File{Name: SumsName, Write: func(w io.Writer) error { return writeSums(w, listed) }}); err != nil {
		return err
	}
	return archive.Close()
}
