package train

import (
	"runtime"
	"testing"
	"time"

	"slotscope/model/host"
)

// TestProcessUse: busy work shows as about one processor, memory as what is held, and nothing is told before its time.
func TestProcessUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the memory of a process")
	}
	var w watched
	ballast := make([]byte, 200<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	began := time.Now()
	first := w.take(began)
	if first["process/memory"] < 0.19 || first["process/memory"] > 64 {
		t.Errorf("200 MiB are held, %v GiB are told", first["process/memory"])
	}
	if _, told := first["process/cpu"]; told {
		t.Error("one moment tells no share of time")
	}
	if w.take(began.Add(watchEvery/2)) != nil {
		t.Error("told before its time")
	}
	used := host.CPU()
	for now := used; now-used < 100*time.Millisecond; now = host.CPU() {
	}
	if cpu := w.take(began.Add(watchEvery))["process/cpu"]; cpu < 0.1/watchEvery.Seconds() || cpu > float64(runtime.NumCPU())+1 {
		t.Errorf("%v processors kept busy", cpu)
	}
	runtime.KeepAlive(ballast)
}
