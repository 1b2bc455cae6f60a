// Package regular opens regular files.
package regular

import (
	"errors"
	"fmt"
	"os"
)

// Open opens a regular file and passes it and its size to read, whose result takes ownership. If read fails, the file is closed and the
// error names it. Pipes and devices are rejected without opening them, since that might block.
func Open[T any](path string, read func(file *os.File, size int64) (T, error)) (T, error) {
	var none T
	stat, err := os.Stat(path)
	if err != nil {
		return none, err
	}
	if !stat.Mode().IsRegular() {
		return none, fmt.Errorf("%s: %w", path, errors.New("not a regular file"))
	}
	file, err := os.Open(path)
	if err != nil {
		return none, err
	}
	out, err := read(file, stat.Size())
	if err != nil {
		_ = file.Close()
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
