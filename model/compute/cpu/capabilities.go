//go:build cgo

package cpu

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// Capabilities lists the operations and data types of the engine: all but collectives.
func (b *Backend) Capabilities() backends.Capabilities { return capabilities.Clone() }

var capabilities = backends.Capabilities{Operations: operations(), DTypes: dataTypes()}

func dataTypes() map[dtypes.DType]bool {
	set := map[dtypes.DType]bool{}
	for _, t := range []dtypes.DType{
		dtypes.Bool, dtypes.Int8, dtypes.Int16, dtypes.Int32, dtypes.Int64, dtypes.Uint8, dtypes.Uint16, dtypes.Uint32,
		dtypes.Uint64, dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64,
		dtypes.Complex64, dtypes.Complex128,
	} {
		set[t] = true
	}
	return set
}

// operations returns every operation except the missing ones.
func operations() map[backends.OpType]bool {
	set := map[backends.OpType]bool{}
	for op := backends.OpTypeInvalid + 1; op < backends.OpTypeLast; op++ {
		set[op] = true
	}
	for _, missing := range []backends.OpType{
		backends.OpTypeSelectAndScatterSum, // GoMLX has the operation, but no builder method for it
		backends.OpTypeAllReduce, backends.OpTypeCollectiveBroadcast, backends.OpTypeAllGather,
	} {
		delete(set, missing)
	}
	return set
}
