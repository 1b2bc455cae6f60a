package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Release is the version that a release was built as, from its tag; empty for other builds.
var Release string

// flagLine is a flag in the list of -h.
var flagLine = regexp.MustCompile(`(?m)^  -([a-z][a-z0-9-]*)`)

// helpOf is what `slotscope NAME -h` prints.
func helpOf(ctx context.Context, c subcommand) string {
	var out bytes.Buffer
	if err := c.run(ctx, environment{out: &out, err: io.Discard}, []string{"-h"}); err == nil {
		return ""
	}
	return out.String()
}

// documented are the subcommands that a manual lists.
func documented() []subcommand {
	return slices.DeleteFunc(subcommands(), func(c subcommand) bool { return c.name == "completion" || c.name == "manual" })
}

// manualPage prints the manual page, made of every subcommand's flags.
func manualPage(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "manual")
	if err := parse(fs, args, 0); err != nil {
		return err
	}
	var s strings.Builder
	fmt.Fprintf(&s, ".TH SLOTSCOPE 1 \"\" \"slotscope %s\" \"User Commands\"\n.SH NAME\nslotscope \\- train, measure and handle disentangled representations\n", roff(Release))
	s.WriteString(".SH SYNOPSIS\n.B slotscope\n[\\fISUBCOMMAND\\fR] [\\fIFLAGS\\fR] [\\fINAMES\\fR]\n.PP\nWithout a subcommand it serves the pages on http://127.0.0.1:8080.\n.SH SUBCOMMANDS\n")
	for _, c := range documented() {
		fmt.Fprintf(&s, ".SS slotscope %s\n%s\n", roff(c.name), roff(c.about))
		if help := helpOf(ctx, c); help != "" {
			fmt.Fprintf(&s, ".PP\n.nf\n%s.fi\n", roff(help))
		}
	}
	s.WriteString(".SH ENVIRONMENT\n.TP\n.B SLOTSCOPE_DATA\nThe data folder, where \\-\\-data is not given.\n.SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted with the state saved.\n")
	_, err := io.WriteString(env.out, s.String())
	return err
}

// roff quotes text: backslashes, hyphens, and dots and quotes that begin a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// completion prints a completion script for a shell, made of every subcommand's flags.
func completion(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "completion")
	names, err := parseNames(fs, args)
	if err != nil {
		return err
	}
	write, ok := map[string]func(io.Writer, []words){"bash": bash, "zsh": zsh, "fish": fish}[strings.Join(names, " ")]
	if !ok {
		return fmt.Errorf("%w: slotscope completion bash|zsh|fish", errUsage)
	}
	var all []words
	for _, c := range documented() {
		w := words{name: c.name, about: c.about}
		for _, m := range flagLine.FindAllStringSubmatch(helpOf(ctx, c), -1) {
			w.flags = append(w.flags, m[1])
		}
		all = append(all, w)
	}
	write(env.out, all)
	return nil
}

// words are what can follow on a command line.
type words struct {
	name, about string
	flags       []string
}

// dashed are the flags as they are typed.
func (w words) dashed() string {
	var s []string
	for _, f := range w.flags {
		s = append(s, "--"+f)
	}
	return strings.Join(s, " ")
}

func namesOf(all []words) string {
	var s []string
	for _, w := range all {
		s = append(s, w.name)
	}
	return strings.Join(s, " ")
}

func bash(w io.Writer, all []words) {
	fmt.Fprintf(w, "# bash completion for slotscope\n_slotscope() {\n  local word=${COMP_WORDS[COMP_CWORD]} flags=\n  if [ \"$COMP_CWORD\" -eq 1 ] && [ \"${word#-}\" = \"$word\" ]; then\n    mapfile -t COMPREPLY < <(compgen -W %q -- \"$word\")\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", namesOf(all))
	for _, c := range all {
		fmt.Fprintf(w, "  %s) flags=%q ;;\n", c.name, c.dashed())
	}
	fmt.Fprint(w, "  esac\n  case $word in\n  -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\") ;;\n  *) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n  esac\n}\ncomplete -o filenames -F _slotscope slotscope\n")
}

func zsh(w io.Writer, all []words) {
	fmt.Fprint(w, "#compdef slotscope\n_slotscope() {\n  local -a commands flags\n  commands=(\n")
	for _, c := range all {
		fmt.Fprintf(w, "    '%s:%s'\n", c.name, strings.ReplaceAll(c.about, "'", `'\''`))
	}
	fmt.Fprint(w, "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n")
	for _, c := range all {
		fmt.Fprintf(w, "  %s) flags=(%s) ;;\n", c.name, c.dashed())
	}
	fmt.Fprint(w, "  esac\n  if [[ $PREFIX == -* ]]; then\n    compadd -- $flags\n  else\n    _files\n  fi\n}\n_slotscope \"$@\"\n")
}

func fish(w io.Writer, all []words) {
	fmt.Fprint(w, "# fish completion for slotscope\n")
	for _, c := range all {
		fmt.Fprintf(w, "complete -c slotscope -n __fish_use_subcommand -f -a %s -d '%s'\n", c.name, strings.ReplaceAll(c.about, "'", `\'`))
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c slotscope -n '__fish_seen_subcommand_from %s' -l %s\n", c.name, f)
		}
	}
}
