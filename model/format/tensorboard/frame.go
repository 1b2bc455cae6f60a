// Package tensorboard reads and writes TensorBoard event files: scalars, images and hyperparameters.
//
// A file is a sequence of TFRecord frames, each an Event of event.proto; field numbers follow tensorboard/compat/proto.
package tensorboard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	frameHead = 12 // u64 length, u32 masked checksum of it
	frameTail = 4  // u32 masked checksum of the content
	maxFrame  = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns TFRecord's checksum: CRC-32C, rotated and offset so that checksums of data that contains checksums stay reliable.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// appendFrame appends content as a frame.
func appendFrame(b, content []byte) []byte {
	le := binary.LittleEndian
	start := len(b)
	b = le.AppendUint64(b, uint64(len(content)))
	b = le.AppendUint32(b, masked(b[start:]))
	b = append(b, content...)
	return le.AppendUint32(b, masked(content))
}

// errIncomplete marks the end of a file that is still being written.
var errIncomplete = errors.New("the last frame is incomplete")

// readFrame reads one frame into buffer, which it may grow, and returns its content. It returns io.EOF at a clean end and errIncomplete
// within a frame. Memory grows with the actual data, not with the claimed length.
func readFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var head [frameHead]byte
	switch _, err := io.ReadFull(r, head[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return buffer, errIncomplete
	case err != nil:
		return buffer, err
	}
	le := binary.LittleEndian
	if le.Uint32(head[8:]) != masked(head[:8]) {
		return buffer, errors.New("the checksum of a frame's length is wrong; the file is damaged or not an event file")
	}
	length := le.Uint64(head[:8])
	if length > maxFrame {
		return buffer, fmt.Errorf("a frame of %d bytes exceeds the limit of %d", length, maxFrame)
	}
	need := int(length) + frameTail
	for have := 0; have < need; {
		step := min(need-have, 1<<20)
		if cap(buffer) < have+step {
			buffer = append(buffer[:have], make([]byte, step)...)
		}
		buffer = buffer[:have+step]
		n, err := io.ReadFull(r, buffer[have:])
		have += n
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return buffer[:have], errIncomplete
		}
		if err != nil {
			return buffer[:have], err
		}
	}
	content := buffer[:length]
	if le.Uint32(buffer[length:]) != masked(content) {
		return content, errors.New("the checksum of a frame is wrong; the file is damaged")
	}
	return content, nil
}
