// Package host is what operating systems do differently: locks on files, process groups, room on a disk, what a process has used.
package host

import "errors"

// ErrLocked says that another open file holds a lock that rules this one out.
var ErrLocked = errors.New("locked by another")
