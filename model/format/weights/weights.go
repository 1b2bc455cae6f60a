// Package weights writes what a browser needs of a checkpoint as one file: the encoder, the bottleneck with its codebook computed,
// and the decoder, laid out as the WebAssembly module tools/codec/codec.c reads them. The same checkpoint gives the same bytes.
//
//	offset  size  field
//	0       8     "SLOTWTS" and the version, 1
//	8       4     CRC-32 (IEEE) of all bytes from 12 on
//	12      4     type of the numbers: 0 float32, 1 float16
//	16      4     latent: 0 HRR, 1 VQ-VAE, 2 QLAE or Tripod, 3 numbers: a VAE, AE or BioAE
//	20      4     binding: 0 none, 1 circular, 2 matrices, 3 gathered
//	24      4     flags: 1 there is a denoiser, 2 the inverses have vectors of their own, 4 latents pass a tanh
//	28      12    H, W and C of images
//	40      16    channels of Conv 1 to 4
//	56      20    width of the style, m, k (0 for numbers), length d of a slot's value, length n of z
//	76      4     gain of z, float32: z = encoder(x)·gain, and the decoder reads ẑ/gain
//	80      4     count of numbers that follow
//	84      12    0
//	96            the numbers
//
// All is little-endian. Every tensor begins at a multiple of four numbers; a length written n' is n padded with zeros to a multiple
// of four. The tensors are, in order:
//
//	Conv 1 to 4      kernel [4, 4, in, out'], gain [out'] and bias [out'] of the instance norm
//	FC 1, FC 2       weight [out, in'], bias [out]; FC 1 reads [H/16, W/16, c'], and of a VAE's FC 2 only the means are kept
//	binding          circular: symbols [m, d], then with flag 2 the vectors that unbind [m, d]; matrices: M_i, [m, d, d'];
//	                 gathered: 1 + the component of a slot's value that each component of z takes, 0 for none, modulo 2048 [m, d]
//	                 and divided by it [m, d], then their factor [1]
//	denoiser         weight [2d, d'], bias [2d], weight [d, 2d'], bias [d], with flag 1
//	codebook         [k, d'], for QLAE and Tripod [m, k], for numbers nothing
//	style, canvas    weight [fc, n'], bias [fc]; [H/16, W/16, c']
//	Up 1 to 4        kernel [4, 4, in, out'], weight [out', fc'] and bias [out'] of the scale, the same of the shift
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

// Type is how numbers are stored.
type Type uint32

const (
	Float32 Type = 0
	Float16 Type = 1
)

const (
	magic      = "SLOTWTS\x01"
	headerSize = 96
)

// latents are the header's names of bottlenecks.
var latents = map[string]uint32{"hrr": 0, "vqvae": 1, "qlae": 2, "betavae": reals, "betatcvae": reals, "ae": reals, "bioae": reals,
	"factorvae": reals, "annealedvae": reals, "dipvae1": reals, "dipvae2": reals, "tripod": 2}

const reals = 3 // slots hold numbers

// Encode writes a checkpoint as a weights file. A checkpoint that is not a whole model is model.Invalid.
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

// write puts header and numbers together.
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

// tensor is one of the checkpoint's, which must be there in the shape that the configuration gives it.
func (p *packer) tensor(name string, shape ...int) ([]float32, error) {
	t, ok := p.file.Tensors[name]
	fits := ok && len(t.Shape) == len(shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = t.Shape[i] == shape[i]
	}
	if !fits {
		return nil, model.Invalid{"checkpoint": fmt.Sprintf("tensor %q has shape %v; the configuration gives it %v", name, t.Shape, shape)}
	}
	return t.Data, nil
}

// Rounded is the checkpoint whose numbers are those that Float16 keeps: what a browser computes from such a file, an engine computes
// from this. A generated codebook becomes one that stands for itself.
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
			continue // whole numbers, which the file writes in two parts
		}
		data := make([]float32, len(t.Data))
		for i, v := range t.Data {
			data[i] = float16.Fromfloat32(v).Float32()
		}
		out.Tensors[name] = checkpoint.Tensor{Shape: t.Shape, Data: data}
	}
	return out, nil
}

// Planes moves the bytes of a file's numbers apart, all first bytes, all second and so on, in which form they deflate better.
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
