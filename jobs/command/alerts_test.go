package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// alertingOf reads flags, environment and alerts.json as serve does. It returns the options as text, and the errors.
func alertingOf(t *testing.T, file string, variables map[string]string, args ...string) (text, said string) {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		if err := os.WriteFile(filepath.Join(dir, alertsFile), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{webhookVariable, secretVariable} {
		t.Setenv(name, variables[name])
	}
	env := environment{serve: func(_ context.Context, o ServeOptions) error {
		if a := o.Alerting.Webhook; a != nil {
			text = a.Host()
		}
		for _, c := range o.Alerting.Rules {
			text += " " + c.String()
		}
		for _, k := range o.Alerting.Kinds {
			text += " " + string(k)
		}
		if os.Getenv(webhookVariable) != "" || os.Getenv(secretVariable) != "" {
			t.Error("the environment of child processes still holds secrets")
		}
		return nil
	}}
	_, help, _ := calledIn(t, env, "serve", "-h")
	_, _, stderr := calledIn(t, env, append([]string{"serve", "--data", dir}, args...)...)
	if strings.Contains(help, "S3CRET") {
		t.Errorf("a secret is printed: %s", help)
	}
	return text, stderr
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
		{"bad rule", "", nil, []string{"-alert", "infom"}, "", `"infom" is not a condition`},
		{"bad rule in the file", `{"rules": ["infom<"]}`, nil, nil, "", `the limit "" is not a number`},
		{"verdict as a rule", "", nil, []string{"-alert", "collapsing"}, "", "collapsing runs always cause an alert"},
		{"unknown kind", `{"kinds": ["late"]}`, nil, nil, "", `"late" is not one of ended, failed`},
		{"unknown entry", `{"url": "S3CRET"}`, nil, nil, "", "url"},
		{"missing file", "", nil, []string{"-alerts", "/no/such/file"}, "", "no such file"},
	} {
		got, said := alertingOf(t, c.file, c.env, c.args...)
		if got != c.want || (said == "") != (c.err == "") || !strings.Contains(said, c.err) {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, got, said, c.want, c.err)
		}
		if strings.Contains(got+said, "S3CRET") {
			t.Errorf("%s: a secret is printed: %s", c.name, said)
		}
	}
}
