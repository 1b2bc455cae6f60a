package views

import (
	"fmt"

	"slotscope/model"
)

// Delivery is how the delivery of an alert to the webhook stands; empty where no webhook is to get it.
func Delivery(s model.Sending) string {
	switch s.State {
	case model.SendDone:
		return "Sent to the webhook."
	case model.SendFailed:
		return fmt.Sprintf("Not delivered to the webhook after %s: %s.", Plural(s.Tries, "try", "tries"), s.Problem)
	case model.SendQueued:
		if s.Problem != "" {
			return fmt.Sprintf("Trying the webhook again (%s): %s.", Plural(s.Tries, "try", "tries"), s.Problem)
		}
		return "Being sent to the webhook."
	}
	return ""
}
