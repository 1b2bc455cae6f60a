// Package host wraps features that differ between operating systems: file locks, process groups, disk space and resource usage.
package host

import "errors"

// ErrLocked is returned if another open file holds a conflicting lock.
var ErrLocked = errors.New("locked by another")
