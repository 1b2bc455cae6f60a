package parquet

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	half "github.com/x448/float16"
)

// Strings formats every value by its logical type: decimals with their point, dates and times in ISO 8601, floats in the shortest form that
// is exact.
func (c Column) Strings(v *Values) ([]string, error) {
	out := make([]string, 0, v.Len())
	for _, n := range v.Ints {
		out = append(out, c.integer(n))
	}
	bits := 64
	if c.Type == Float {
		bits = 32
	}
	for _, x := range v.Floats {
		out = append(out, strconv.FormatFloat(x, 'g', -1, bits))
	}
	for i, b := range v.Bytes {
		text, err := c.text(b)
		if err != nil {
			return nil, fmt.Errorf("column %q: value %d: %w", c.Path, i, err)
		}
		out = append(out, text)
	}
	return out, nil
}

func (c Column) integer(n int64) string {
	unit := int64(time.Second)
	for range c.scale {
		if unit > 1 {
			unit /= 10
		}
	}
	switch c.meaning {
	case decimal:
		return point(big.NewInt(n), c.scale)
	case date:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(n)).Format(time.DateOnly)
	case clock:
		seconds, fraction := n/(int64(time.Second)/unit), n%(int64(time.Second)/unit)*unit
		return time.Unix(seconds, fraction).UTC().Format("15:04:05.999999999")
	case instant:
		per := int64(time.Second) / unit
		return time.Unix(n/per, n%per*unit).UTC().Format("2006-01-02T15:04:05.999999999Z")
	case unsigned:
		if c.Type == Int32 {
			return strconv.FormatUint(uint64(uint32(n)), 10)
		}
		return strconv.FormatUint(uint64(n), 10)
	}
	return strconv.FormatInt(n, 10)
}

func (c Column) text(b []byte) (string, error) {
	switch {
	case c.meaning == decimal:
		n := new(big.Int).SetBytes(b) // two's complement, most significant byte first
		if len(b) > 0 && b[0] >= 128 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return point(n, c.scale), nil
	case c.meaning == float16 && len(b) == 2:
		return strconv.FormatFloat(float64(half.Frombits(uint16(b[0])|uint16(b[1])<<8).Float32()), 'g', -1, 32), nil
	case c.meaning == uuid || c.Type == FixedLength:
		return hex.EncodeToString(b), nil
	case !utf8.Valid(b):
		return "", fmt.Errorf("its %d bytes are not UTF-8 text", len(b))
	}
	return string(b), nil
}

// point formats n · 10^−scale.
func point(n *big.Int, scale int) string {
	digits := new(big.Int).Abs(n).String()
	if scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = string(slices.Concat([]byte(digits[:len(digits)-scale]), []byte("."), []byte(digits[len(digits)-scale:])))
	}
	if n.Sign() < 0 {
		return "-" + digits
	}
	return digits
}
