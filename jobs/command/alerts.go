package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"slotscope/jobs"
	"slotscope/model"
)

const (
	alertsFile      = "alerts.json" // in the data folder
	webhookVariable = "SLOTSCOPE_WEBHOOK"
	secretVariable  = "SLOTSCOPE_WEBHOOK_SECRET"
)

// alertOptions are the options for alerts in alerts.json and the flags of serve.
type alertOptions struct {
	Webhook      string            `json:"webhook,omitempty"`       // address
	Secret       string            `json:"secret,omitempty"`        // signs the requests
	AllowPrivate bool              `json:"allow_private,omitempty"` // the address may be on this machine or a private network
	Rules        []string          `json:"rules,omitempty"`         // e.g. infom<0.3@5000
	Kinds        []model.AlertKind `json:"kinds,omitempty"`         // sent to the webhook; empty for all
}

// alertFlags are the flags for alerts. Secrets have no default, because -h would print it.
type alertFlags struct {
	Alerts              string   `placeholder:"FILE" help:"file with the alert settings; default: alerts.json in the data folder, if it exists"`
	Webhook             string   `placeholder:"URL" help:"address to send alerts to; prefer $SLOTSCOPE_WEBHOOK or the file, because other users of this machine can see flags"`
	AllowPrivateWebhook bool     `help:"allow a webhook on this machine or on a private network"`
	Alert               []string `sep:"none" placeholder:"RULE" help:"alert rule for every run, e.g. infom<0.3@5000 (repeatable)"`
}

// alerting returns the options from the flags, the environment and the alerts file.
func (f alertFlags) alerting(data string) (jobs.Alerting, error) {
	for _, text := range f.Alert {
		c, err := model.ParseCondition(text)
		if err == nil && c.Verdict != "" {
			err = fmt.Errorf("%s runs always cause an alert; remove the rule", c.Verdict)
		}
		if err != nil {
			return jobs.Alerting{}, badFlag{"alert", err}
		}
	}
	written, err := readAlerts(f.Alerts, data)
	if err != nil {
		return jobs.Alerting{}, err
	}
	written.Webhook = cmp.Or(f.Webhook, os.Getenv(webhookVariable), written.Webhook)
	written.Secret = cmp.Or(os.Getenv(secretVariable), written.Secret)
	written.AllowPrivate = written.AllowPrivate || f.AllowPrivateWebhook
	written.Rules = append(written.Rules, f.Alert...)
	for _, name := range []string{webhookVariable, secretVariable} {
		_ = os.Unsetenv(name) // hides it from the processes of runs
	}
	return written.alerting()
}

// readAlerts reads the given file, or the one in the data folder if it exists.
func readAlerts(file, data string) (o alertOptions, err error) {
	path := cmp.Or(file, filepath.Join(data, alertsFile))
	in, err := os.Open(path)
	if file == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) { // the data folder is created later
		return o, nil
	}
	if err != nil {
		return o, model.Invalid{"alerts": err.Error()}
	}
	defer in.Close()
	if info, err := in.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		slog.Warn("other users of this machine can read the alerts file, which may contain secrets; run chmod 600 on it", "file", path)
	}
	if err := model.ReadJSON(in, &o); err != nil {
		return o, model.Invalid{"alerts": fmt.Sprintf("%s: %v", path, err)}
	}
	return o, nil
}

func (o alertOptions) alerting() (a jobs.Alerting, err error) {
	for _, text := range o.Rules {
		c, err := model.ParseCondition(text)
		if err != nil {
			return a, model.Invalid{"rules": err.Error()}
		}
		if c.Verdict == "" && !slices.Contains(a.Rules, c) { // verdicts always cause an alert
			a.Rules = append(a.Rules, c)
		}
	}
	for _, kind := range o.Kinds {
		if !slices.Contains(model.AlertKinds, kind) {
			return a, model.Invalid{"kinds": fmt.Sprintf("%q is not one of %s", kind, joined(model.AlertKinds))}
		}
	}
	if a.Kinds = o.Kinds; o.Webhook != "" {
		a.Webhook, err = jobs.NewWebhook(o.Webhook, o.Secret, o.AllowPrivate)
	}
	return a, err
}

func joined[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}
