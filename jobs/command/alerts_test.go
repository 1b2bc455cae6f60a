package command

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// alertingOf reads flags, environment and alerts.json as serve does, and returns what the help says too.
func alertingOf(t *testing.T, file string, env map[string]string, args ...string) (text, help string, err error) {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		if err := os.WriteFile(filepath.Join(dir, alertsFile), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{webhookVariable, secretVariable} {
		t.Setenv(name, env[name])
	}
	flags, printed := flag.NewFlagSet("serve", flag.ContinueOnError), &bytes.Buffer{}
	flags.SetOutput(printed)
	alerting := alertFlags(flags)
	flags.PrintDefaults()
	if err := flags.Parse(args); err != nil {
		return "", printed.String(), err
	}
	a, err := alerting(dir)
	if a.Webhook != nil {
		text = a.Webhook.Host()
	}
	for _, c := range a.Rules {
		text += " " + c.String()
	}
	for _, k := range a.Kinds {
		text += " " + string(k)
	}
	if os.Getenv(webhookVariable) != "" || os.Getenv(secretVariable) != "" {
		t.Error("the environment of child processes still holds secrets")
	}
	return text, printed.String(), err
}

func TestAlertOptions(t *testing.T) {
	for _, c := range []struct {
		name, file string
		env        map[string]string
		args       []string
		want, err  string
	}{
		{"nothing", "", nil, nil, "", ""},
		{"file", `{"webhook": "https://a.example/S3CRET", "rules": ["infom<0.3@5000", "collapsing"], "kinds": ["failed"]}`, nil, nil, "a.example infom/eval<0.3@5000 failed", ""},
		{"environment over file", `{"webhook": "https://a.example/x"}`, map[string]string{webhookVariable: "https://b.example/S3CRET", secretVariable: "S3CRET"}, nil, "b.example", ""},
		{"flag over both", `{"webhook": "https://a.example/x", "rules": ["psnr<20"]}`, map[string]string{webhookVariable: "https://b.example/x"}, []string{"-webhook", "https://c.example/S3CRET", "-alert", "loss>9"}, "c.example psnr/eval<20 total>9", ""},
		{"private", "", nil, []string{"-webhook", "http://127.0.0.1:9/S3CRET"}, "", "--allow-private-webhook"},
		{"private, permitted", "", nil, []string{"-webhook", "http://127.0.0.1:9/S3CRET", "-allow-private-webhook"}, "127.0.0.1:9", ""},
		{"no address", `{"webhook": "S3CRET"}`, nil, nil, "", "is not an http or https address"},
		{"bad rule", "", nil, []string{"-alert", "infom"}, "", `"infom" is no condition`},
		{"bad rule in the file", `{"rules": ["infom<"]}`, nil, nil, "", `the limit "" is not a number`},
		{"verdict as a rule", "", nil, []string{"-alert", "collapsing"}, "", "alerts tell of collapsing runs anyway"},
		{"unknown kind", `{"kinds": ["late"]}`, nil, nil, "", `"late" is not one of ended, failed`},
		{"unknown entry", `{"url": "S3CRET"}`, nil, nil, "", "url"},
		{"missing file", "", nil, []string{"-alerts", "/no/such/file"}, "", "no such file"},
	} {
		got, help, err := alertingOf(t, c.file, c.env, c.args...)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, got, err, c.want, c.err)
		}
		if strings.Contains(help+got, "S3CRET") || err != nil && strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: a secret is shown: %v", c.name, err)
		}
	}
}
