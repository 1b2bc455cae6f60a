package views

import (
	"fmt"

	"slotscope/model"
)

// Delivery describes the delivery of an alert to the webhook; empty if it is not sent to one.
func Delivery(s model.Sending) string {
	switch s.State {
	case model.SendDone:
		return "Sent to the webhook."
	case model.SendFailed:
		return fmt.Sprintf("Not delivered to the webhook after %s: %s.", Plural(s.Tries, "attempt", "attempts"), s.Problem)
	case model.SendQueued:
		if s.Problem != "" {
			return fmt.Sprintf("Retrying the webhook (%s): %s.", Plural(s.Tries, "attempt", "attempts"), s.Problem)
		}
		return "Sending to the webhook."
	}
	return ""
}
