package command

import (
	"os/exec"
	"strings"
	"testing"
)

// TestManualAndCompletions checks that the manual page and the completion scripts contain the subcommands and their flags.
func TestManualAndCompletions(t *testing.T) {
	code, page, stderr := called(t, "manual")
	if code != done {
		t.Fatal(stderr)
	}
	for _, want := range []string{`.SS slotscope runs stop <query|run> ... [flags]`, `.I <bundle>`, `.B \-\-tensorboard`, `$SLOTSCOPE_TOKEN`, `default report`} {
		if !strings.Contains(page, want+"\n") && !strings.Contains(page, "("+want+")") {
			t.Errorf("%s is not in the manual", want)
		}
	}
	if strings.Contains(page, "\n.\n") || strings.Contains(page, "${") {
		t.Error("the manual has an empty request or a name without a value")
	}
	for shell, want := range map[string]string{"bash": "\"runs wait \"*)\n    offers=\"\" flags=\"--help --data", "zsh": "--rule) offers=(paper overlap none) ;;", "fish": "__fish_seen_subcommand_from verify' -l tolerance -r -d "} {
		code, script, stderr := called(t, "completion", shell)
		if code != done || !strings.Contains(script, want) {
			t.Errorf("%s: exit code %d, %s: no %q", shell, code, stderr, want)
		}
		if path, err := exec.LookPath(shell); err == nil && shell != "zsh" {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(script)
			if said, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", shell, err, said)
			}
		}
	}
	if code, _, _ := called(t, "completion", "csh"); code != usage {
		t.Errorf("an unknown shell: exit code %d", code)
	}
}
