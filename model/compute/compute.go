// Package compute is the one place that chooses an engine.
package compute

import (
	"github.com/gomlx/gomlx/backends"
)

// Engine is a GoMLX backend, with what was tried before it and why it was taken.
type Engine struct {
	backends.Backend
	Name    string // "cpu", "xla:cuda", "xla:cpu", "go"
	Why     string // one sentence for logs and pages
	Threads int    // of the host that compute; 0 where a device does
}
