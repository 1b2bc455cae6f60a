package model

import (
	"errors"
	"sort"
	"strings"
)

var (
	// ErrNotFound is wrapped by errors for a run, dataset, checkpoint or entry that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict is wrapped by errors for actions that the current state does not allow, such as resuming a live run.
	ErrConflict = errors.New("conflict")
)

// Invalid lists the problems of an input, one sentence per field; the key "" holds a problem of the whole input.
type Invalid map[string]string

// Error joins the sentences, sorted by field.
func (v Invalid) Error() string {
	fields := make([]string, 0, len(v))
	for f := range v {
		fields = append(fields, f)
	}
	sort.Strings(fields)
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = v[f]
		if f != "" {
			parts[i] = f + ": " + v[f]
		}
	}
	return strings.Join(parts, "; ")
}

// OrNil returns v as an error, or nil if v is empty.
func (v Invalid) OrNil() error {
	if len(v) == 0 {
		return nil
	}
	return v
}
