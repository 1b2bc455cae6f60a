package model

import (
	"encoding/json"
	"testing"
)

// Older run folders store asks as assignments, one per line.
func TestAsksOfOlderFolders(t *testing.T) {
	want := AsksOf("partition=gpu", "account=", "line=--nice", "line=--constraint=h100")
	for _, text := range []string{`"partition=gpu\naccount=\nline=--nice\nline=--constraint=h100\n"`, `{"partition":["gpu"],"account":[],"line":["--nice","--constraint=h100"]}`} {
		var got Asks
		if err := json.Unmarshal([]byte(text), &got); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := json.Marshal(got); err != nil || string(again) != want.Key() {
			t.Errorf("%s, %v", again, err)
		}
	}
	if AsksOf("gpus=1").Equal(AsksOf("gpus=")) || AsksOf("gpus=").Equal(nil) {
		t.Error("an option left to the cluster must differ from one left to the server")
	}
}
