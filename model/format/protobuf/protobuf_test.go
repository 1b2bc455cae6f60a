package protobuf

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

var errDamaged = errors.New("damaged")

// TestFields reads every kind of field and rejects truncated messages.
func TestFields(t *testing.T) {
	var b []byte
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 300)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), 1<<63)
	b = protowire.AppendFixed32(protowire.AppendTag(b, 3, protowire.Fixed32Type), 7)
	b = protowire.AppendString(protowire.AppendTag(b, 4, protowire.BytesType), "text")
	var got []string
	note := func(field protowire.Number, number uint64, content []byte) error {
		got = append(got, fmt.Sprintf("%d %d %s", field, number, content))
		return nil
	}
	if err := Fields(b, errDamaged, note); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 300 ", "2 9223372036854775808 ", "3 7 ", "4 0 text"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	whole := []int{0, 3, 12, 17, len(b)} // where a field ends
	for n := range len(b) {
		err := Fields(b[:n], errDamaged, note)
		if ended := slices.Contains(whole, n); (err == nil) != ended || !ended && !errors.Is(err, errDamaged) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	stop := errors.New("stop")
	if err := Fields(b, errDamaged, func(protowire.Number, uint64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of visit becomes %v", err)
	}
}
