package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"shell"`
}

// Run prints a completion script generated from the grammar.
func (c *completionCommand) Run(env environment, p *kong.Kong) error {
	write := map[string]func(io.Writer, *kong.Node) error{"bash": bash, "zsh": zsh, "fish": fish}[c.Shell]
	return write(env.out, p.Model.Node)
}

// place is a position on the command line to complete: after a subcommand, or, with an empty path, after the program's name.
type place struct {
	path   []string
	nodes  []*kong.Node       // subcommands that can follow
	flags  []*kong.Flag       // flags that can follow
	values []*kong.Positional // arguments with a fixed set of values
}

// places returns all places, deepest first, so that the first pattern that matches in a shell is the most specific.
func places(node *kong.Node) (all []place) {
	for _, child := range node.Children {
		all = append(all, places(child)...)
	}
	p := place{nodes: node.Children, flags: flagsOf(node)}
	if node.Parent == nil {
		p.flags = flagsOf(named(node.Children, "serve")) // the default
	} else {
		p.path = strings.Fields(node.Path())
	}
	for _, v := range node.Positional {
		if v.Enum != "" {
			p.values = append(p.values, v)
		}
	}
	return append(all, p)
}

// words returns the subcommands and argument values that can follow.
func (p place) words() string {
	var s []string
	for _, n := range p.nodes {
		s = append(s, n.Name)
	}
	for _, v := range p.values {
		s = append(s, v.EnumSlice()...)
	}
	return strings.Join(s, " ")
}

// dashed returns the flags as typed.
func (p place) dashed() string {
	var s []string
	for _, f := range p.flags {
		s = append(s, "--"+f.Name)
		if f.Tag.Negatable != "" {
			s = append(s, "--no-"+f.Name)
		}
	}
	return strings.Join(s, " ")
}

// pattern returns the shell pattern for the words after the program's name, each followed by a space.
func (p place) pattern() string {
	if len(p.path) == 0 {
		return "*"
	}
	return `"` + strings.Join(p.path, " ") + ` "*`
}

// cases writes the branches of a case statement for bash or zsh; open and shut delimit a list.
func cases(w io.Writer, node *kong.Node, open, shut string) error {
	for _, p := range places(node) {
		if _, err := fmt.Fprintf(w, "  %s)\n    offers=%[2]s%[3]s%[4]s flags=%[2]s%[5]s%[4]s\n    case $before in\n", p.pattern(), open, p.words(), shut, p.dashed()); err != nil {
			return err
		}
		var free []string // flags whose value may be a file
		for _, f := range p.flags {
			if f.Enum != "" {
				fmt.Fprintf(w, "    --%s) offers=%s%s%s ;;\n", f.Name, open, strings.Join(f.EnumSlice(), " "), shut)
			} else if !f.IsBool() {
				free = append(free, "--"+f.Name)
			}
		}
		if len(free) > 0 {
			fmt.Fprintf(w, "    %s) offers=%s%s ;;\n", strings.Join(free, "|"), open, shut)
		}
		io.WriteString(w, "    esac ;;\n")
	}
	return nil
}

func bash(w io.Writer, node *kong.Node) error {
	io.WriteString(w, `# bash completion for slotscope
_slotscope() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} offers= flags= typed
  printf -v typed '%s ' "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  case $typed in
`)
	err := cases(w, node, `"`, `"`)
	io.WriteString(w, `  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  elif [ -n "$offers" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$offers" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _slotscope slotscope
`)
	return err
}

func zsh(w io.Writer, node *kong.Node) error {
	io.WriteString(w, `#compdef slotscope
_slotscope() {
  local before=$words[CURRENT-1] typed="${(j: :)words[2,CURRENT-1]} "
  local -a offers flags
  case $typed in
`)
	err := cases(w, node, "(", ")")
	io.WriteString(w, `  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- $flags
  elif (( $#offers )); then
    compadd -- $offers
  else
    _files
  fi
}
_slotscope "$@"
`)
	return err
}

func fish(w io.Writer, node *kong.Node) error {
	io.WriteString(w, "# fish completion for slotscope\n")
	for _, p := range places(node) {
		when := "__fish_use_subcommand"
		if len(p.path) > 0 {
			when = "__fish_seen_subcommand_from " + strings.Join(p.path, "; and __fish_seen_subcommand_from ")
			if len(p.nodes) > 0 {
				when += "; and not __fish_seen_subcommand_from " + p.words()
			}
		}
		for _, n := range p.nodes {
			fmt.Fprintf(w, "complete -c slotscope -n '%s' -f -a %s -d %s\n", when, n.Name, quoted(n.Help))
		}
		for _, v := range p.values {
			fmt.Fprintf(w, "complete -c slotscope -n '%s' -f -a '%s'\n", when, strings.Join(v.EnumSlice(), " "))
		}
		for _, f := range p.flags {
			takes := ""
			switch {
			case f.Enum != "":
				takes = fmt.Sprintf(" -x -a '%s'", strings.Join(f.EnumSlice(), " "))
			case !f.IsBool():
				takes = " -r"
			}
			fmt.Fprintf(w, "complete -c slotscope -n '%s' -l %s%s -d %s\n", when, f.Name, takes, quoted(f.Help))
		}
	}
	return nil
}

// quoted quotes text as a fish word.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
