//go:build cgo

package db

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mattn/go-sqlite3" // also the driver "sqlite3"
)

// named adds the operating system's error to SQLite's for a full and for a read-only disk, so that callers need not know SQLite.
func named(err error) error {
	var lite sqlite3.Error
	if !errors.As(err, &lite) {
		return err
	}
	switch lite.Code {
	case sqlite3.ErrFull:
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	case sqlite3.ErrReadonly:
		return fmt.Errorf("%w: %w", err, syscall.EROFS)
	}
	return err
}
