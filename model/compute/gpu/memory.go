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

// OutOfMemory turns XLA's complaint into a sentence that says which batch would fit; ok is false for any other error.
//
// What a step needs grows with the batch but for the learned numbers, each of which takes 16 bytes: itself, its gradient and
// AdamW's two means. total is the GPU's memory in bytes, −1 where it is not known: then half the batch is proposed.
func OutOfMemory(complaint string, batch, parameters int, total int64) (sentence string, ok bool) {
	for _, words := range exhausted {
		ok = ok || strings.Contains(complaint, words)
	}
	if !ok {
		return "", false
	}
	fixed := int64(parameters) * 16
	asked := bytesIn(complaint)
	fits := batch / 2
	if free := total - fixed; total > 0 && asked > free && free > 0 {
		fits = min(fits, powerOfTwo(int(float64(batch)*float64(free)/float64(asked))))
	}
	room := ""
	if total > 0 {
		room = " of " + gibibytes(total)
	}
	if batch <= 1 || fits < 1 {
		return fmt.Sprintf("The GPU's memory%s does not suffice for this network even with a batch of one image. A narrower preset may fit.", room), true
	}
	return fmt.Sprintf("The GPU's memory%s does not suffice for a batch of %d images; %d should fit.", room, batch, fits), true
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
