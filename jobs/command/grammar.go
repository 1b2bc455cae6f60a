package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/exchange"
	"slotscope/model/learn/evaluate"
	"slotscope/model/measure/report"
)

// grammar is the command line: one field per subcommand, in the order of the help.
type grammar struct {
	Serve      serveCommand      `cmd:"" help:"run the web server (default)"`
	Train      trainCommand      `cmd:"" help:"train a model in this process"`
	Sweep      sweepCommand      `cmd:"" help:"train and evaluate a sweep: a published protocol, your own settings, or a plan file"`
	Report     reportCommand     `cmd:"" help:"write tables, figures and data files for runs or a sweep"`
	Eval       evalCommand       `cmd:"" help:"evaluate runs: InfoMEC, DCI, noise, swaps, codebook usage"`
	Reproduce  reproduceCommand  `cmd:"" help:"retrain and re-evaluate the runs of a report, and compare the scores"`
	Metrics    metricsCommand    `cmd:"" help:"compute InfoMEC, DCI and more for codes or latents in a file (npz, npy, HDF5, MATLAB, Parquet, CSV, JSON)"`
	Runs       runsCommand       `cmd:"" help:"list, show, stop, tag, delete and wait for runs; print their logs"`
	Data       dataCommand       `cmd:"" help:"list, add, preview, describe, check, sample and remove datasets"`
	Freeze     freezeCommand     `cmd:"" help:"write the playground of runs as one HTML file that works without a server"`
	Export     exportCommand     `cmd:"" help:"export a model (safetensors, ONNX, PyTorch loader, model card) or a run's points"`
	Adopt      adoptCommand      `cmd:"" help:"add an external model: a bundle, a safetensors file, or a program that encodes and decodes"`
	Import     importCommand     `cmd:"" help:"import runs from TensorBoard, MLflow or Weights & Biases"`
	Verify     verifyCommand     `cmd:"" help:"verify the checksums, examples and scores of a bundle"`
	Bench      benchCommand      `cmd:"" help:"measure the speed of training, decoding or reading data"`
	Job        jobCommand        `cmd:"" help:"train a run as a SLURM job (called by SLURM)"`
	GPU        gpuCommand        `cmd:"" help:"show the compute engine and GPUs in use; install XLA's plugin"`
	Completion completionCommand `cmd:"" help:"print a completion script for bash, zsh or fish"`
	Manual     manualCommand     `cmd:"" help:"print the manual page"`
	Version    versionCommand    `cmd:"" help:"print the program's version"`
}

// dataFlag is the flag for the data folder.
type dataFlag struct {
	Data string `default:"data" env:"SLOTSCOPE_DATA" placeholder:"FOLDER" help:"data folder, with runs, datasets and the index"`
}

// AfterApply treats an empty environment variable as unset.
func (f *dataFlag) AfterApply() error {
	f.Data = cmp.Or(f.Data, "data")
	return nil
}

type jsonFlag struct {
	JSON bool `help:"print one JSON object to standard output, and progress to standard error"`
}

// given is the set of flags on the command line, by name.
type given map[string]bool

// Tags of arguments in addition to kong's.
const (
	queryTag = "query" // words such as -failed are part of a query, not flags
	restTag  = "rest"  // takes everything from the first word on, including flags
)

// vocabulary returns the values of ${NAME} in tags of the grammar: names and numbers that are defined elsewhere.
func vocabulary() map[string]string {
	usual := evaluate.Default(0)
	v := map[string]string{
		"models": choices(model.ModelNames()), "presets": choices(model.PresetNames()), "engines": choices(model.EngineNames()), "precisions": choices(model.PrecisionNames()),
		"efforts": choices(model.EffortNames()), "executors": choices([]string{model.Local, model.Slurm}), "rules": choices(report.Rules()), "tools": choices(exchange.Tools()),
		"noise": strconv.Itoa(usual.Noise), "pairs": strconv.Itoa(usual.Pairs), "probe": strconv.Itoa(usual.Probe), "trees": strconv.Itoa(usual.Trees),
		"slurm": slurmNames(), "adopt_timeout": fmt.Sprint(adopt.DefaultWait.Seconds()),
	}
	for _, name := range namedFlags {
		field, _ := model.FieldByName(name)
		v["help_"+name] = strings.TrimSuffix(field.Help, ".")
	}
	return v
}

// fill expands the vocabulary in the grammar. Kong's own variables took 20 ms at each start, because kong scans all of them for
// every flag.
func fill(k *kong.Kong) error {
	words := vocabulary()
	known := func(text string) string {
		return os.Expand(text, func(name string) string {
			if word, ok := words[name]; ok {
				return word
			}
			return "$" + name // an environment variable
		})
	}
	for _, node := range k.Model.Leaves(false) {
		for _, v := range node.Values() {
			v.Help, v.Default, v.Enum = known(v.Help), known(v.Default), known(v.Enum)
		}
	}
	k.Model.HelpFlag.Help = "print this help"
	return nil
}

func choices[T ~string](all []T) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, string(one))
	}
	return strings.Join(texts, ",")
}

// newParser returns the command-line parser. It sets helped after a flag -h: missing arguments are then no error.
func newParser(env environment, helped *bool) *kong.Kong {
	return kong.Must(&grammar{}, kong.Name("slotscope"),
		kong.Description("Slotscope trains, evaluates and explores disentangled representations based on HRRs. Without a subcommand it serves the web interface on http://127.0.0.1:8080."),
		kong.Writers(env.out, env.err), kong.Exit(func(int) { *helped = true }), kong.Help(printHelp), kong.ValueFormatter(helpOf),
		kong.PostBuild(fill), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}))
}

// run executes a command line.
func run(ctx context.Context, env environment, args []string) error {
	env.token = os.Getenv(tokenVariable)
	_ = os.Unsetenv(tokenVariable) // hides it from the processes of runs and from jobs
	helped := false
	p := newParser(env, &helped)
	words, err := arranged(p.Model.Node, args)
	if err != nil {
		return err
	}
	parsed, err := p.Parse(words)
	switch {
	case helped:
		return nil
	case err != nil:
		return mistake(err)
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(env, givenIn(parsed))
	if bad := (badFlag{}); errors.As(err, &bad) {
		return wrong(parsed.Selected(), bad.Error())
	}
	return err
}

func givenIn(parsed *kong.Context) given {
	g := given{}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			g[p.Flag.Name] = true
		}
	}
	return g
}

// arranged puts arguments in the order that the parser expects: subcommands, flags as --name=value, and everything else after --. Flags can
// therefore appear before, between and after other arguments, values can start with a hyphen, and -name means --name, as in earlier versions.
func arranged(app *kong.Node, args []string) ([]string, error) {
	node, args := app, implied(args)
	var path, flags, words []string
	for len(args) > 0 {
		child := named(node.Children, args[0])
		if child == nil {
			break
		}
		node, path, args = child, append(path, args[0]), args[1:]
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		bare := strings.TrimLeft(arg, "-")
		name, _, valued := strings.Cut(bare, "=")
		flag := flagOf(node, name)
		switch {
		case arg == "--":
			words, i = append(words, args[i+1:]...), len(args)
		case !strings.HasPrefix(arg, "-") || bare == "" || flag == nil && !strings.HasPrefix(arg, "--") && takes(node, queryTag):
			if words = append(words, arg); takes(node, restTag) {
				words, i = append(words, args[i+1:]...), len(args)
			}
		case flag == nil || valued:
			flags = append(flags, "--"+bare)
		case flag.IsBool():
			flags = append(flags, "--"+flag.Name)
		case i+1 == len(args):
			return nil, wrong(node, "--"+name+" needs a value")
		default:
			i++
			flags = append(flags, "--"+name+"="+args[i])
		}
	}
	if len(words) > 0 {
		words = append([]string{"--"}, words...)
	}
	return slices.Concat(path, flags, words), nil
}

// implied adds serve if no subcommand is named, and rewrites help NAME as NAME --help.
func implied(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 0 || strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"h", "help"}, strings.TrimLeft(args[0], "-")):
		return append([]string{"serve"}, args...)
	}
	return args
}

func named(nodes []*kong.Node, name string) *kong.Node {
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// flagsOf returns the flags that a subcommand takes.
func flagsOf(node *kong.Node) []*kong.Flag {
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	return slices.Concat(node.AllFlags(true)...)
}

func flagOf(node *kong.Node, name string) *kong.Flag {
	for _, f := range flagsOf(node) {
		if f.Name == name || f.Short != 0 && string(f.Short) == name {
			return f
		}
	}
	return nil
}

// takes reports whether an argument of a subcommand has a tag.
func takes(node *kong.Node, tag string) bool {
	return slices.ContainsFunc(node.Positional, func(p *kong.Positional) bool { return p.Tag.Has(tag) })
}

// wrong returns a usage error for a subcommand, with the command that prints its help.
func wrong(node *kong.Node, what string) error {
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	lists := "the flags"
	if len(node.Children) > 0 {
		lists = "the subcommands"
	}
	return fmt.Errorf("%w: %s; `%s -h` lists %s", errUsage, oneLine(what), node.FullPath(), lists)
}

// badFlag is an error in the value of a flag, found by a subcommand.
type badFlag struct {
	name string
	err  error
}

func (b badFlag) Error() string { return "--" + b.name + ": " + b.err.Error() }

// mistake returns the usage error for an error of the parser.
func mistake(err error) error {
	var refused *kong.ParseError
	if !errors.As(err, &refused) {
		return err
	}
	node := refused.Context.Selected()
	if node == nil {
		node = refused.Context.Model.Node
	}
	if refused.Context.Error == nil { // every word was parsed
		if what := incomplete(node); what != "" {
			return wrong(node, what)
		}
	}
	what, near, some := strings.Cut(err.Error(), ", did you mean ")
	if word, surplus := strings.CutPrefix(what, "unexpected argument "); surplus && len(node.Children) > 0 {
		what = fmt.Sprintf("unknown subcommand %q", word)
	} else if surplus {
		what = fmt.Sprintf("unexpected argument %q", word)
	}
	if some {
		what += " (did you mean " + near + ")"
	}
	return wrong(node, what)
}

// incomplete names the missing argument or subcommand, or the value that is not allowed.
func incomplete(node *kong.Node) string {
	if len(node.Children) > 0 {
		var names []string
		for _, c := range node.Children {
			names = append(names, c.Name)
		}
		return fmt.Sprintf("%s %s", node.FullPath(), strings.Join(names, " | "))
	}
	for _, p := range node.Positional {
		if p.Required && !p.Set {
			return "slotscope " + node.Summary()
		}
	}
	for _, v := range node.Values() {
		typed := reflect.Indirect(v.Target)
		if v.Enum == "" || !typed.IsValid() { // a nil pointer: the flag is not given
			continue
		}
		if text := fmt.Sprint(typed.Interface()); !v.EnumMap()[text] {
			return fmt.Sprintf("%s %q is not one of %s", v.ShortSummary(), text, strings.Join(v.EnumSlice(), ", "))
		}
	}
	return ""
}

// printHelp prints kong's help for a subcommand, followed by what the subcommand adds.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	node := ctx.Selected()
	if node == nil {
		return nil
	}
	more, ok := node.Target.Addr().Interface().(interface{ printMore(ctx *kong.Context) error })
	if !ok {
		return nil
	}
	if _, err := ctx.Apply(); err != nil {
		return err
	}
	return more.printMore(ctx)
}

// helpOf returns the help of a flag or an argument with its allowed values, default and environment variable.
func helpOf(v *kong.Value) string {
	var notes []string
	if v.Enum != "" {
		notes = append(notes, "one of "+strings.Join(v.EnumSlice(), ", "))
	}
	if !slices.Contains([]string{"", "0"}, v.Default) {
		notes = append(notes, "default "+v.Default)
	}
	for _, name := range v.Tag.Envs {
		notes = append(notes, "$"+name)
	}
	if len(notes) == 0 {
		return v.Help
	}
	return v.Help + " (" + strings.Join(notes, "; ") + ")"
}
