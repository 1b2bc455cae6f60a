// Package gpu finds NVIDIA GPUs and XLA plugins for them, installs plugins, and monitors a GPU while a run uses it. It does not load plugins.
package gpu

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GPU is one NVIDIA GPU and its state when queried. Unknown numbers are −1.
type GPU struct {
	Index       int     `json:"index"` // in PCI bus order, as in nvidia-smi
	UUID        string  `json:"uuid"`
	Name        string  `json:"name"`
	Driver      string  `json:"driver"`
	Memory      int64   `json:"memory"`      // bytes
	Used        int64   `json:"memory_used"` // bytes used by all processes
	Utilization float64 `json:"utilization"` // percent of time with a kernel running
	Temperature float64 `json:"temperature"` // °C
	Power       float64 `json:"power"`       // W
}

// patience is the timeout of nvidia-smi, which takes seconds if the driver has to be loaded.
const patience = 20 * time.Second

// columns are the queried fields, in order.
var columns = []string{"index", "uuid", "name", "driver_version", "memory.total", "memory.used", "utilization.gpu", "temperature.gpu", "power.draw"}

// places are the paths of nvidia-smi to try: the PATH, then usual places; the last is that of the Windows Subsystem for Linux.
var places = []string{"nvidia-smi", "/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}

// Query lists all GPUs with nvidia-smi. The error is a clause, as in "nvidia-smi is not installed".
func Query(ctx context.Context) ([]GPU, error) {
	tool := ""
	for _, place := range places {
		if found, err := exec.LookPath(place); err == nil {
			tool = found
			break
		}
	}
	if tool == "" {
		return nil, errors.New("nvidia-smi, which is part of the NVIDIA driver, is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, "--query-gpu="+strings.Join(columns, ","), "--format=csv,noheader,nounits").CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("nvidia-smi did not respond within %v", patience)
		}
		if said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); said != "" {
			return nil, fmt.Errorf("nvidia-smi failed (%v): %s", err, said)
		}
		return nil, fmt.Errorf("nvidia-smi failed (%v) without a message", err)
	}
	return parse(string(out))
}

// parse parses nvidia-smi's output.
func parse(out string) ([]GPU, error) {
	r := csv.NewReader(strings.NewReader(out))
	r.TrimLeadingSpace, r.FieldsPerRecord = true, len(columns)
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi's output could not be parsed: %w", err)
	}
	all := make([]GPU, 0, len(lines))
	for _, f := range lines {
		index, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi's output could not be parsed: %q is not a GPU index", f[0])
		}
		all = append(all, GPU{Index: index, UUID: f[1], Name: f[2], Driver: f[3], Memory: mebibytes(f[4]), Used: mebibytes(f[5]),
			Utilization: number(f[6]), Temperature: number(f[7]), Power: number(f[8])})
	}
	return all, nil
}

// number parses a number; "[N/A]" and other text give −1.
func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return v
}

func mebibytes(text string) int64 {
	v := number(text)
	if v < 0 {
		return -1
	}
	return int64(v) << 20
}

// Visible returns the GPUs that CUDA_VISIBLE_DEVICES allows, in its order; set reports whether the variable is set. Numbers are assumed to
// be in PCI bus order. Like CUDA, it stops at the first device that does not exist.
func Visible(all []GPU, devices string, set bool) []GPU {
	if !set {
		return all
	}
	var seen []GPU
	for one := range strings.SplitSeq(devices, ",") {
		one = strings.TrimSpace(one)
		i := slices.IndexFunc(all, func(g GPU) bool {
			return strconv.Itoa(g.Index) == one || strings.HasPrefix(one, "GPU-") && strings.HasPrefix(g.UUID, one)
		})
		if i < 0 {
			break
		}
		seen = append(seen, all[i])
	}
	return seen
}

// Here returns the GPUs that this process may use. If nvidia-smi fails, it returns the devices in /dev together with the error.
func Here(ctx context.Context) ([]GPU, error) {
	devices, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if set && (devices == "" || strings.HasPrefix(devices, "-1")) {
		return nil, errors.New("CUDA_VISIBLE_DEVICES hides every GPU")
	}
	all, err := Query(ctx)
	if err != nil {
		return devicesIn("/dev"), err
	}
	if len(all) == 0 {
		return nil, errors.New("nvidia-smi lists no GPUs")
	}
	if strings.HasPrefix(devices, "MIG-") { // a slice of one GPU; nvidia-smi lists whole ones
		return all[:min(1, len(all))], nil
	}
	seen := Visible(all, devices, set)
	if len(seen) == 0 {
		return nil, fmt.Errorf("CUDA_VISIBLE_DEVICES=%s matches none of the %d GPUs", devices, len(all))
	}
	return seen, nil
}

// devicesIn returns a GPU for each device file of the driver, which is all that is known without nvidia-smi.
func devicesIn(dev string) []GPU {
	entries, _ := os.ReadDir(dev)
	var all []GPU
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "nvidia")); err == nil && strings.HasPrefix(e.Name(), "nvidia") {
			all = append(all, GPU{Index: n, Name: "NVIDIA GPU", Memory: -1, Used: -1, Utilization: -1, Temperature: -1, Power: -1})
		}
	}
	return all
}
