package handlers

import "errors"

// TimedOut says whether a connection's deadline has passed; gorilla's websocket hides the error of the net package that says so.
func TimedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
