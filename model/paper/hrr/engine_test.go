package hrr_test

import (
	"testing"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute"
)

// engine returns the engine that every machine has.
func engine(t testing.TB) backends.Backend {
	t.Helper()
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return e.Backend
}
