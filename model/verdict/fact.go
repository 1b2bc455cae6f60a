package verdict

import (
	"fmt"
	"math"
	"strconv"
)

// steady is the relative change of the median perplexity up to which it counts as steady.
const steady = 0.05

// facts returns the facts that the page shows with the verdict.
func (p Progress) facts() []string {
	var all []string
	for _, fact := range []string{p.entriesFact(), p.latentsFact(), p.comparedFact(infoM), p.ownedFact(), p.comparedFact(psnr)} {
		if fact != "" {
			all = append(all, fact)
		}
	}
	return all
}

func (p Progress) entriesFact() string {
	in, ok := newest(finites(p.Series[used]))
	if !ok || !p.Config.Discrete() {
		return ""
	}
	text := fmt.Sprintf("%s of %s entries in use", count(int(in.Value)), count(p.Config.Entries()))
	if s, ok := newest(finites(p.Series[window])); ok {
		text += ", perplexity " + number(s.Value)
		if trend := p.trend(); trend != "" {
			text += ", " + trend
		}
	}
	return text
}

// trend compares the median perplexity of the last tenth of the steps with that of the 30% of the steps before it.
func (p Progress) trend() string {
	s := finites(p.Series[window])
	if len(s) < 10 || p.last() < firstSteps {
		return ""
	}
	last := s[len(s)-1].Step
	var before, now []float64
	for _, x := range s {
		switch {
		case 10*x.Step > 9*last:
			now = append(now, x.Value)
		case 10*x.Step > 6*last:
			before = append(before, x.Value)
		}
	}
	if len(before) == 0 || len(now) == 0 {
		return ""
	}
	switch was, is := median(before), median(now); {
	case is > was*(1+steady):
		return "rising"
	case is < was*(1-steady):
		return "falling"
	}
	return "steady"
}

func (p Progress) latentsFact() string {
	s, ok := newest(finites(p.Series[active]))
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s of %s latents active", number(s.Value), count(p.Config.M))
}

func (p Progress) ownedFact() string {
	s, ok := newest(finites(p.Series[owned]))
	if !ok {
		return ""
	}
	share, ok := newest(finites(p.Series[coverage]))
	if !ok || share.Value <= 0 {
		return fmt.Sprintf("%s factors own a slot", number(s.Value))
	}
	return fmt.Sprintf("%s of %s factors own a slot", number(s.Value), count(int(math.Round(s.Value/share.Value))))
}

func (p Progress) comparedFact(name string) string {
	s, ok := newest(finites(p.Series[name]))
	if !ok {
		return ""
	}
	text := label(name) + " " + amount(name, s.Value) + " at step " + count(s.Step)
	others := p.others(name)
	if len(others) == 0 {
		return text
	}
	above := 0
	for _, v := range others {
		if s.Value > v {
			above++
		}
	}
	noun := "earlier runs"
	if len(others) == 1 {
		noun = "earlier run"
	}
	return fmt.Sprintf("%s, above %d of %d %s", text, above, len(others), noun)
}

func label(name string) string {
	return map[string]string{psnr: "PSNR", infoM: "InfoM"}[name]
}

func amount(name string, v float64) string {
	if math.Abs(v) >= 1e6 {
		return strconv.FormatFloat(v, 'g', 3, 64) // a diverged run; as a decimal it could have up to 300 digits
	}
	if name == psnr {
		return strconv.FormatFloat(v, 'f', 2, 64) + " dB"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// number formats a value with three significant digits, without trailing zeros.
func number(v float64) string {
	if math.Abs(v) >= 1000 {
		return count(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// count formats a whole number with thousands separators.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		if s[i-1] != '-' {
			s = s[:i] + "," + s[i:]
		}
	}
	return s
}
