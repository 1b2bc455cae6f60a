package db

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
)

// TestAlertsAreStoredOnce checks that each kind and each rule is stored once per attempt, that alerts are listed newest first, and that
// they are deleted with their run.
func TestAlertsAreStoredOnce(t *testing.T) {
	d, ctx := newDB(t), t.Context()
	for _, id := range []string{"a", "b"} {
		if err := d.SaveRun(ctx, model.Run{ID: id, Name: "run " + id}); err != nil {
			t.Fatal(err)
		}
	}
	at := time.UnixMilli(1_700_000_000_123).UTC()
	alert := func(run string, kind model.AlertKind, attempt int, rule string, state model.SendState) model.Alert {
		return model.Alert{Run: run, Name: "run " + run, Kind: kind, Attempt: attempt, Rule: rule, Step: 7, Text: "text", Time: at, Sending: model.Sending{State: state}}
	}
	for _, c := range []struct {
		model.Alert
		added bool
	}{
		{alert("a", model.AlertDiverged, 1, "not-finite", ""), true},
		{alert("a", model.AlertDiverged, 1, "loss-rose", ""), false}, // same kind as before
		{alert("a", model.AlertDiverged, 2, "loss-rose", ""), true},
		{alert("a", model.AlertRule, 1, "total>1", model.SendQueued), true},
		{alert("a", model.AlertRule, 1, "total>2", model.SendQueued), true},
		{alert("a", model.AlertRule, 1, "total>2", model.SendQueued), false},
		{alert("b", model.AlertDiverged, 1, "not-finite", ""), true},
		{alert("gone", model.AlertEnded, 1, "", ""), false},
	} {
		if added, err := d.AddAlert(ctx, c.Alert); added != c.added || err != nil {
			t.Errorf("%+v: added %v, %v", c.Alert, added, err)
		}
	}
	all, err := d.Alerts(ctx, model.AlertQuery{})
	if err != nil || len(all) != 5 || all[0].Run != "b" || all[0].ID <= all[4].ID {
		t.Fatalf("all alerts: %+v, %v", all, err)
	}
	want := alert("a", model.AlertDiverged, 1, "not-finite", "")
	want.ID = all[4].ID
	if diff := cmp.Diff(want, all[4]); diff != "" {
		t.Error("read back: ", diff)
	}
	if later, err := d.Alerts(ctx, model.AlertQuery{Run: "a", After: all[4].ID, Limit: 2}); err != nil || len(later) != 2 || later[0].Rule != "total>2" || later[1].Rule != "total>1" {
		t.Errorf("the newest of a run: %+v, %v", later, err)
	}

	queued, err := d.QueuedAlerts(ctx)
	if err != nil || len(queued) != 2 || queued[0].Rule != "total>1" {
		t.Fatalf("queued: %+v, %v", queued, err)
	}
	sent := model.Sending{State: model.SendDone, Tries: 3, Sent: at, Problem: ""}
	if err := d.SetSending(ctx, queued[0].ID, sent); err != nil {
		t.Fatal(err)
	}
	if left, err := d.QueuedAlerts(ctx); err != nil || len(left) != 1 || left[0].Rule != "total>2" {
		t.Errorf("queued after one was sent: %+v, %v", left, err)
	}
	if got, err := d.Alerts(ctx, model.AlertQuery{Run: "a"}); err != nil || got[1].Sending != sent {
		t.Errorf("sent: %+v, %v", got, err)
	}
	newest := all[0].ID
	if err := d.DeleteRun(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.AddAlert(ctx, alert("a", model.AlertEnded, 1, "", "")); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Alerts(ctx, model.AlertQuery{}); err != nil || len(all) != 5 || all[0].ID <= newest {
		t.Errorf("IDs are reused after a run was deleted: %+v, %v", all, err)
	}
}
