package play

import (
	"fmt"
	"strconv"
	"strings"

	"slotscope/model"
)

// FormatCodes writes a tuple as it stands in addresses: "17.301.4".
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

// ParseCodes reads a tuple as addresses write it; whether a model has such codes, Check says.
func ParseCodes(text string) ([]int, error) {
	if text == "" {
		return nil, model.Invalid{"codes": "no codes are given; they are whole numbers joined by dots, as in 17.301.4"}
	}
	parts := strings.Split(text, ".")
	if len(parts) > maxSlots {
		return nil, model.Invalid{"codes": fmt.Sprintf("%d codes are given; no model has more than %d slots", len(parts), maxSlots)}
	}
	codes := make([]int, len(parts))
	for i, p := range parts {
		c, err := strconv.Atoi(p)
		if err != nil || c < 0 || strconv.Itoa(c) != p {
			return nil, model.Invalid{"codes": fmt.Sprintf("slot %d: %q is not a code, a whole number from 0", i, p)}
		}
		codes[i] = c
	}
	return codes, nil
}

// maxSlots is the largest m that a configuration may name.
const maxSlots = 64

// Check says which code of which slot the model does not have: a tuple is m codes from 0.
func (m *Model) Check(tuples ...[]int) error {
	for _, t := range tuples {
		if len(t) != m.Config.M {
			return model.Invalid{"codes": fmt.Sprintf("%d codes are given; this checkpoint has %d slots", len(t), m.Config.M)}
		}
		for i, c := range t {
			if err := m.CheckCode(i, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckCode says whether slot i can take code c.
func (m *Model) CheckCode(i, c int) error {
	if i < 0 || i >= m.Config.M {
		return model.Invalid{"slot": fmt.Sprintf("slot %d does not exist; this checkpoint has slots 0 to %d", i, m.Config.M-1)}
	}
	if c < 0 || c >= m.Codes() {
		return model.Invalid{"codes": fmt.Sprintf("slot %d: code %d does not exist; this checkpoint has codes 0 to %d", i, c, m.Codes()-1)}
	}
	return nil
}

// ParseOrder reads the order in which the strip swaps slots: every slot once, as in "3.0.1". Empty is 0, 1, … m−1.
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
		return nil, model.Invalid{"order": fmt.Sprintf("%q does not name each of the %d slots once, as %s does", text, m, FormatCodes(order))}
	}
	seen := make([]bool, m)
	for _, i := range given {
		if i < 0 || i >= m || seen[i] {
			return nil, model.Invalid{"order": fmt.Sprintf("%q does not name each of the %d slots once, as %s does", text, m, FormatCodes(order))}
		}
		seen[i] = true
	}
	return given, nil
}
