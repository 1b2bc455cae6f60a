package gpu

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// exhausted are the words with which XLA says that a GPU's memory did not suffice.
var exhausted = []string{"RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "CUDA_ERROR_OUT_OF_MEMORY"}

var wanted = regexp.MustCompile(`(?i)(?:allocate|allocating|requested)\s+([0-9.]+)\s?(GiB|MiB|KiB|bytes|B)?`)

// Use is what a run wanted of a GPU's memory when that did not suffice. Amounts are in bytes.
type Use struct {
	Batch      int
	Parameters int
	Total      int64   // of the GPU; −1 where it is not known
	Share      float64 // of it that the run may take; 0 for all
	Dataset    int64   // that lies on the GPU, or was being copied there; 0 for none
	Copying    bool    // the dataset was being copied, which takes its size twice; no step had begun
}

// OutOfMemory turns XLA's complaint into a sentence that says what would fit: which batch, or the dataset elsewhere. ok is false for any
// other error.
//
// What a step needs grows with the batch but for the learned numbers, each of which takes 16 bytes (itself, its gradient and AdamW's
// two means), and for the dataset. Where the GPU's memory is not known, half the batch is proposed.
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
		beside = fmt.Sprintf(" beside the dataset of %s", gibibytes(u.Dataset))
		elsewhere = " With SLOTSCOPE_RESIDENT=never the dataset stays on the host, and the GPU's memory is the batch's."
	}
	if u.Copying {
		return fmt.Sprintf("The GPU's memory%s is too small for the dataset of %s, which takes twice that while it is copied there; a batch of %d images was not tried.%s",
			room, gibibytes(u.Dataset), u.Batch, elsewhere), true
	}
	fits := u.fits(bytesIn(complaint))
	if u.Batch <= 1 || fits < 1 {
		if u.Dataset > 0 {
			return fmt.Sprintf("The GPU's memory%s is too small for this network%s even with a batch of one image.%s", room, beside, elsewhere), true
		}
		return fmt.Sprintf("The GPU's memory%s is too small for this network even with a batch of one image. A narrower preset may fit.", room), true
	}
	return fmt.Sprintf("The GPU's memory%s is too small for a batch of %d images%s; %d should fit.%s", room, u.Batch, beside, fits, elsewhere), true
}

// fits is how many images there is room for: half the batch at most, and else a power of two; asked is what the batch wanted at once.
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

// bytesIn is the largest amount that a complaint names.
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

// powerOfTwo is the largest power of two up to n.
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
