package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"slotscope/model"
)

// SendFile sends a file; browsers revalidate it on each use.
func SendFile(w http.ResponseWriter, r *http.Request, path, contentType string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s no longer exists: %w", filepath.Base(path), model.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("sending a file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("sending %s: %w", path, err)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "private, no-cache")
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// AsFile makes the browser save the response as name.
func AsFile(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

// SendBytes sends bytes with a media type and supports range requests.
func SendBytes(w http.ResponseWriter, r *http.Request, kind string, raw []byte) error {
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
	return nil
}
