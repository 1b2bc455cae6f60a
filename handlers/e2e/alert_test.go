//go:build linux

package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"slotscope/model"
)

// TestAlertReachesALocalReceiver checks that signed alerts of a real training arrive once the operator allows private addresses, and that
// the webhook's URL stays secret everywhere.
func TestAlertReachesALocalReceiver(t *testing.T) {
	t.Parallel()
	type message struct {
		Kind, Text, Rule string
		Run              struct{ ID, State string }
	}
	var mu sync.Mutex
	var got []message
	signed := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.URL.Path != "/S3CRET-hook" {
			t.Errorf("%s received %v", r.URL, err)
		}
		signed = signed && strings.HasPrefix(r.Header.Get("X-Slotscope-Signature"), "sha256=")
		got = append(got, m)
	}))
	defer receiver.Close()

	dir := t.TempDir()
	write := func(permission string) {
		text := `{"webhook": "` + receiver.URL + `/S3CRET-hook", "secret": "S3CRET-key"` + permission + `, "rules": ["loss>0@2"]}`
		if err := os.WriteFile(filepath.Join(dir, "alerts.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	out, err := command(t, "serve", "--shipped=false", "--addr", "127.0.0.1:0", "--data", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--allow-private-webhook") || strings.Contains(string(out), "S3CRET") {
		t.Fatalf("without permission: output %s, %v", out, err)
	}

	write(`, "allow_private": true`)
	s := serve(t, dir)
	var run model.Run
	s.want(http.StatusCreated, "POST", "/api/runs", tinyConfig("dataset=shapes3d-synthetic", "model=hrr", "preset=tiny", "steps=4"), &run)
	s.reachState(run.ID, model.Finished)
	kinds := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range got {
			all = append(all, m.Kind+" "+m.Run.ID+" "+m.Rule)
		}
		slices.Sort(all)
		return all
	}
	want := []string{"ended " + run.ID + " ", "rule " + run.ID + " total>0@2"}
	await(t, "both alerts arrive", func() bool { return slices.Equal(kinds(), want) })
	s.want(http.StatusNoContent, "POST", "/api/alerts/test", map[string]any{}, nil)
	if all := kinds(); len(all) != 3 || all[2] != "test  " || !signed {
		t.Errorf("the receiver got %q, all signed: %v", all, signed)
	}
	for _, path := range []string{"/system", "/api/system", "/api/alerts", "/runs/" + run.ID, "/api/runs/" + run.ID + "/alerts", "/api/runs/" + run.ID + "/log", "/metrics"} {
		if _, answer := s.call("GET", path, nil, nil); strings.Contains(answer, "S3CRET") {
			t.Errorf("%s shows a secret", path)
		}
	}
	receiver.Close()
	if status, answer := s.call("POST", "/api/alerts/test", map[string]any{}, nil); status != http.StatusConflict || !strings.Contains(answer, "could not be reached") || strings.Contains(answer, "S3CRET") {
		t.Errorf("a receiver that is gone: %d %s", status, answer)
	}
	s.close()
	if strings.Contains(s.log.String(), "S3CRET") {
		t.Error("the log shows a secret")
	}
}
