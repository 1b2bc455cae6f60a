package run_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"slotscope/handlers/handlertest"
	"slotscope/model"
	"slotscope/model/expect"
)

// TestAlertsOnThePage: the page and the API list alerts, newest first; the page shows their delivery.
func TestAlertsOnThePage(t *testing.T) {
	f, site := runSite(t)
	f.Put("a", model.Running, 300)
	f.Put("b", model.Running, 300)
	f.Alert(model.Alert{Run: "a", Kind: model.AlertRule, Text: "a: total is 2.", Rule: "total>1", Sending: model.Sending{State: model.SendDone, Tries: 1}})
	f.Alert(model.Alert{Run: "a", Kind: model.AlertCollapsed, Text: "a: collapsing.", Sending: model.Sending{State: model.SendFailed, Tries: 10, Problem: "hooks.example answered 500 Internal Server Error"}})
	doc := handlertest.Page(t, handlertest.Get(t, site, "/runs/a"))
	items := doc.Find("[data-testid=alerts] li")
	if items.Length() != 2 || !strings.Contains(items.Eq(0).Text(), "Not delivered to the webhook after 10 attempts: hooks.example answered 500") || !strings.Contains(items.Eq(1).Text(), "Sent to the webhook.") {
		t.Errorf("the page lists %q", items.Text())
	}
	if doc := handlertest.Page(t, handlertest.Get(t, site, "/runs/b")); doc.Find("[data-testid=alerts]").Length() != 0 {
		t.Error("a run without alerts shows some")
	}
	var got struct{ Alerts []model.Alert }
	if w := handlertest.Get(t, site, "/api/runs/a/alerts"); json.Unmarshal(w.Body.Bytes(), &got) != nil || len(got.Alerts) != 2 || got.Alerts[0].Kind != model.AlertCollapsed {
		t.Errorf("the API returns %s", w.Body)
	}
	if w := handlertest.Get(t, site, "/api/runs/gone/alerts"); w.Code != http.StatusNotFound {
		t.Errorf("alerts on an unknown run: %d", w.Code)
	}
}

// recorder replaces the browser's notifications, which headless browsers do not show, and grants or denies permission.
const recorder = `(() => { window.shown = []; window.Notification = class {
  static permission = 'default';
  static async requestPermission() { return (this.permission = window.answer); }
  constructor(title, options) { window.shown.push(title + ' | ' + options.body); }
}; window.answer = '%' })()`

// TestBrowserNotifications: once enabled, each alert is notified once, also after a reconnect; a denied permission is shown at the switch.
func TestBrowserNotifications(t *testing.T) {
	expect.Long(t)
	b := openRuns(t)
	b.Runs.Put("a", model.Running, 300)
	b.Runs.Alert(model.Alert{Run: "a", Name: "first", Kind: model.AlertRule, Text: "told before"})
	b.Open("/runs/a")
	b.Wait(text(connection), "live")
	b.Wait("document.querySelector('[data-testid=notify]').checkVisibility()", "true")
	toggle := func(answer string) {
		b.Eval(strings.Replace(recorder, "%", answer, 1))
		b.Click("[data-testid=notify] input")
	}
	toggle("denied")
	b.Wait(text("[data-part=notify-why]"), "This browser blocks notifications from this site; allow them in the site’s settings.")
	b.Wait("document.querySelector('[data-testid=notify] input').checked", "false")
	toggle("granted")
	b.Wait("document.querySelector('[data-testid=notify] input').checked + document.querySelector('[data-part=notify-why]').textContent", "true")
	b.Runs.Alert(model.Alert{Run: "b", Name: "another", Kind: model.AlertEnded, Text: "of another run"})
	b.Runs.Alert(model.Alert{Run: "a", Name: "first", Kind: model.AlertCollapsed, Text: "perplexity fell"})
	b.Wait("shown.join()", "first: collapsed | perplexity fell")
	b.Wait("document.querySelectorAll('[data-testid=alerts] li').length", "2")
	b.Site.CloseClientConnections() // alerts during the outage arrive after the reconnect
	b.Runs.Alert(model.Alert{Run: "a", Name: "first", Kind: model.AlertEnded, Text: "finished"})
	b.Wait("shown.join()", "first: collapsed | perplexity fell,first: ended | finished")
	b.Click("[data-testid=notify] input")
	b.Runs.Alert(model.Alert{Run: "a", Name: "first", Kind: model.AlertRule, Text: "not wanted"})
	b.Wait("document.querySelectorAll('[data-testid=alerts] li').length", "4")
	b.Wait("shown.length", "2")
}
