package command

import (
	"cmp"
	"errors"
	"flag"
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

// alertFlags adds the flags for alerts; the function that it returns reads the file of a data folder and the environment too. Secrets
// have no default that -h would print.
func alertFlags(flags *flag.FlagSet) func(data string) (jobs.Alerting, error) {
	var typed alertOptions
	file := flags.String("alerts", "", "`FILE` that says where alerts go (default: alerts.json in the data folder, if it is there)")
	flags.StringVar(&typed.Webhook, "webhook", "", "`URL` that alerts are sent to; other users of this machine can see flags, so prefer $"+webhookVariable+" or the file")
	flags.BoolVar(&typed.AllowPrivate, "allow-private-webhook", false, "let the webhook be a server of this machine or of a private network")
	flags.Func("alert", "`RULE` that alerts of every run, such as infom<0.3@5000; may be given again", func(text string) error {
		c, err := model.ParseCondition(text)
		if err == nil && c.Verdict != "" {
			return fmt.Errorf("alerts tell of %s runs anyway", c.Verdict)
		}
		typed.Rules = append(typed.Rules, text)
		return err
	})
	return func(data string) (jobs.Alerting, error) {
		written, err := readAlerts(*file, data)
		if err != nil {
			return jobs.Alerting{}, err
		}
		written.Webhook = cmp.Or(typed.Webhook, os.Getenv(webhookVariable), written.Webhook)
		written.Secret = cmp.Or(os.Getenv(secretVariable), written.Secret)
		written.AllowPrivate = written.AllowPrivate || typed.AllowPrivate
		written.Rules = append(written.Rules, typed.Rules...)
		for _, name := range []string{webhookVariable, secretVariable} {
			_ = os.Unsetenv(name) // so that no process of a run has it
		}
		return written.alerting()
	}
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
