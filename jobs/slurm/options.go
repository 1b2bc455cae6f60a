// Package slurm has runs computed by a SLURM cluster: it submits them as batch jobs, asks how they stand, stops them, and is
// the job itself on the node. Run folders lie on a file system that login node and compute nodes share.
package slurm

import (
	"fmt"
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

// Names are the options that Set knows, with what each means.
func Names() []string {
	return []string{"partition", "account", "qos", "time", "gpus", "cpus", "mem", "grace", "line", "setup"}
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
	texts := map[string]*string{"partition": &o.Partition, "account": &o.Account, "qos": &o.QOS, "time": &o.Time, "gpus": &o.GPUs, "mem": &o.Memory}
	switch {
	case texts[name] != nil:
		if strings.ContainsAny(value, " \t'\"\\") {
			return fmt.Errorf("%s: %q has spaces or quotes", name, value)
		}
		*texts[name] = value
	case name == "cpus":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("cpus: %q is not a number of processors", value)
		}
		o.CPUs = n
	case name == "grace":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second || d > 65535*time.Second {
			return fmt.Errorf("grace: %q is not a time such as 60s", value)
		}
		o.Grace = d
	case name == "line":
		if !strings.HasPrefix(value, "-") {
			return fmt.Errorf("line: %q is no option of sbatch; one looks like --constraint=h100", value)
		}
		o.Lines = append(slices.Clone(o.Lines), value)
	case name == "setup":
		o.Setup = append(slices.Clone(o.Setup), value)
	default:
		return fmt.Errorf("there is no SLURM option %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return nil
}

// With is these options with others in their place, a line each as name=value; the first of several lines or setups replaces all that
// there were, and a name without a value leaves it to the cluster. Problems come back as model.Invalid, by name.
func (o Options) With(asks string) (Options, error) {
	bad, begun := model.Invalid{}, map[string]bool{}
	for one := range strings.Lines(asks) {
		one = strings.TrimSpace(one)
		if one == "" {
			continue
		}
		name, value, _ := strings.Cut(one, "=")
		if !begun[name] {
			begun[name] = true
			o.clear(name)
		}
		if strings.TrimSpace(value) == "" && slices.Contains(Names(), name) {
			continue
		}
		if err := o.Set(one); err != nil {
			bad[name] = strings.TrimPrefix(err.Error(), name+": ")
		}
	}
	return o, bad.OrNil()
}

// clear leaves an option to the cluster. Lists are never changed in place, so that copies keep theirs.
func (o *Options) clear(name string) {
	switch name {
	case "partition":
		o.Partition = ""
	case "account":
		o.Account = ""
	case "qos":
		o.QOS = ""
	case "time":
		o.Time = ""
	case "gpus":
		o.GPUs = ""
	case "cpus":
		o.CPUs = 0
	case "mem":
		o.Memory = ""
	case "grace":
		o.Grace = 0
	case "line":
		o.Lines = nil
	case "setup":
		o.Setup = nil
	}
}

// Asks are the options as With reads them.
func (o Options) Asks() string {
	var b strings.Builder
	say := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s=%s\n", name, value)
		}
	}
	say("partition", o.Partition)
	say("account", o.Account)
	say("qos", o.QOS)
	say("time", o.Time)
	say("gpus", o.GPUs)
	if o.CPUs > 0 {
		say("cpus", strconv.Itoa(o.CPUs))
	}
	say("mem", o.Memory)
	if o.Grace > 0 {
		say("grace", o.Grace.String())
	}
	for _, line := range o.Lines {
		say("line", line)
	}
	for _, line := range o.Setup {
		say("setup", line)
	}
	return b.String()
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
