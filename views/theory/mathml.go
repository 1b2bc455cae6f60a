package theory

import (
	"strings"
	"unicode"
)

// atoms converts space-separated atoms to MathML, which browsers render and screen readers read: numbers, single letters in italics,
// words like log upright, everything else as operators.
func atoms(words string) string {
	var b strings.Builder
	for _, w := range strings.Fields(words) {
		b.WriteString(atom(w))
	}
	return b.String()
}

func atom(w string) string {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(w)
	switch first := []rune(w)[0]; {
	case unicode.IsDigit(first):
		return "<mn>" + escaped + "</mn>"
	case len(w) > 2 && w[0] < unicode.MaxASCII && unicode.IsLower(first): // log, min, det
		return `<mspace width="0.17em"/><mi>` + escaped + `</mi><mspace width="0.17em"/>`
	case unicode.IsLetter(first):
		return "<mi>" + escaped + "</mi>"
	}
	return `<mo stretchy="false">` + escaped + "</mo>"
}

func wrapRow(inner string) string    { return "<mrow>" + inner + "</mrow>" }
func paren(inner string) string      { return wrapRow("<mo>(</mo>" + inner + "<mo>)</mo>") } // grows with its content
func frac(over, under string) string { return "<mfrac>" + wrapRow(over) + wrapRow(under) + "</mfrac>" }
func sub(base, index string) string  { return "<msub>" + wrapRow(base) + wrapRow(index) + "</msub>" }
func sup(base, power string) string  { return "<msup>" + wrapRow(base) + wrapRow(power) + "</msup>" }
func under(base, beneath string) string {
	return "<munder>" + wrapRow(base) + wrapRow(beneath) + "</munder>"
}
func accented(base, accent string) string {
	return `<mover accent="true">` + wrapRow(base) + "<mo>" + accent + "</mo></mover>"
}

func subsup(base, index, power string) string {
	return "<msubsup>" + wrapRow(base) + wrapRow(index) + wrapRow(power) + "</msubsup>"
}

func equation(parts ...string) string {
	return `<math display="block">` + strings.Join(parts, "") + "</math>"
}

// formulas maps names to the paper's equations.
var formulas = func() map[string]string {
	one, two, m, d := atoms("1"), atoms("2"), atoms("m"), atoms("d")
	v := func(index string) string { return sub(atoms("v"), atoms(index)) }
	retrieval := sub(accented(atoms("v"), "~"), atoms("i"))
	overM := atoms("log") + paren(atoms("1 +")+frac(one, m))
	block := sub(atoms("Σ"), atoms("i j"))
	norm := func(inner string) string { return atoms("‖") + inner + atoms("‖") }
	bound := atoms("(") + v("j") + atoms("⊗") + v("i") + atoms(")")
	return map[string]string{
		"capacity":  equation(atoms("I ( x ;"), accented(atoms("z"), "^"), atoms(") ≤ min"), paren(atoms("m ·")+frac(d, two)+overM+atoms(", m log k"))),
		"least-d":   equation(atoms("d ≥"), frac(atoms("2 R"), m+overM)),
		"least-k":   equation(atoms("k ≥"), sup(atoms("e"), atoms("R / m"))),
		"retrieval": equation(retrieval, atoms("= ( 1 + ξ )"), v("i"), atoms("+"), sub(atoms("η"), atoms("i")), atoms("+"), under(atoms("∑"), atoms("l ≠ i")), subsup(atoms("λ"), atoms("i"), atoms("( l )"))),
		"snr":       equation(atoms("SNR ="), frac(atoms("1 / d"), atoms("m / d")), atoms("="), frac(one, m)),
		"block":     equation(sub(atoms("(")+block+atoms(")"), atoms("a b")), atoms("="), frac(one, d), sub(bound, atoms("a + b"))),
		"frobenius": equation(subsup(norm(block), atoms("F"), two), atoms("="), frac(one, d), sup(norm(v("j")+atoms("⊗")+v("i")), two)),
		"operator": equation(sub(norm(block), atoms("op")), atoms("="), frac(one, d), under(atoms("max"), atoms("ω")),
			atoms("|"), sub(accented(atoms("v"), "^"), atoms("j ω")), atoms("| |"), sub(accented(atoms("v"), "^"), atoms("i ω")), atoms("|")),
		"exact": equation(under(atoms("∑"), atoms("i")), atoms("I ("), retrieval, atoms(";"), sub(accented(atoms("V"), "~"), atoms("< i")), atoms("| x ) = −"), frac(one, two), atoms("log det ( I + M )")),
		"bound": equation(atoms("≤"), frac(subsup(norm(atoms("M")), atoms("F"), two), atoms("4 ( 1 −")+sub(norm(atoms("M")), atoms("op"))+sup(atoms(")"), two)),
			atoms("= O"), paren(frac(sup(m, two), sup(atoms("τ"), atoms("4"))+d))),
	}
}()
