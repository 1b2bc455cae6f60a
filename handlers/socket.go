package handlers

import "errors"

// TimedOut reports whether err is a deadline of a connection; gorilla's websocket wraps the net package's error without exposing it.
func TimedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
