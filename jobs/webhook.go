package jobs

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/sethvargo/go-retry"

	"slotscope/model"
	"slotscope/model/public"
)

// AllowPrivateWebhook is the flag that allows alerts to be sent to this machine and to private networks.
const AllowPrivateWebhook = "--allow-private-webhook"

// Webhook sends alerts to an HTTP endpoint. Its URL and secret never appear in its output.
type Webhook struct {
	url    *url.URL
	secret string
	client *http.Client
	first  time.Duration // delay before the second try; doubled each time
}

const (
	webhookPatience = 20 * time.Second // time limit of one try
	webhookLingers  = 2 * time.Second  // how long a try can continue after the server stops: the endpoint may have accepted it
	webhookRetries  = 9                // after the first try; the last comes about six minutes later
	webhookLongest  = 2 * time.Minute  // maximum delay between tries
	webhookHops     = 3                // maximum redirects of one try
)

// NewWebhook returns a webhook for an address. A non-empty secret signs the requests. private allows connections to this machine and to
// private networks.
func NewWebhook(address, secret string, private bool) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, model.Invalid{"webhook": "is not an http or https address, e.g. https://example.org/hook (the value is not shown, because it may contain a secret)"}
	}
	w := &Webhook{url: u, secret: secret, client: &http.Client{Timeout: webhookPatience, CheckRedirect: keepMethod}, first: time.Second}
	if private {
		return w, nil
	}
	if err := public.Check(u, AllowPrivateWebhook); err != nil {
		return nil, model.Invalid{"webhook": err.Error()}
	}
	w.client.Transport = public.NewTransport(AllowPrivateWebhook, webhookPatience)
	return w, nil
}

// errMoved is the error for a redirect that would drop the request body, or for too many redirects.
var errMoved = errors.New("redirects in a way that drops the message; use its final address")

// keepMethod follows redirects that keep method and body of the request.
func keepMethod(next *http.Request, before []*http.Request) error {
	if next.Method != http.MethodPost || len(before) > webhookHops {
		return errMoved
	}
	return nil
}

// Host returns the only part of the address that may be shown.
func (w *Webhook) Host() string { return w.url.Host }

// LogValue hides address and secret in logs.
func (w *Webhook) LogValue() slog.Value { return slog.StringValue(w.Host()) }

// String hides address and secret in formatted output.
func (w *Webhook) String() string { return w.Host() }

// GoString hides address and secret in %#v.
func (w *Webhook) GoString() string { return w.Host() }

// message is the JSON body sent to a webhook; docs/alerts.md describes it.
type message struct {
	Version int             `json:"version"`
	ID      int64           `json:"id"`
	Kind    model.AlertKind `json:"kind"`
	Text    string          `json:"text"`
	Rule    string          `json:"rule,omitempty"`
	Step    int             `json:"step"`
	Time    time.Time       `json:"time"`
	Run     *messageRun     `json:"run,omitempty"` // absent in a test
}

type messageRun struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Path    string      `json:"path"` // of its page on this server
	State   model.State `json:"state"`
	Step    int         `json:"step"`
	Steps   int         `json:"steps"`
	Attempt int         `json:"attempt"`
	Model   string      `json:"model"`
	Preset  string      `json:"preset"`
	Dataset string      `json:"dataset"`
	Seed    int64       `json:"seed"`
}

func messageOf(a model.Alert, r model.Run) message {
	return message{Version: 1, ID: a.ID, Kind: a.Kind, Text: a.Text, Rule: a.Rule, Step: a.Step, Time: a.Time.UTC(), Run: &messageRun{
		ID: r.ID, Name: r.Name, Path: "/runs/" + r.ID, State: r.State, Step: r.Step, Steps: r.Config.Steps, Attempt: a.Attempt,
		Model: r.Config.Model, Preset: r.Config.Preset, Dataset: r.Config.Dataset, Seed: r.Config.Seed}}
}

// deliver sends a message and retries while the error may be temporary; it calls tried after every try.
func (w *Webhook) deliver(ctx context.Context, m message, tried func(error)) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode alert %d: %w", m.ID, err)
	}
	wait := retry.WithMaxRetries(webhookRetries, retry.WithCappedDuration(webhookLongest, retry.WithJitterPercent(10, retry.NewExponential(w.first))))
	return retry.Do(ctx, wait, func(ctx context.Context) error {
		again, err := w.try(ctx, body)
		tried(err)
		if again {
			return retry.RetryableError(err)
		}
		return err
	})
}

// once is deliver without retries.
func (w *Webhook) once(ctx context.Context, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode alert %d: %w", m.ID, err)
	}
	_, err = w.try(ctx, body)
	return err
}

// try sends a message once; again reports whether the error may be temporary. The error does not contain the address.
func (w *Webhook) try(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := lingering(ctx, webhookLingers)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("the request to %s is invalid", w.Host())
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "slotscope")
	if w.secret != "" {
		request.Header.Set("X-Slotscope-Signature", "sha256="+w.sign(body))
	}
	reply, err := w.client.Do(request)
	if err != nil {
		return w.unreached(err)
	}
	defer reply.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, 64<<10)) // so that the connection can be reused
	switch code := reply.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	default:
		again = code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return again, fmt.Errorf("%s responded with %d %s", w.Host(), code, http.StatusText(code))
	}
}

// lingering returns a context that ends a while after ctx.
func lingering(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// unreached returns why there was no response, without the address or that of a redirect, which may contain a secret too.
func (w *Webhook) unreached(err error) (again bool, _ error) {
	var refused public.Refused
	var whole *url.Error
	switch {
	case errors.As(err, &refused):
		return false, refused
	case errors.Is(err, errMoved):
		return false, fmt.Errorf("%s %w", w.Host(), errMoved)
	case errors.As(err, &whole) && whole.Timeout():
		return true, fmt.Errorf("%s did not respond within %v", w.Host(), webhookPatience)
	case errors.As(err, &whole):
		return true, fmt.Errorf("%s could not be reached: %w", w.Host(), innermost(whole.Err))
	}
	return true, fmt.Errorf("%s could not be reached", w.Host())
}

// innermost returns the last error of a chain, e.g. "connection refused" without the dialled address.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

func (w *Webhook) sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(w.secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
