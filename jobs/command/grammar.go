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

// grammar is the command line: a field per subcommand, in the order of the help.
type grammar struct {
	Serve      serveCommand      `cmd:"" help:"open the pages in a browser (the default)"`
	Train      trainCommand      `cmd:"" help:"train a model here, in this process"`
	Sweep      sweepCommand      `cmd:"" help:"train and evaluate many runs: the paper's protocol, or a plan"`
	Report     reportCommand     `cmd:"" help:"write tables, figures and files of runs or a sweep"`
	Eval       evalCommand       `cmd:"" help:"measure all of a run: InfoMEC, DCI, noise, swaps, use of codes"`
	Reproduce  reproduceCommand  `cmd:"" help:"train and evaluate the runs of a report again, and compare"`
	Metrics    metricsCommand    `cmd:"" help:"measure InfoMEC, DCI and more of codes or latents in a file: npz, npy, HDF5, MATLAB, Parquet, CSV, JSON"`
	Runs       runsCommand       `cmd:"" help:"list, show, stop, tag, delete runs and wait for them; logs prints a run's log"`
	Data       dataCommand       `cmd:"" help:"list, add, describe, check, sample and remove datasets"`
	Freeze     freezeCommand     `cmd:"" help:"write the playground of runs as one HTML file that needs no server"`
	Export     exportCommand     `cmd:"" help:"write a model for other programs: safetensors, ONNX, PyTorch loader, model card"`
	Adopt      adoptCommand      `cmd:"" help:"open a model from elsewhere: a bundle, a safetensors file, or a program that encodes and decodes"`
	Import     importCommand     `cmd:"" help:"bring in runs of TensorBoard, MLflow or Weights & Biases"`
	Verify     verifyCommand     `cmd:"" help:"check a bundle: sums, examples, and its scores measured again"`
	Bench      benchCommand      `cmd:"" help:"measure training, decoding or reading speed"`
	Job        jobCommand        `cmd:"" help:"train a run as a job of SLURM; SLURM calls it"`
	GPU        gpuCommand        `cmd:"" help:"say what was found for a GPU and what is taken; gpu install gets XLA's plugin"`
	Completion completionCommand `cmd:"" help:"print a completion script for bash, zsh or fish"`
	Manual     manualCommand     `cmd:"" help:"print the manual page"`
	Version    versionCommand    `cmd:"" help:"print the program's version"`
}

// dataFlag is the data folder.
type dataFlag struct {
	Data string `default:"data" env:"SLOTSCOPE_DATA" placeholder:"FOLDER" help:"folder of runs, datasets and the index"`
}

// AfterApply takes an empty variable for one that is not set.
func (f *dataFlag) AfterApply() error {
	f.Data = cmp.Or(f.Data, "data")
	return nil
}

type jsonFlag struct {
	JSON bool `help:"print one JSON object on standard output; progress goes to standard error"`
}

// given are the flags that the command line has, by name.
type given map[string]bool

// Tags of arguments beside those of kong.
const (
	queryTag = "query" // words such as -failed are no flags, but part of a query
	restTag  = "rest"  // everything from the first word on belongs to it, flags too
)

// vocabulary is what tags of the grammar call ${NAME}: names and numbers that have their home elsewhere.
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

// fill puts the vocabulary into the grammar. As variables of kong, which looks at all of them for every flag, it took 20 ms of
// each start.
func fill(k *kong.Kong) error {
	words := vocabulary()
	known := func(text string) string {
		return os.Expand(text, func(name string) string {
			if word, ok := words[name]; ok {
				return word
			}
			return "$" + name // a variable of the environment
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

// parser reads a command line. After a flag -h it says so in helped, for then whatever else is missing does not matter.
func newParser(env environment, helped *bool) *kong.Kong {
	return kong.Must(&grammar{}, kong.Name("slotscope"),
		kong.Description("Slotscope trains, measures and lets you handle disentangled representations made with HRRs. Without a subcommand it serves the pages on http://127.0.0.1:8080."),
		kong.Writers(env.out, env.err), kong.Exit(func(int) { *helped = true }), kong.Help(printHelp), kong.ValueFormatter(helpOf),
		kong.PostBuild(fill), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}))
}

// run does what a command line says.
func run(ctx context.Context, env environment, args []string) error {
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

// arranged puts arguments in the order that the parser expects: subcommands, flags as --name=value, and behind -- all else. So flags stand before, between
// and after other arguments, values begin with a hyphen, and -name is --name, as it was in earlier versions.
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

// implied adds serve where no subcommand is named, and writes help NAME as NAME --help.
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

// flagsOf are the flags that a subcommand takes.
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

// takes says whether the arguments of a subcommand have a tag.
func takes(node *kong.Node, tag string) bool {
	return slices.ContainsFunc(node.Positional, func(p *kong.Positional) bool { return p.Tag.Has(tag) })
}

// wrong says what is wrong with how a subcommand was called, and where help is.
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

// badFlag is what a subcommand finds wrong with the value of a flag.
type badFlag struct {
	name string
	err  error
}

func (b badFlag) Error() string { return "--" + b.name + ": " + b.err.Error() }

// mistake is the sentence for what the parser refuses.
func mistake(err error) error {
	var refused *kong.ParseError
	if !errors.As(err, &refused) {
		return err
	}
	node := refused.Context.Selected()
	if node == nil {
		node = refused.Context.Model.Node
	}
	if refused.Context.Error == nil { // every word was understood
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

// incomplete says which argument or subcommand is missing, or which value is not one of those that are allowed.
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
		if v.Enum == "" || !typed.IsValid() { // a pointer to nothing: the flag is not given
			continue
		}
		if text := fmt.Sprint(typed.Interface()); !v.EnumMap()[text] {
			return fmt.Sprintf("%s %q is not one of %s", v.ShortSummary(), text, strings.Join(v.EnumSlice(), ", "))
		}
	}
	return ""
}

// printHelp prints what kong has on a subcommand, and what the subcommand itself adds.
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

// helpOf is the help of a flag or an argument, with the values that it can have, its default and its variable.
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
