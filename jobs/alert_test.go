//go:build linux

package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/public"
)

// receiver is the endpoint of a webhook. answer returns the status of each request, counted from 1.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	asked  int
	taken  []message
	signs  []bool // whether each accepted message was signed with the secret
	answer func(n int) int
}

const secretPath, secret = "/services/T0P-S3CRET", "k3y"

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		code := r.answer(r.asked)
		body, _ := io.ReadAll(in.Body)
		var m message
		if err := json.Unmarshal(body, &m); err != nil || in.Method != http.MethodPost || in.URL.Path != secretPath || in.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", in.Method, in.URL, err)
		}
		if code == http.StatusOK {
			r.taken = append(r.taken, m)
			r.signs = append(r.signs, in.Header.Get("X-Slotscope-Signature") == "sha256="+(&Webhook{secret: secret}).sign(body))
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(r.Close)
	return r
}

// told lists the run and kind of every accepted message.
func (r *receiver) told() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.taken {
		all = append(all, m.Run.Name+" "+string(m.Kind))
	}
	slices.Sort(all)
	return all
}

func (r *receiver) webhook(t *testing.T) *Webhook {
	t.Helper()
	w, err := NewWebhook(r.URL+secretPath, secret, true)
	if err != nil {
		t.Fatal(err)
	}
	w.first = time.Millisecond
	return w
}

func always(code int) func(int) int { return func(int) int { return code } }

func rule(t *testing.T, text string) model.Condition {
	t.Helper()
	c, err := model.ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitTold waits until the receiver has accepted exactly these messages.
func (b *bench) awaitTold(r *receiver, want ...string) {
	b.t.Helper()
	slices.Sort(want)
	for deadline := time.Now().Add(30 * time.Second); !slices.Equal(r.told(), want); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) || len(r.told()) > len(want) {
			b.t.Fatalf("the receiver has %q, want %q", r.told(), want)
		}
	}
}

// TestAlertsReachTheWebhook checks that ends, failures, divergence and a rule cause one alert per attempt, also if the receiver fails at
// first.
func TestAlertsReachTheWebhook(t *testing.T) {
	r := newReceiver(t, func(n int) int {
		if n <= 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	b := newBench(t, func(o *Options) {
		o.Alerting = Alerting{Webhook: r.webhook(t), Rules: []model.Condition{rule(t, "loss<0.1@12")}}
	})
	well := b.create("well", 30)
	b.awaitState(well, model.Finished)
	want := []string{"well ended", "well rule"}
	b.awaitTold(r, want...)

	failed := b.create("error@7", 30)
	b.awaitState(failed, model.Failed)
	want = append(want, "error@7 failed")
	b.awaitTold(r, want...)

	nan := b.create("nan@5", 30)
	b.awaitState(nan, model.Finished)
	want = append(want, "nan@5 diverged", "nan@5 ended")
	b.awaitTold(r, want...)
	r.mu.Lock()
	first := r.taken[0]
	signed := !slices.Contains(r.signs, false)
	r.mu.Unlock()
	if first.Version != 1 || first.Run.ID != well || first.Run.Path != "/runs/"+well || first.Run.Model != "hrr" || first.Text == "" || first.Time.IsZero() || !signed {
		t.Errorf("the first message is %+v of %+v, all signed: %v", first, first.Run, signed)
	}

	b.restart() // repeats no alert
	if err := b.Resume(t.Context(), well, 40); err != nil {
		t.Fatal(err)
	}
	b.awaitState(well, model.Finished)
	want = append(want, "well ended", "well rule") // of another attempt
	b.awaitTold(r, want...)

	all, err := b.Alerts(t.Context(), model.AlertQuery{Run: well})
	if err != nil || len(all) != 4 || all[0].ID <= all[3].ID {
		t.Fatalf("alerts on the run: %+v, %v", all, err)
	}
	if oldest := all[3].Sending; oldest.State != model.SendDone || oldest.Tries != 3 && all[2].Sending.Tries != 3 || oldest.Problem != "" {
		t.Errorf("delivered after two failures: %+v", all)
	}
	if err := b.Delete(t.Context(), well); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Alerts(t.Context(), model.AlertQuery{Run: well}); err != nil || len(all) != 0 {
		t.Errorf("alerts on a deleted run: %+v, %v", all, err)
	}
}

// TestDeliveredAsTheServerStops checks that an alert accepted while one server stops is not sent again by the next.
func TestDeliveredAsTheServerStops(t *testing.T) {
	asked, stopping := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, func(n int) int {
		if n == 1 {
			close(asked)
			<-stopping
		}
		return http.StatusOK
	})
	b := newBench(t, func(o *Options) { o.Alerting = Alerting{Webhook: r.webhook(t)} })
	b.create("well", 5)
	<-asked
	go func(s *Supervisor) {
		for closed := false; !closed; time.Sleep(time.Millisecond) {
			s.mu.Lock()
			closed = s.closed
			s.mu.Unlock()
		}
		close(stopping)
	}(b.Supervisor)
	b.restart()
	b.awaitState(b.create("again", 5), model.Finished)
	b.awaitTold(r, "again ended", "well ended")
}

// TestAlertsOutliveTheServer checks that the next server delivers what one could not, and that excluded kinds are not sent.
func TestAlertsOutliveTheServer(t *testing.T) {
	down := newReceiver(t, always(http.StatusBadGateway))
	slow := down.webhook(t)
	slow.first = time.Hour // allows a single try
	b := newBench(t, func(o *Options) {
		o.Alerting = Alerting{Webhook: slow, Kinds: []model.AlertKind{model.AlertFailed}}
	})
	b.awaitState(b.create("well", 5), model.Finished)
	id := b.create("error@3", 5)
	b.awaitState(id, model.Failed)
	b.await(id, "try", func(model.Run) bool {
		all, _ := b.Alerts(t.Context(), model.AlertQuery{Run: id})
		return len(all) == 1 && all[0].Sending.Tries == 1 && strings.Contains(all[0].Sending.Problem, "responded with 502 Bad Gateway")
	})
	b.Close()
	up := newReceiver(t, always(http.StatusOK))
	b.opt.Alerting.Webhook = up.webhook(t)
	b.open()
	b.awaitTold(up, "error@3 failed")
}

// TestWebhookFaults checks that errors do not contain the secret in the address, and that only temporary ones are retried.
func TestWebhookFaults(t *testing.T) {
	elsewhere := newReceiver(t, always(http.StatusOK))
	redirect := func(code int) *httptest.Server {
		s := httptest.NewServer(http.RedirectHandler(elsewhere.URL+secretPath, code))
		t.Cleanup(s.Close)
		return s
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	forbidden := newReceiver(t, always(http.StatusForbidden))
	limited := newReceiver(t, always(http.StatusTooManyRequests))
	for _, c := range []struct {
		name, url string
		tries     int
		says      string // "" if delivered
	}{
		{"moved for good", redirect(http.StatusMovedPermanently).URL, 1, "use its final address"},
		{"moved, request kept", redirect(http.StatusPermanentRedirect).URL, 1, ""},
		{"forbidden", forbidden.URL, 1, "responded with 403 Forbidden"},
		{"too many", limited.URL, webhookRetries + 1, "responded with 429 Too Many Requests"},
		{"no server", gone.URL, webhookRetries + 1, "could not be reached: connection refused"},
	} {
		w, err := NewWebhook(c.url+secretPath, secret, true)
		if err != nil {
			t.Fatal(err)
		}
		w.first = time.Microsecond
		tries := 0
		err = w.deliver(t.Context(), messageOf(model.Alert{ID: 7, Kind: model.AlertEnded}, model.Run{ID: "a"}), func(error) { tries++ })
		if tries != c.tries || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v after %d tries; want %q after %d", c.name, err, tries, c.says, c.tries)
		}
		for _, text := range []string{fmt.Sprint(err), fmt.Sprint(w), fmt.Sprintf("%+v %#v", w, w)} {
			if strings.Contains(text, "S3CRET") || strings.Contains(text, secret) {
				t.Errorf("%s: a secret is printed: %s", c.name, text)
			}
		}
	}
}

// TestPrivateWebhooksNeedPermission checks private addresses in every form.
func TestPrivateWebhooksNeedPermission(t *testing.T) {
	r := newReceiver(t, always(http.StatusOK))
	port := r.URL[strings.LastIndex(r.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.169.254"} {
		if _, err := NewWebhook("http://"+host+port+secretPath, "", false); err == nil || !strings.Contains(err.Error(), AllowPrivateWebhook) || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", host, err)
		}
	}
	w, err := NewWebhook("https://hooks.example/x", "", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, guarded := w.client.Transport.(*public.Transport); !guarded { // its own tests cover redirects and names whose address changes
		t.Errorf("connects by %T", w.client.Transport)
	}
	w.url.Host = "127.0.0.1" + port // like a name that now resolves to this machine
	tries := 0
	err = w.deliver(t.Context(), message{}, func(error) { tries++ })
	if refused := (public.Refused{}); !errors.As(err, &refused) || tries != 1 || len(r.told()) != 0 {
		t.Errorf("%d tries: %v", tries, err)
	}
	for _, address := range []string{"", "hooks.example/S3CRET", "ftp://x/S3CRET", "https://", "http://a b/S3CRET", "://S3CRET"} {
		if _, err := NewWebhook(address, "", false); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
