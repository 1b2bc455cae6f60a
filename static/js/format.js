// Package-wide helpers for small numbers shown to people.
