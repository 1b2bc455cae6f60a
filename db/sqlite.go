//go:build cgo

package db

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mattn/go-sqlite3" // also the driver "sqlite3"
)

// named wraps SQLite's errors for a full and a read-only disk with the operating system's, so that callers do not depend on SQLite.
func named(err error) error {
	var lite sqlite3.Error
	if !errors.As(err, &lite) {
		return err
	}
	switch lite.Code {
	case sqlite3.ErrFull:
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	case sqlite3.ErrIoErr:
		if lite.SystemErrno == syscall.ENOSPC || lite.SystemErrno == syscall.EDQUOT {
			return fmt.Errorf("%w: %w", err, lite.SystemErrno)
		}
	case sqlite3.ErrReadonly:
		return fmt.Errorf("%w: %w", err, syscall.EROFS)
	}
	return err
}
