package command

import (
	"os/exec"
	"strings"
	"testing"
)

// The manual page and the completions know every subcommand and its flags.
func TestManualAndCompletions(t *testing.T) {
	code, page, stderr := called(t, "manual")
	if code != done {
		t.Fatal(stderr)
	}
	for _, c := range documented() {
		if !strings.Contains(page, ".SS slotscope "+roff(c.name)+"\n") {
			t.Errorf("%s is not in the manual", c.name)
		}
	}
	if !strings.Contains(page, `\-tensorboard`) || strings.Contains(page, "\n.\n") {
		t.Error("the flags of train are not in the manual")
	}
	for shell, want := range map[string]string{"bash": "verify) flags=\"--data", "zsh": "'verify:check a bundle", "fish": "__fish_seen_subcommand_from verify' -l tolerance"} {
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
