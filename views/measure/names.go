package measure

import (
	"math"
	"strconv"
	"strings"

	"slotscope/model/measure/figure"
)

// mostNames is the maximum number of codes listed per slot.
const mostNames = 12

func (m Measured) names() []SlotNames {
	u, metrics := m.usage(), m.metrics()
	if u == nil || metrics == nil {
		return nil
	}
	var all []SlotNames
	for i, n := range u.Names {
		s := SlotNames{Slot: i, Called: m.Called.Slots[i]}
		if n.Factor >= 0 && n.Factor < len(metrics.Factors) {
			factor := metrics.Factors[n.Factor]
			s.Factor = plainNames([]string{factor})[0]
			for _, c := range n.Codes[:min(len(n.Codes), mostNames)] {
				s.Codes = append(s.Codes, NamedCode{Called: m.Called.Codes[i][c.Code], Code: c.Code, Value: m.valueName(factor, c.Value), Share: percent(c.Share), Count: c.Count})
			}
			s.More = len(n.Codes) - len(s.Codes)
		}
		all = append(all, s)
	}
	return all
}

// valueName returns the name of a factor's value, or its number. Hues, 0 to 1 around the colour circle, get colour names too.
func (m Measured) valueName(factor string, value int) string {
	if names := m.Values[factor]; value >= 0 && value < len(names) {
		return names[value] + hueName(factor, names[value])
	}
	return figure.Number(float64(value))
}

// hues names each tenth of the colour circle.
var hues = []string{"red", "orange", "yellow", "green", "sea green", "cyan", "blue", "indigo", "purple", "pink"}

func hueName(factor, value string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !strings.HasSuffix(factor, "hue") || !(v >= 0 && v < 1) {
		return ""
	}
	return " " + hues[int(math.Round(10*v))%len(hues)]
}

// plainNames returns the display names of factors.
func plainNames(names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = strings.ReplaceAll(n, "_", " ")
	}
	return all
}
