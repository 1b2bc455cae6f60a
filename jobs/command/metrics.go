package command

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"slotscope/model"
	"slotscope/model/measure/metric"
	"slotscope/model/measure/metric/input"
)

type metricsCommand struct {
	File        string `arg:"" help:"latents and factors, or only latents if there is a second file"`
	FactorsFile string `arg:"" optional:"" help:"file of factors"`
	Codes       bool   `help:"treat the latents as codes, overriding the file"`
	Numbers     bool   `help:"treat the latents as numbers, overriding the file"`
	Latents     string `placeholder:"NAMES" help:"comma-separated arrays or columns of latents; z also matches z0, z_1, …; default: codes, latents or z"`
	Factors     string `placeholder:"NAMES" help:"comma-separated arrays or columns of factors; default: factors, y or labels"`
	Seed        int64  `default:"0" placeholder:"N" help:"seed of random forests, splits and shuffles"`
	Trees       int    `default:"100" placeholder:"N" help:"trees per random forest"`
	jsonFlag
}

func (c *metricsCommand) Run(ctx context.Context, env environment) error {
	names := []string{c.File}
	if c.FactorsFile != "" {
		names = append(names, c.FactorsFile)
	}
	file := strings.Join(names, ", ")
	as, err := taken(c.Codes, c.Numbers)
	if err == nil && (c.Trees < 1 || c.Trees > 10000) {
		err = fmt.Errorf("%w: --trees is %d; choose a value from 1 to 10,000", errUsage, c.Trees)
	}
	if err != nil {
		return err
	}
	table, extra, err := input.ReadFiles(names, input.Pick{Latents: input.Names(c.Latents), Factors: input.Names(c.Factors), As: as})
	if err != nil {
		return err
	}
	measured, err := measureTable(ctx, env, table, extra, metric.Options{Seed: c.Seed, Trees: c.Trees})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if c.JSON {
		return printJSON(env.out, measured)
	}
	fmt.Fprintf(env.out, "%s: ", file)
	if err := printMetrics(env.out, measured.Metrics); err != nil {
		return err
	}
	return printField(env.out, measured.Field)
}

// taken returns how the two flags say to read the latents.
func taken(codes, numbers bool) (input.As, error) {
	switch {
	case codes && numbers:
		return input.Found, fmt.Errorf("%w: --codes and --numbers cannot be combined", errUsage)
	case codes:
		return input.Codes, nil
	case numbers:
		return input.Numbers, nil
	}
	return input.Found, nil
}

// printMetrics prints the scores as tables for a terminal.
func printMetrics(out io.Writer, m model.Metrics) error {
	kind := "numbers"
	if m.Discrete {
		kind = "codes"
	}
	fmt.Fprintf(out, "%d rows, %d latents (%s), %d factors\n", m.Rows, m.Latents, kind, len(m.Factors))
	for i, k := range m.Values {
		if k < 2 {
			fmt.Fprintf(out, "%s has a single value in these rows and is left out.\n", m.Factors[i])
		}
	}
	fmt.Fprintf(out, "\nInfoM  %s  modularity: each latent encodes one factor\n", shown(m.InfoM))
	fmt.Fprintf(out, "InfoE  %s  explicitness: a linear classifier predicts the factors; %s on held-out rows, %s with shuffled rows\n",
		shown(m.InfoE), shown(m.InfoEHeldOut), shown(m.InfoEShuffled))
	fmt.Fprintf(out, "InfoC  %s  compactness: each factor is encoded by one latent\n", shown(m.InfoC))
	if m.InfoEShuffled.Defined() && m.InfoEShuffled > saturated {
		fmt.Fprintln(out, "InfoE is not informative here: shuffled codes also score high. Use the value on held-out rows instead.")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	printForests(table, m)
	printRelations(table, m)
	return table.Flush()
}

// saturated is the shuffled InfoE above which InfoE needs a warning.
const saturated = 0.25

func printForests(w io.Writer, m model.Metrics) {
	fmt.Fprintf(w, "\nDCI of random forests\tD\tI\tC\t\n")
	row := func(view string, s model.DCIScore) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", view, shown(s.D), shown(s.I), shown(s.C))
	}
	if m.Discrete {
		row("one-hot codes, as in the paper", m.DCI.OneHot)
		row("one-hot, summed by slot", m.DCI.SlotSum)
		row("slots as numbers", m.DCI.Slots)
		return
	}
	row("latents as numbers", m.DCI.Slots)
}

// printRelations prints the matrix of mutual information, one row per factor, with each latent's number of codes below.
func printRelations(w io.Writer, m model.Metrics) {
	fmt.Fprint(w, "\nI(s; z) / H(s)\t")
	for j := range m.Latents {
		fmt.Fprintf(w, "%d\t", j)
	}
	fmt.Fprint(w, "InfoE\theld out\t\n")
	for i, name := range m.Factors {
		fmt.Fprint(w, oneLine(name), "\t")
		for _, v := range m.NMI[i] {
			fmt.Fprint(w, shortly(v), "\t")
		}
		fmt.Fprintf(w, "%s\t%s\t\n", shortly(m.InfoEFactors[i]), shortly(m.InfoEHeldOutFactors[i]))
	}
	if m.Discrete {
		fmt.Fprint(w, "codes in use\t")
		for _, k := range m.Codes {
			fmt.Fprintf(w, "%d\t", k)
		}
		fmt.Fprint(w, "\t\t\n")
	}
}

// oneLine replaces unprintable characters, so that names from files, which may contain anything, cannot break a table.
func oneLine(name string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, name)
}

func shown(s model.Score) string { return scoreText(s, "%.4f") }

func shortly(s model.Score) string { return scoreText(s, "%.2f") }

func scoreText(s model.Score, form string) string {
	if !s.Defined() {
		return "–"
	}
	text := fmt.Sprintf(form, float64(s))
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-") // shows −1e-17 as 0
	}
	return text
}
