// Package weights writes the parts of a checkpoint that a browser needs as one file: the encoder, the bottleneck with its computed codebook,
// and the decoder, in the layout of the WebAssembly module tools/codec/codec.c. The same checkpoint gives the same bytes.
//
//	offset  size  field
//	0       8     "SLOTWTS" and the version, 1
//	8       4     CRC-32 (IEEE) of all bytes from 12 on
//	12      4     type of the numbers: 0 float32, 1 float16
//	16      4     latent: 0 HRR, 1 VQ-VAE, 2 QLAE or Tripod, 3 numbers: a VAE, AE or BioAE
//	20      4     binding: 0 none, 1 circular, 2 matrices, 3 gathered
//	24      4     flags: 1 has a denoiser, 2 has separate inverse vectors, 4 latents pass through tanh
//	28      12    H, W and C of images
//	40      16    channels of Conv 1 to 4
//	56      20    width of the style, m, k (0 for numbers), length d of a slot's value, length n of z
//	76      4     gain of z, float32: z = encoder(x)·gain, and the decoder reads ẑ/gain
//	80      4     count of the numbers
//	84      12    0
//	96            the numbers
//
// All fields are little-endian. Every tensor begins at a multiple of four numbers. n' denotes n padded with zeros to a multiple of four.
// The tensors are, in order:
//
//	Conv 1 to 4      kernel [4, 4, in, out'], gain [out'] and bias [out'] of the instance norm
//	FC 1, FC 2       weight [out, in'], bias [out]; FC 1 reads [H/16, W/16, c']; for a VAE, FC 2 has only the means
//	binding          circular: symbols [m, d], then with flag 2 the vectors that unbind [m, d]; matrices: M_i, [m, d, d'];
//	                 gathered: 1 + the component of a slot's value for each component of z, 0 for none, modulo 2048 [m, d]
//	                 and divided by 2048 [m, d], then their factor [1]
//	denoiser         weight [2d, d'], bias [2d], weight [d, 2d'], bias [d], with flag 1
//	codebook         [k, d'], for QLAE and Tripod [m, k], for real-valued slots nothing
//	style, canvas    weight [fc, n'], bias [fc]; [H/16, W/16, c']
//	Up 1 to 4        kernel [4, 4, in, out'], weight [out', fc'] and bias [out'] of the scale, then of the shift
//	output           kernel [3, 3, in, 4]
package weights

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"strings"

	"github.com/x448/float16"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// Type is the storage type of numbers.
type Type uint32

const (
	Float32 Type = 0
	Float16 Type = 1
)

const (
	magic      = "SLOTWTS\x01"
	headerSize = 96
)

// latents are the header's codes for bottlenecks, by model.
var latents = map[string]uint32{"hrr": 0, "vqvae": 1, "qlae": 2, "betavae": reals, "betatcvae": reals, "ae": reals, "bioae": reals,
	"factorvae": reals, "annealedvae": reals, "dipvae1": reals, "dipvae2": reals, "tripod": 2}

const reals = 3 // slots hold real numbers

// Encode returns a checkpoint as a weights file. The error is model.Invalid if the checkpoint is not a complete model.
func Encode(file checkpoint.File, t Type) ([]byte, error) {
	p, err := newPacker(file)
	if err != nil {
		return nil, err
	}
	if err := p.pack(); err != nil {
		return nil, err
	}
	return p.write(t), nil
}

func (t Type) size() int {
	if t == Float16 {
		return 2
	}
	return 4
}

// write returns the header and the numbers.
func (p *packer) write(t Type) []byte {
	c := p.config
	k := c.K
	if p.latent == reals {
		k = 0
	}
	out := append(make([]byte, 0, headerSize+len(p.numbers)*t.size()), magic...)
	le := binary.LittleEndian
	for _, n := range []uint32{0, uint32(t), p.latent, p.binding, p.flags, uint32(p.h), uint32(p.w), uint32(p.c),
		uint32(c.Widths[0]), uint32(c.Widths[1]), uint32(c.Widths[2]), uint32(c.Widths[3]),
		uint32(c.FC), uint32(c.M), uint32(k), uint32(p.d), uint32(p.n), math.Float32bits(p.gain), uint32(len(p.numbers)), 0, 0, 0} {
		out = le.AppendUint32(out, n)
	}
	for _, v := range p.numbers {
		if t == Float16 {
			out = le.AppendUint16(out, float16.Fromfloat32(v).Bits())
		} else {
			out = le.AppendUint32(out, math.Float32bits(v))
		}
	}
	le.PutUint32(out[8:], crc32.ChecksumIEEE(out[12:]))
	return out
}

// tensor returns a tensor of the checkpoint, which must have the given shape.
func (p *packer) tensor(name string, shape ...int) ([]float32, error) {
	t, ok := p.file.Tensors[name]
	fits := ok && len(t.Shape) == len(shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = t.Shape[i] == shape[i]
	}
	if !fits {
		return nil, model.Invalid{"checkpoint": fmt.Sprintf("tensor %q has shape %v, but the configuration requires %v", name, t.Shape, shape)}
	}
	return t.Data, nil
}

// Rounded returns the checkpoint with all numbers rounded to Float16, so that an engine computes from it what a browser computes from a
// Float16 file. A generated codebook becomes a free one.
func Rounded(file checkpoint.File) (checkpoint.File, error) {
	out := file
	out.Tensors = make(map[string]checkpoint.Tensor, len(file.Tensors))
	maps.Copy(out.Tensors, file.Tensors)
	if _, generated := out.Tensors["seeds"]; generated {
		p, err := newPacker(file)
		if err != nil {
			return file, err
		}
		entries := p.entries()
		if p.err != nil {
			return file, p.err
		}
		maps.DeleteFunc(out.Tensors, func(name string, _ checkpoint.Tensor) bool {
			return name == "seeds" || strings.HasPrefix(name, "generator")
		})
		out.Config.FreeCodebook = true
		out.Tensors["codebook"] = checkpoint.Tensor{Shape: []int{file.Config.K, file.Config.D}, Data: entries}
	}
	for name, t := range out.Tensors {
		if name == "binding" && file.Config.Binding == "permutation" {
			continue // integers, which the file stores in two parts
		}
		data := make([]float32, len(t.Data))
		for i, v := range t.Data {
			data[i] = float16.Fromfloat32(v).Float32()
		}
		out.Tensors[name] = checkpoint.Tensor{Shape: t.Shape, Data: data}
	}
	return out, nil
}

// Planes regroups the bytes of a file's numbers, all first bytes, then all second bytes and so on, which compresses better.
func Planes(file []byte) []byte {
	size := Type(binary.LittleEndian.Uint32(file[12:])).size()
	out := append(make([]byte, 0, len(file)), file[:headerSize]...)
	for b := range size {
		for at := headerSize + b; at < len(file); at += size {
			out = append(out, file[at])
		}
	}
	return out
}
