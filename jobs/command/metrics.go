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
	File        string `arg:"" help:"latents and factors, or with a second file latents alone: npz, npy, HDF5, MATLAB, Parquet, CSV or JSON"`
	FactorsFile string `arg:"" optional:"" help:"factors"`
	Codes       bool   `help:"take the latents for codes, whatever the file says"`
	Numbers     bool   `help:"take the latents for numbers, whatever the file says"`
	Latents     string `placeholder:"NAMES" help:"arrays or columns with latents, separated by commas; z stands for z0, z_1, … too; else codes, latents or z"`
	Factors     string `placeholder:"NAMES" help:"those with factors; else factors, y or labels"`
	Seed        int64  `default:"0" placeholder:"N" help:"seed of random forests, splits and shuffles"`
	Trees       int    `default:"100" placeholder:"N" help:"trees of each random forest"`
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
		err = fmt.Errorf("%w: --trees is %d; 1 to 10000 can be grown", errUsage, c.Trees)
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

// taken is what the two flags say of the latents.
func taken(codes, numbers bool) (input.As, error) {
	switch {
	case codes && numbers:
		return input.Found, fmt.Errorf("%w: --codes and --numbers exclude each other", errUsage)
	case codes:
		return input.Codes, nil
	case numbers:
		return input.Numbers, nil
	}
	return input.Found, nil
}

// printMetrics draws the scores as tables for a terminal.
func printMetrics(out io.Writer, m model.Metrics) error {
	kind := "numbers"
	if m.Discrete {
		kind = "codes"
	}
	fmt.Fprintf(out, "%d rows, %d latents (%s), %d factors\n", m.Rows, m.Latents, kind, len(m.Factors))
	for i, k := range m.Values {
		if k < 2 {
			fmt.Fprintf(out, "%s has a single value among these rows and is left out.\n", m.Factors[i])
		}
	}
	fmt.Fprintf(out, "\nInfoM  %s  modularity: a latent tells of one factor\n", shown(m.InfoM))
	fmt.Fprintf(out, "InfoE  %s  explicitness: a linear classifier reads the factors; %s on rows held out, %s with the rows shuffled\n",
		shown(m.InfoE), shown(m.InfoEHeldOut), shown(m.InfoEShuffled))
	fmt.Fprintf(out, "InfoC  %s  compactness: one latent tells of a factor\n", shown(m.InfoC))
	if m.InfoEShuffled.Defined() && m.InfoEShuffled > saturated {
		fmt.Fprintln(out, "InfoE says little here: codes in a random order score almost as much. Compare the value on held-out rows.")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	printForests(table, m)
	printRelations(table, m)
	return table.Flush()
}

// saturated is the level of chance from which on InfoE needs a warning.
const saturated = 0.25

func printForests(w io.Writer, m model.Metrics) {
	fmt.Fprintf(w, "\nDCI of random forests\tD\tI\tC\t\n")
	row := func(view string, s model.DCIScore) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", view, shown(s.D), shown(s.I), shown(s.C))
	}
	if m.Discrete {
		row("one-hot codes, as the paper", m.DCI.OneHot)
		row("one-hot, summed by slot", m.DCI.SlotSum)
		row("slots as numbers", m.DCI.Slots)
		return
	}
	row("latents as numbers", m.DCI.Slots)
}

// printRelations draws the matrix of mutual information, a row for every factor, with each latent's codes beneath.
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

// oneLine keeps names from files, which may hold anything, from breaking the table.
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
		return strings.TrimPrefix(text, "-") // −1e-17 is shown as 0
	}
	return text
}
