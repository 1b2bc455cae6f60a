package adopt

import (
	"bufio"
	"bytes"
)

// ReadAnswer parses an answer to encode for n images.
func ReadAnswer(answer []byte, n, m, k int) (Slots, error) {
	r := bufio.NewReader(bytes.NewReader(answer))
	var ok struct{}
	if err := readLine(r, &ok); err != nil {
		return Slots{}, err
	}
	return (&Model{Hello: Hello{Slots: m, Codes: k}}).readSlots(r, n)
}

// ReadHello parses an answer to hello.
func ReadHello(answer []byte) (Hello, error) {
	var h Hello
	if err := readLine(bufio.NewReader(bytes.NewReader(answer)), &h); err != nil {
		return h, err
	}
	return h, h.check()
}
