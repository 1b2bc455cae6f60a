package compute

import "fmt"

// Recovered, when deferred, turns a panic of graph-building code into an error that begins with doing.
func Recovered(doing string, err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%s: %w", doing, p)
	default:
		*err = fmt.Errorf("%s: %v", doing, p)
	}
}
