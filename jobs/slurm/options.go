// Package slurm trains runs on a SLURM cluster: it submits them as batch jobs, polls their state, stops them, and implements the job on
// the compute node. Run folders must be on a file system that login node and compute nodes share.
package slurm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
)

// Options are the options of a job. Empty ones use the cluster's defaults.
type Options struct {
	Partition string
	Account   string
	QOS       string
	Time      string        // limit in SLURM's format: "2:00:00" or "1-0"
	GPUs      string        // per run: "1" or "a100:1"
	CPUs      int           // per run
	Memory    string        // per run: "16G"
	Grace     time.Duration // time before the limit for the run to save; 0 for a minute
	Lines     []string      // more #SBATCH options, e.g. "--constraint=h100"
	Setup     []string      // shell lines before the run, e.g. "module load cuda"
}

// option is one of Options by name. Its values are nil if the cluster's default applies.
type option struct {
	name   string
	add    func(o *Options, value string) error
	clear  func(o *Options)
	values func(o *Options) []string
}

// options are in the order of output.
var options = []option{
	word("partition", func(o *Options) *string { return &o.Partition }),
	word("account", func(o *Options) *string { return &o.Account }),
	word("qos", func(o *Options) *string { return &o.QOS }),
	word("time", func(o *Options) *string { return &o.Time }),
	word("gpus", func(o *Options) *string { return &o.GPUs }),
	{"cpus", (*Options).setCPUs, func(o *Options) { o.CPUs = 0 }, func(o *Options) []string { return unless(o.CPUs == 0, strconv.Itoa(o.CPUs)) }},
	word("mem", func(o *Options) *string { return &o.Memory }),
	{"grace", (*Options).setGrace, func(o *Options) { o.Grace = 0 }, func(o *Options) []string { return unless(o.Grace == 0, o.Grace.String()) }},
	list("line", func(o *Options) *[]string { return &o.Lines }, func(value string) error {
		if !directive.MatchString(value) {
			return fmt.Errorf("%q is not an sbatch option; use the form --constraint=h100", value)
		}
		return nil
	}),
	list("setup", func(o *Options) *[]string { return &o.Setup }, func(string) error { return nil }),
}

// directive matches the text after #SBATCH: a long or short option of sbatch, with or without a value.
var directive = regexp.MustCompile(`^(--[A-Za-z][A-Za-z0-9-]*(=.+)?|-[A-Za-z]( ?[^ ].*)?)$`)

func unless(empty bool, value string) []string {
	if empty {
		return nil
	}
	return []string{value}
}

// word returns an option with one word as its value.
func word(name string, of func(o *Options) *string) option {
	add := func(o *Options, value string) error {
		if strings.ContainsAny(value, " \t'\"\\") {
			return fmt.Errorf("%q contains spaces or quotes", value)
		}
		*of(o) = value
		return nil
	}
	return option{name, add, func(o *Options) { *of(o) = "" }, func(o *Options) []string { return unless(*of(o) == "", *of(o)) }}
}

// list returns an option with several lines. The slice is never changed in place, so that copies keep their values.
func list(name string, of func(o *Options) *[]string, check func(value string) error) option {
	add := func(o *Options, value string) error {
		if err := check(value); err != nil {
			return err
		}
		*of(o) = append(slices.Clone(*of(o)), value)
		return nil
	}
	return option{name, add, func(o *Options) { *of(o) = nil }, func(o *Options) []string { return *of(o) }}
}

func (o *Options) setCPUs(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of CPUs", value)
	}
	o.CPUs = n
	return nil
}

func (o *Options) setGrace(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Second || d > 65535*time.Second {
		return fmt.Errorf("%q is not a duration from 1s to 65535s, e.g. 60s", value)
	}
	o.Grace = d
	return nil
}

// Names returns the names of all options.
func Names() []string {
	var names []string
	for _, opt := range options {
		names = append(names, opt.name)
	}
	return names
}

func named(name string) (option, error) {
	for _, opt := range options {
		if opt.name == name {
			return opt, nil
		}
	}
	return option{}, fmt.Errorf("unknown SLURM option %q; use one of %s", name, strings.Join(Names(), ", "))
}

// Set sets an option from text of the form name=value. line and setup can be repeated.
func (o *Options) Set(assignment string) error {
	name, value, found := strings.Cut(assignment, "=")
	value = strings.TrimSpace(value)
	if !found || value == "" {
		return fmt.Errorf("%q is not of the form name=value", assignment)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("%s: line breaks and control characters are not allowed", name)
	}
	opt, err := named(name)
	if err != nil {
		return err
	}
	if err := opt.add(o, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// With returns the options with asks replacing those of the same name. It returns a model.Invalid by name for invalid ones.
func (o Options) With(asks model.Asks) (Options, error) {
	bad := model.Invalid{}
	for name, values := range asks {
		opt, err := named(name)
		if err != nil {
			bad[name] = err.Error()
			continue
		}
		opt.clear(&o)
		for _, value := range values {
			if err := o.Set(name + "=" + value); err != nil {
				bad[name] = strings.TrimPrefix(err.Error(), name+": ")
			}
		}
	}
	return o, bad.OrNil()
}

// Asks returns the options in the form that With takes, without those that use the cluster's defaults.
func (o Options) Asks() model.Asks {
	asks := model.Asks{}
	for _, opt := range options {
		if values := opt.values(&o); len(values) > 0 {
			asks[opt.name] = values
		}
	}
	return asks
}

// SetAll sets options separated by semicolons.
func (o *Options) SetAll(assignments string) error {
	for one := range strings.SplitSeq(assignments, ";") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		if err := o.Set(strings.TrimSpace(one)); err != nil {
			return err
		}
	}
	return nil
}

// SetLines sets options from the text of a file: one per line; lines that start with # are comments.
func (o *Options) SetLines(text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := o.Set(line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
}

// directives returns the #SBATCH options of a script.
func (o Options) directives() []string {
	var all []string
	add := func(name, value string) {
		if value != "" {
			all = append(all, name+"="+value)
		}
	}
	add("--partition", o.Partition)
	add("--account", o.Account)
	add("--qos", o.QOS)
	add("--time", o.Time)
	if o.GPUs != "" {
		add("--gres", "gpu:"+o.GPUs)
	}
	if o.CPUs > 0 {
		add("--cpus-per-task", strconv.Itoa(o.CPUs))
	}
	add("--mem", o.Memory)
	grace := o.Grace
	if grace == 0 {
		grace = time.Minute
	}
	add("--signal", fmt.Sprintf("B:TERM@%d", int(grace.Seconds())))
	return append(all, slices.Concat([]string{"--requeue", "--open-mode=append"}, o.Lines)...)
}

// script returns the script for sbatch. Several runs in dirs become an array with one task per run.
func (o Options) script(program, logs string, dirs []string) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	directives := append([]string{"--job-name=slotscope", "--output=" + logs + "/%A_%a.txt"}, o.directives()...)
	if len(dirs) == 1 {
		directives[1] = "--output=" + logs + "/%j.txt"
	} else {
		directives = append(directives, fmt.Sprintf("--array=0-%d", len(dirs)-1))
	}
	for _, d := range directives {
		fmt.Fprintf(&b, "#SBATCH %s\n", d)
	}
	for _, line := range o.Setup {
		b.WriteString(line + "\n")
	}
	b.WriteString("runs=(\n")
	for _, dir := range dirs {
		fmt.Fprintf(&b, "  %s\n", quote(dir))
	}
	fmt.Fprintf(&b, ")\nexec %s job \"${runs[${SLURM_ARRAY_TASK_ID:-0}]}\"\n", quote(program))
	return b.String()
}

// quote quotes text as one shell word.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// check returns an error for a folder name that a script cannot contain.
func check(dirs []string) error {
	for _, dir := range dirs {
		if strings.ContainsAny(dir, "\n%") {
			return model.Invalid{"data": fmt.Sprintf("SLURM cannot write to a folder whose name contains %% or a line break: %s", dir)}
		}
	}
	return nil
}
