//go:build cgo

package cpu_test

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"

	_ "slotscope/model/compute/cpu" // registers "cpu"
)

func Example() {
	backend, err := backends.NewWithConfig("cpu:2") // two threads
	if err != nil {
		panic(err)
	}
	defer backend.Finalize()
	exec := graph.MustNewExec(backend, func(x, y *graph.Node) *graph.Node {
		return graph.ReduceAllSum(graph.Square(graph.Dot(x, y)))
	})
	fmt.Println(exec.MustExec([][]float32{{1, 2}}, [][]float32{{3}, {4}})[0])
	// Output: float32(121)
}
