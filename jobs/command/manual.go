package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Release is the version of a release build, from its tag; empty for other builds.
var Release string

type manualCommand struct{}

// Run prints the manual page generated from the grammar.
func (c *manualCommand) Run(env environment, p *kong.Kong) error {
	var s strings.Builder
	fmt.Fprintf(&s, ".TH SLOTSCOPE 1 \"\" \"slotscope %s\" \"User Commands\"\n.SH NAME\nslotscope \\- train, evaluate and explore disentangled representations\n", roff(Release))
	s.WriteString(".SH SYNOPSIS\n.B slotscope\n[\\fISUBCOMMAND\\fR] [\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n.PP\nWithout a subcommand it serves the web interface on http://127.0.0.1:8080.\n.SH SUBCOMMANDS\n")
	for _, node := range p.Model.Leaves(true) {
		fmt.Fprintf(&s, ".SS slotscope %s\n%s\n", roff(node.Summary()), roff(node.Help))
		for _, arg := range node.Positional {
			fmt.Fprintf(&s, ".TP\n.I %s\n%s\n", roff(arg.Summary()), roff(helpOf(arg)))
		}
		for _, flag := range node.Flags {
			fmt.Fprintf(&s, ".TP\n.B %s\n%s\n", roff(strings.Replace(flag.String(), "--", negation(flag), 1)), roff(helpOf(flag.Value)))
		}
	}
	s.WriteString(".SH EXIT STATUS\n0 success, 1 failure, 2 usage error, 130 interrupted (state saved).\n")
	_, err := io.WriteString(env.out, s.String())
	return err
}

// negation returns the prefix of a flag.
func negation(f *kong.Flag) string {
	if f.Tag.Negatable != "" {
		return "--[no-]"
	}
	return "--"
}

// roff escapes text: backslashes, hyphens, and dots and quotes at the start of a line.
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
