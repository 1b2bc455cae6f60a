// Package gpu finds NVIDIA GPUs and XLA's plugin for them, installs the plugin, and watches a GPU while a run uses it. It loads
// nothing itself.
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

// GPU is one NVIDIA GPU and how it was when it was asked. What it does not tell is −1.
type GPU struct {
	Index       int     `json:"index"` // by PCI bus, as nvidia-smi counts
	UUID        string  `json:"uuid"`
	Name        string  `json:"name"`
	Driver      string  `json:"driver"`
	Memory      int64   `json:"memory"`      // bytes
	Used        int64   `json:"memory_used"` // bytes, by every process
	Utilization float64 `json:"utilization"` // percent of time with a kernel running
	Temperature float64 `json:"temperature"` // °C
	Power       float64 `json:"power"`       // W
}

// patience bounds an answer of nvidia-smi, which takes seconds where the driver must be woken.
const patience = 20 * time.Second

// columns are what nvidia-smi is asked for, in order.
var columns = []string{"index", "uuid", "name", "driver_version", "memory.total", "memory.used", "utilization.gpu", "temperature.gpu", "power.draw"}

// places are where nvidia-smi lies when it is not on the PATH; the last is Windows' subsystem for Linux.
var places = []string{"nvidia-smi", "/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}

// Query asks nvidia-smi for every GPU. The error is a sentence's end, as in "nvidia-smi is not installed".
func Query(ctx context.Context) ([]GPU, error) {
	tool := ""
	for _, place := range places {
		if found, err := exec.LookPath(place); err == nil {
			tool = found
			break
		}
	}
	if tool == "" {
		return nil, errors.New("nvidia-smi, which comes with NVIDIA's driver, is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, "--query-gpu="+strings.Join(columns, ","), "--format=csv,noheader,nounits").CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("nvidia-smi did not answer within %v", patience)
		}
		if said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); said != "" {
			return nil, fmt.Errorf("nvidia-smi failed (%v): %s", err, said)
		}
		return nil, fmt.Errorf("nvidia-smi failed (%v) without a message", err)
	}
	return parse(string(out))
}

// parse reads nvidia-smi's lines.
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

// number reads a number, −1 for "[N/A]" and the like.
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

// Visible are those of all GPUs that CUDA_VISIBLE_DEVICES lets this process use, in its order; set says whether it is set.
// Numbers are taken to count by PCI bus. As CUDA does, it stops at the first that does not exist.
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

// Here are the GPUs that this process may use. Where nvidia-smi cannot say, the error says why, and devices in /dev count.
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
		return nil, errors.New("nvidia-smi lists no GPU")
	}
	if strings.HasPrefix(devices, "MIG-") { // a slice of one GPU; nvidia-smi lists whole ones
		return all[:min(1, len(all))], nil
	}
	seen := Visible(all, devices, set)
	if len(seen) == 0 {
		return nil, fmt.Errorf("of %d GPUs, CUDA_VISIBLE_DEVICES=%s names none", len(all), devices)
	}
	return seen, nil
}

// devicesIn counts the driver's device files, which is all that can be known without nvidia-smi.
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
