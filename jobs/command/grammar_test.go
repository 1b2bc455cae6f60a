package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
)

// TestArguments checks that flags can appear before, between and after other arguments, with one hyphen or two, and that values can start
// with one.
func TestArguments(t *testing.T) {
	p := newParser(environment{out: io.Discard, err: io.Discard}, new(bool))
	for args, want := range map[string]string{
		"":                                    "serve",
		"--addr :0":                           "serve --addr=:0",
		"-addr=:0 --shipped=false":            "serve --addr=:0 --shipped=false",
		"help":                                "--help",
		"help runs list":                      "runs list --help",
		"-h":                                  "--help",
		"eval a --noise 3 b -json c":          "eval --noise=3 --json -- a b c",
		"eval --noise -3 -- --noise":          "eval --noise=-3 -- --noise",
		"runs list model=hrr -failed -json":   "runs list --json -- model=hrr -failed",
		"runs list -failed --lrr":             "runs list --lrr -- -failed",
		"runs list -sort -name":               "runs list --sort=-name",
		"export a -nosuch":                    "export --nosuch -- a",
		"adopt --dataset x program --json -v": "adopt --dataset=x -- program --json -v",
		"gpu -json":                           "gpu --json",
		"gpu install --cuda 12":               "gpu install --cuda=12",
		"data add - --name x":                 "data add --name=x -- -",
		"sweep own --vary lr=1,2 --vary k=3":  "sweep --vary=lr=1,2 --vary=k=3 -- own",
		"train -h --model vqvae":              "train --help --model=vqvae",
		"verify --no-scores bundle":           "verify --no-scores -- bundle",
	} {
		got, err := arranged(p.Model.Node, strings.Fields(args))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v; want %q", args, got, err, want)
		}
	}
	if _, err := arranged(p.Model.Node, []string{"train", "--steps"}); !errors.Is(err, errUsage) {
		t.Errorf("a flag without its value: %v", err)
	}
}

// TestServeIsTold checks that flags reach the server with their defaults, from the environment and without the subcommand, and that an empty
// flag or variable counts as not given.
func TestServeIsTold(t *testing.T) {
	dir := t.TempDir()
	usual := ServeOptions{Addr: "127.0.0.1:8080", Data: "data", Shipped: true, Parallel: 1, Executor: model.Local}
	for _, c := range []struct {
		args, data, token string
		change            func(o *ServeOptions)
	}{
		{"", "", "", func(*ServeOptions) {}},
		{"serve", dir, "S3CRET", func(o *ServeOptions) { o.Data, o.Token = dir, "S3CRET" }},
		{"--token= --data /tmp", dir, "S3CRET", func(o *ServeOptions) { o.Data, o.Token = "/tmp", "S3CRET" }},
		{"--token other -shipped=false --open", "", "S3CRET", func(o *ServeOptions) { o.Token, o.Shipped, o.Open = "other", false, true }},
		{"serve --no-shipped --embed https://a.example --embed https://b.example", "", "", func(o *ServeOptions) {
			o.Shipped, o.Embed = false, []string{"https://a.example", "https://b.example"}
		}},
		{"serve --parallel 3", "", "", func(o *ServeOptions) { o.Parallel = 3 }},
		{"--data-root " + dir + " --allow-private-urls --allow-slurm-lines --allow-root", "", "", func(o *ServeOptions) {
			o.Roots, o.PrivateURLs, o.SlurmLines, o.AllowRoot = []string{dir}, true, true, true
		}},
	} {
		t.Setenv("SLOTSCOPE_DATA", c.data)
		t.Setenv("SLOTSCOPE_TOKEN", c.token)
		var told ServeOptions
		code, _, stderr := calledIn(t, environment{serve: func(_ context.Context, o ServeOptions) error { told = o; return nil }}, strings.Fields(c.args)...)
		want := usual
		c.change(&want)
		same := told.Addr == want.Addr && told.Data == want.Data && told.Token == want.Token && told.Shipped == want.Shipped && told.Open == want.Open &&
			told.AllowRoot == want.AllowRoot && told.Parallel == want.Parallel && told.PrivateURLs == want.PrivateURLs && told.SlurmLines == want.SlurmLines && told.Executor == want.Executor &&
			slices.Equal(told.Embed, want.Embed) && slices.Equal(told.Roots, want.Roots)
		if value := os.Getenv("SLOTSCOPE_TOKEN"); value != "" {
			t.Errorf("%s: the processes of runs inherit the token", c.args)
		}
		if code != done || !same {
			t.Errorf("%s: exit code %d, %s\n%+v, want\n%+v", c.args, code, stderr, told, want)
		}
		t.Setenv("SLOTSCOPE_TOKEN", c.token)
		for _, help := range [][]string{{"serve", "-h"}, {"manual"}, {"completion", "bash"}} {
			if code, out, _ := called(t, help...); code != done || strings.Contains(out, "S3CRET") || !strings.Contains(out, "token") {
				t.Errorf("%v: exit code %d, or a secret is printed", help, code)
			}
		}
	}
}

// TestHelpFits checks that every subcommand has help for all of its arguments, at most 80 columns wide except for the list of
// hyperparameters.
func TestHelpFits(t *testing.T) {
	p := newParser(environment{out: io.Discard, err: io.Discard}, new(bool))
	t.Setenv("COLUMNS", "80")
	for _, node := range p.Model.Leaves(false) {
		path := strings.Fields(node.Path())
		code, out, stderr := called(t, append(path, "-h")...)
		if code != done || stderr != "" || !strings.HasPrefix(out, "Usage: slotscope "+node.Summary()+"\n") || node.Help == "" {
			t.Errorf("%v: exit code %d, %s%s", path, code, out, stderr)
		}
		out, _, _ = strings.Cut(out, "\nHyperparameters of ")
		for line := range strings.Lines(out) {
			if len([]rune(strings.TrimSpace(line))) > 80 {
				t.Errorf("%v: too wide: %s", path, line)
			}
		}
		for _, v := range node.Values() {
			if v.Help == "" || strings.Contains(helpOf(v), "${") || v.Flag != nil && !v.IsBool() && v.Flag.PlaceHolder == "" {
				t.Errorf("%v: %s has no help or no placeholder", path, v.Summary())
			}
		}
	}
}

// TestBashCompletes checks the completions of the script in bash.
func TestBashCompletes(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	_, script, _ := called(t, "completion", "bash")
	ask := "\n" + `COMP_WORDS=(slotscope "$@"); COMP_CWORD=$#; _slotscope; printf '%s ' "${COMPREPLY[@]}"`
	dir := t.TempDir()
	for args, want := range map[string]string{
		"tra":                     "train ",
		"runs st":                 "stop ",
		"runs stop --y":           "--yes ",
		"train --engine xla":      "xla:cuda xla:cpu ",
		"bench ":                  "train decode data ",
		"eval --no-":              "--no-heldout ",
		"--add":                   "--addr ",
		"gpu --j":                 "--json ",
		"metrics " + dir + "/non": "",
	} {
		words := strings.Split(args, " ")
		out, err := exec.Command(shell, append([]string{"-c", script + ask, "bash"}, words...)...).CombinedOutput()
		if got := strings.TrimLeft(string(out), " "); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", args, got, err, want)
		}
	}
	if out, err := exec.Command(shell, "-c", script+ask, "bash", "data", "add", filepath.Dir(dir)).CombinedOutput(); err != nil || !strings.Contains(string(out), filepath.Dir(dir)) {
		t.Errorf("files: %q, %v", out, err)
	}
}
