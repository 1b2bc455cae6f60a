package train

import (
	"context"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/compute"
	"slotscope/model/data"
)

// upload copies a dataset to an engine's device as bytes [N, H, W, C], in parts of partBytes, so that the host never holds all of it. It
// calls progress with the number of copied images after each part.
func upload(ctx context.Context, set data.Set, engine *compute.Engine, partBytes int, progress func(done int)) (images *tensors.Tensor, err error) {
	defer compute.Recovered("copying to the device", &err)
	info := set.Info()
	part := min(info.Len, max(1, partBytes/(info.H*info.W*info.C)))
	room, err := NewExec(engine.Backend, func(g *Graph) *Node {
		return Zeros(g, shapes.Make(dtypes.Uint8, info.Len, info.H, info.W, info.C))
	})
	if err != nil {
		return nil, err
	}
	defer room.Finalize()
	put, err := NewExec(engine.Backend, func(all, part, first *Node) *Node {
		zero := ScalarZero(first.Graph(), dtypes.Int32)
		return DynamicUpdateSlice(all, part, []*Node{first, zero, zero, zero})
	})
	if err != nil {
		return nil, err
	}
	defer put.Finalize()
	if images, err = room.Exec1(); err != nil {
		return nil, err
	}
	for done := 0; done < info.Len; {
		if err := ctx.Err(); err != nil {
			images.MustFinalizeAll()
			return nil, err
		}
		first := min(done, info.Len-part) // the last part overlaps the previous one, so that one graph serves all
		if images, err = add(put, images, set, first, part, engine); err != nil {
			return nil, err
		}
		done = first + part
		progress(done)
	}
	return images, nil
}

// add copies images first … first+n−1 of a set to their place in all, whose memory it takes over.
func add(put *Exec, all *tensors.Tensor, set data.Set, first, n int, engine *compute.Engine) (*tensors.Tensor, error) {
	index := make([]int, n)
	for i := range index {
		index[i] = first + i
	}
	bytes, err := read(set, index)
	if err != nil {
		all.MustFinalizeAll()
		return nil, err
	}
	info := set.Info()
	part := tensors.FromFlatDataAndDimensions(bytes, n, info.H, info.W, info.C)
	defer part.MustFinalizeAll()
	given, err := DonateTensorBuffer(all, engine.Backend, 0)
	if err != nil {
		return nil, err
	}
	return put.Exec1(given, part, int32(first))
}
