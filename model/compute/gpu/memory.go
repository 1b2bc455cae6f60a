package gpu

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// exhausted are the phrases with which XLA reports that a GPU ran out of memory.
var exhausted = []string{"RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "CUDA_ERROR_OUT_OF_MEMORY"}

var wanted = regexp.MustCompile(`(?i)(?:allocate|allocating|requested)\s+([0-9.]+)\s?(GiB|MiB|KiB|bytes|B)?`)

// Use describes the memory demand of a run when a GPU ran out of memory. Amounts are in bytes.
type Use struct {
	Batch      int
	Parameters int
	Total      int64   // memory of the GPU; −1 if unknown
	Share      float64 // share of it that the run may use; 0 for all
	Dataset    int64   // size of the dataset on the GPU, or being copied there; 0 for none
	Copying    bool    // whether the dataset was being copied, which takes twice its size; no step had started
}

// OutOfMemory turns XLA's error into a message that says what would fit: a smaller batch, or the dataset on the host. ok is false for other
// errors.
//
// The memory of a step is proportional to the batch, except for the parameters, which take 16 bytes each (the parameter, its gradient and
// AdamW's two moments), and the dataset. If the GPU's memory is unknown, half the batch is suggested.
func OutOfMemory(complaint string, u Use) (sentence string, ok bool) {
	for _, words := range exhausted {
		ok = ok || strings.Contains(complaint, words)
	}
	if !ok {
		return "", false
	}
	room, beside, elsewhere := "", "", ""
	if u.Total > 0 {
		room = " of " + gibibytes(u.Total)
	}
	if u.Dataset > 0 {
		beside = fmt.Sprintf(" in addition to the dataset of %s", gibibytes(u.Dataset))
		elsewhere = " A run with resident=never keeps the dataset on the host, which leaves the GPU's memory to the batch."
	}
	if u.Copying {
		return fmt.Sprintf("The GPU's memory%s is too small for the dataset of %s, which takes twice that while it is copied; a batch of %d images was not tried.%s",
			room, gibibytes(u.Dataset), u.Batch, elsewhere), true
	}
	fits := u.fits(bytesIn(complaint))
	if u.Batch <= 1 || fits < 1 {
		if u.Dataset > 0 {
			return fmt.Sprintf("The GPU's memory%s is too small for this network%s even with a batch of one image.%s", room, beside, elsewhere), true
		}
		return fmt.Sprintf("The GPU's memory%s is too small for this network even with a batch of one image. Try a smaller preset.", room), true
	}
	return fmt.Sprintf("The GPU's memory%s is too small for a batch of %d images%s; %d should fit.%s", room, u.Batch, beside, fits, elsewhere), true
}

// fits returns the number of images that fit: a power of two, or at most half the batch. asked is the size of the failed allocation.
func (u Use) fits(asked int64) int {
	share := u.Share
	if share == 0 {
		share = 1
	}
	free := int64(share*float64(u.Total)) - int64(u.Parameters)*16 - u.Dataset
	switch {
	case u.Total > 0 && free <= 0:
		return 0
	case u.Total <= 0 || asked <= free:
		return u.Batch / 2
	}
	return min(u.Batch/2, powerOfTwo(int(float64(u.Batch)*float64(free)/float64(asked))))
}

// bytesIn returns the largest amount in an error message.
func bytesIn(complaint string) (most int64) {
	for _, m := range wanted.FindAllStringSubmatch(complaint, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue
		}
		switch m[2] {
		case "GiB":
			v *= 1 << 30
		case "MiB":
			v *= 1 << 20
		case "KiB":
			v *= 1 << 10
		}
		most = max(most, int64(v))
	}
	return most
}

// powerOfTwo returns the largest power of two up to n.
func powerOfTwo(n int) int {
	p := 0
	for q := 1; q <= n; q *= 2 {
		p = q
	}
	return p
}

func gibibytes(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
}
