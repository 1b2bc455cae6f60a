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

// alertOptions are what alerts.json and the flags of serve say of alerts.
type alertOptions struct {
	Webhook      string            `json:"webhook,omitempty"`       // address
	Secret       string            `json:"secret,omitempty"`        // that signs what is sent
	AllowPrivate bool              `json:"allow_private,omitempty"` // the address may be of this machine or a private network
	Rules        []string          `json:"rules,omitempty"`         // as in infom<0.3@5000
	Kinds        []model.AlertKind `json:"kinds,omitempty"`         // that the webhook gets; empty for all
}

// alertFlags are the flags for alerts. Secrets have no default that -h would print.
type alertFlags struct {
	Alerts              string   `placeholder:"FILE" help:"file that says where alerts go; without it alerts.json in the data folder, if it is there"`
	Webhook             string   `placeholder:"URL" help:"address that alerts are sent to; other users of this machine can see flags, so prefer $SLOTSCOPE_WEBHOOK or the file"`
	AllowPrivateWebhook bool     `help:"let the webhook be a server of this machine or of a private network"`
	Alert               []string `sep:"none" placeholder:"RULE" help:"rule that alerts of every run, such as infom<0.3@5000; may be given again"`
}

// alerting is what the flags, the environment and the file of a data folder say.
func (f alertFlags) alerting(data string) (jobs.Alerting, error) {
	for _, text := range f.Alert {
		c, err := model.ParseCondition(text)
		if err == nil && c.Verdict != "" {
			err = fmt.Errorf("alerts tell of %s runs anyway", c.Verdict)
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
		_ = os.Unsetenv(name) // so that no process of a run has it
	}
	return written.alerting()
}

// readAlerts reads the file, or that of the data folder, which need not be there.
func readAlerts(file, data string) (o alertOptions, err error) {
	path := cmp.Or(file, filepath.Join(data, alertsFile))
	in, err := os.Open(path)
	if file == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) { // the data folder is made later
		return o, nil
	}
	if err != nil {
		return o, model.Invalid{"alerts": err.Error()}
	}
	defer in.Close()
	if info, err := in.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		slog.Warn("other users of this machine can read the file of alerts, which may hold secrets; chmod 600 helps", "file", path)
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
		if c.Verdict == "" && !slices.Contains(a.Rules, c) { // verdicts are told anyway
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
