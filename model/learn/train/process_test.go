package train

import (
	"runtime"
	"testing"
	"time"

	"slotscope/model/host"
)

// TestProcessUse: a busy loop is reported as about one processor, held memory is reported, and nothing is reported before it is due.
func TestProcessUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process memory is available only on Linux")
	}
	var w watched
	ballast := make([]byte, 200<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	began := time.Now()
	first := w.take(began)
	if first["process/memory"] < 0.19 || first["process/memory"] > 64 {
		t.Errorf("200 MiB are held, %v GiB are reported", first["process/memory"])
	}
	if _, told := first["process/cpu"]; told {
		t.Error("CPU use is reported after a single measurement")
	}
	if w.take(began.Add(watchEvery/2)) != nil {
		t.Error("reported before it is due")
	}
	used := host.CPU()
	for now := used; now-used < 100*time.Millisecond; now = host.CPU() {
	}
	if cpu := w.take(began.Add(watchEvery))["process/cpu"]; cpu < 0.1/watchEvery.Seconds() || cpu > float64(runtime.NumCPU())+1 {
		t.Errorf("%v processors kept busy", cpu)
	}
	runtime.KeepAlive(ballast)
}
