package model

import (
	"errors"
	"sort"
	"strings"
)

var (
	// ErrNotFound is in the chain of errors for a run, dataset, checkpoint or entry that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict is in the chain of errors for what cannot be done in the present state, such as resuming a live run.
	ErrConflict = errors.New("conflict")
)

// Invalid lists what is wrong with an input, a sentence per field; the key "" is for the input as a whole.
type Invalid map[string]string

// Error joins the sentences in order of field.
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

// OrNil returns v as an error, or nil where v lists nothing.
func (v Invalid) OrNil() error {
	if len(v) == 0 {
		return nil
	}
	return v
}
