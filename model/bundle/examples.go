package bundle

import (
	"context"
	"fmt"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	store "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// Examples holds images, their slots (Codes or Numbers; the other is nil) and their reconstructions.
type Examples struct {
	Images  []byte    // [N, H, W, C]
	Codes   []int32   // [N, m]
	Numbers []float32 // [N, m]
	Decoded []float32 // [N, H, W, C] in [0, 1]: the slots, decoded
}

// exampleImages is the number of example images in a bundle.
const exampleImages = 8

// exampleSeed is the seed that selects them; its value is arbitrary.
const exampleSeed = 1

// Exemplify returns examples of random images of the model's dataset.
func Exemplify(ctx context.Context, engine *compute.Engine, file checkpoint.File, set data.Set) (Examples, error) {
	info := set.Info()
	image, err := ImageOf(file)
	if err != nil {
		return Examples{}, err
	}
	if image != (ae.Image{H: info.H, W: info.W, C: info.C}) {
		return Examples{}, fmt.Errorf("images of %s are %d × %d × %d, but the model takes %d × %d × %d", info.Name, info.H, info.W, info.C, image.H, image.W, image.C)
	}
	index, err := data.Draw(exampleSeed, min(exampleImages, info.Len), info.Len)
	if err != nil {
		return Examples{}, err
	}
	pixels := make([]byte, len(index)*info.H*info.W*info.C)
	if err := set.Images(pixels, index); err != nil {
		return Examples{}, fmt.Errorf("reading images of %s: %w", info.Name, err)
	}
	if err := ctx.Err(); err != nil {
		return Examples{}, err
	}
	return Represent(engine, file, pixels)
}

// Represent encodes images, [N, H, W, C] bytes, and decodes their slots.
func Represent(engine *compute.Engine, file checkpoint.File, pixels []byte) (e Examples, err error) {
	defer compute.Recovered("encoding the bundle's examples", &err)
	image, err := ImageOf(file)
	if err != nil {
		return e, err
	}
	size := image.H * image.W * image.C
	if len(pixels) == 0 || len(pixels)%size != 0 {
		return e, fmt.Errorf("%d bytes are not a whole number of %d × %d × %d images", len(pixels), image.H, image.W, image.C)
	}
	root := store.New().Checked(false)
	defer root.Finalize()
	built, err := ae.Open(root.In("model"), file, image)
	if err != nil {
		return e, err
	}
	exec, err := store.NewExec(engine.Backend, root, func(_ *store.Context, images *Node) []*Node {
		slots := built.Encode(root.In("model"), ae.Unit(images))
		return []*Node{ConvertDType(slots, ae.SlotType(built)), Sigmoid(built.Decode(root.In("model"), slots))}
	})
	if err != nil {
		return e, err
	}
	defer exec.Finalize()
	out, err := exec.Exec(tensors.FromFlatDataAndDimensions(pixels, len(pixels)/size, image.H, image.W, image.C))
	if err != nil {
		return e, err
	}
	e = Examples{Images: pixels, Decoded: tensors.MustCopyFlatData[float32](out[1])}
	if built.Discrete() {
		e.Codes = tensors.MustCopyFlatData[int32](out[0])
	} else {
		e.Numbers = tensors.MustCopyFlatData[float32](out[0])
	}
	return e, nil
}

// ImageOf returns the shape of a model's images, from its tensors: the canvas has 1/16 of the image's height and width.
func ImageOf(file checkpoint.File) (ae.Image, error) {
	canvas, out := file.Tensors["canvas"].Shape, file.Tensors["out.weight"].Shape
	if len(canvas) != 4 || len(out) != 4 {
		return ae.Image{}, model.Invalid{"checkpoint": "the tensors canvas and out.weight are missing; not a Slotscope model"}
	}
	return ae.Image{H: 16 * canvas[2], W: 16 * canvas[3], C: out[0]}, nil
}
