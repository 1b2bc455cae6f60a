package play

import (
	"fmt"
	"strconv"
	"strings"

	"slotscope/model"
)

// FormatCodes formats a tuple for use in URLs: "17.301.4".
func FormatCodes(codes []int) string {
	b := make([]byte, 0, 4*len(codes))
	for i, c := range codes {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return string(b)
}

// ParseCodes parses a tuple in the format of FormatCodes. It does not check whether a model has these codes; see Model.Check.
func ParseCodes(text string) ([]int, error) {
	if text == "" {
		return nil, model.Invalid{"codes": "missing; give whole numbers separated by dots, such as 17.301.4"}
	}
	parts := strings.Split(text, ".")
	if len(parts) > maxSlots {
		return nil, model.Invalid{"codes": fmt.Sprintf("got %d codes; models have at most %d slots", len(parts), maxSlots)}
	}
	codes := make([]int, len(parts))
	for i, p := range parts {
		c, err := strconv.Atoi(p)
		if err != nil || c < 0 || strconv.Itoa(c) != p {
			return nil, model.Invalid{"codes": fmt.Sprintf("slot %d: %q is not a code; use a whole number ≥ 0", i, p)}
		}
		codes[i] = c
	}
	return codes, nil
}

// maxSlots is the largest m in a configuration.
const maxSlots = 64

// Check returns a model.Invalid if a tuple does not have m codes, or naming the first code that the model does not have.
func (m *Model) Check(tuples ...[]int) error {
	for _, t := range tuples {
		if len(t) != m.Config.M {
			return model.Invalid{"codes": fmt.Sprintf("got %d codes; this checkpoint has %d slots", len(t), m.Config.M)}
		}
		for i, c := range t {
			if err := m.CheckCode(i, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckCode returns a model.Invalid if there is no slot i or no code c.
func (m *Model) CheckCode(i, c int) error {
	if i < 0 || i >= m.Config.M {
		return model.Invalid{"slot": fmt.Sprintf("slot %d does not exist; this checkpoint has slots 0–%d", i, m.Config.M-1)}
	}
	if c < 0 || c >= m.Codes() {
		return model.Invalid{"codes": fmt.Sprintf("slot %d: code %d does not exist; this checkpoint has codes 0–%d", i, c, m.Codes()-1)}
	}
	return nil
}

// ParseOrder parses the order in which the strip swaps slots: each slot once, such as "3.0.1". The default is 0, 1, … m−1.
func ParseOrder(text string, m int) ([]int, error) {
	order := make([]int, m)
	for i := range order {
		order[i] = i
	}
	if text == "" {
		return order, nil
	}
	given, err := ParseCodes(text)
	if err != nil || len(given) != m {
		return nil, model.Invalid{"order": fmt.Sprintf("%q does not list each of the %d slots once, such as %s", text, m, FormatCodes(order))}
	}
	seen := make([]bool, m)
	for _, i := range given {
		if i < 0 || i >= m || seen[i] {
			return nil, model.Invalid{"order": fmt.Sprintf("%q does not list each of the %d slots once, such as %s", text, m, FormatCodes(order))}
		}
		seen[i] = true
	}
	return given, nil
}
