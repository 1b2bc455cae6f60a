// Package slurm has runs computed by a SLURM cluster: it submits them as batch jobs, asks how they stand, stops them, and is
// the job itself on the node. Run folders lie on a file system that login node and compute nodes share.
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

// Options are what a job asks the cluster for. What is empty is left to the cluster's defaults.
type Options struct {
	Partition string
	Account   string
	QOS       string
	Time      string        // limit, as SLURM writes it: "2:00:00" or "1-0"
	GPUs      string        // per run: "1" or "a100:1"
	CPUs      int           // per run
	Memory    string        // per run: "16G"
	Grace     time.Duration // before the limit, in which the run saves itself; 0 for a minute
	Lines     []string      // more #SBATCH options, as "--constraint=h100"
	Setup     []string      // shell lines before the run, as "module load cuda"
}

// option is one of Options by name. Its values are nil where it is left to the cluster.
type option struct {
	name   string
	add    func(o *Options, value string) error
	clear  func(o *Options)
	values func(o *Options) []string
}

// options are in the order in which they are written down.
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
			return fmt.Errorf("%q is not an sbatch option; write one as --constraint=h100", value)
		}
		return nil
	}),
	list("setup", func(o *Options) *[]string { return &o.Setup }, func(string) error { return nil }),
}

// directive is what may follow #SBATCH: a long or short option of sbatch, perhaps with a value.
var directive = regexp.MustCompile(`^(--[A-Za-z][A-Za-z0-9-]*(=.+)?|-[A-Za-z]( ?[^ ].*)?)$`)

func unless(empty bool, value string) []string {
	if empty {
		return nil
	}
	return []string{value}
}

// word is an option of one word.
func word(name string, of func(o *Options) *string) option {
	add := func(o *Options, value string) error {
		if strings.ContainsAny(value, " \t'\"\\") {
			return fmt.Errorf("%q has spaces or quotes", value)
		}
		*of(o) = value
		return nil
	}
	return option{name, add, func(o *Options) { *of(o) = "" }, func(o *Options) []string { return unless(*of(o) == "", *of(o)) }}
}

// list is an option of several lines. It is never changed in place, so that copies keep theirs.
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
		return fmt.Errorf("%q is not a time such as 60s", value)
	}
	o.Grace = d
	return nil
}

// Names are the options that Set knows.
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

// Set reads one option as it is typed: name=value. line and setup may be given again.
func (o *Options) Set(assignment string) error {
	name, value, found := strings.Cut(assignment, "=")
	value = strings.TrimSpace(value)
	if !found || value == "" {
		return fmt.Errorf("%q is not of the form name=value", assignment)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("%s: a value is one line", name)
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

// With is these options with others in their place. Problems come back as model.Invalid, by name.
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

// Asks are the options as With takes them; those that are left to the cluster are not among them.
func (o Options) Asks() model.Asks {
	asks := model.Asks{}
	for _, opt := range options {
		if values := opt.values(&o); len(values) > 0 {
			asks[opt.name] = values
		}
	}
	return asks
}

// SetAll reads options joined by semicolons.
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

// SetLines reads options as a file has them: one a line, with comments after #.
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

// directives are the #SBATCH options of a script.
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

// script is what sbatch is given: each of the runs in dirs is one task of the array, where they are several.
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

// quote makes text one word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// check says what no script can carry.
func check(dirs []string) error {
	for _, dir := range dirs {
		if strings.ContainsAny(dir, "\n%") {
			return model.Invalid{"data": fmt.Sprintf("SLURM cannot write to a folder whose name has %% or a line break: %s", dir)}
		}
	}
	return nil
}
