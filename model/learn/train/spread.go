package train

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
)

// devicesOf returns how many of an engine's devices share each batch; it returns a model.Invalid if the engine has fewer.
func devicesOf(engine backends.Backend, c model.Config) (int, error) {
	n := max(1, c.Devices)
	if n > engine.NumDevices() {
		return 0, model.Invalid{"devices": fmt.Sprintf("%d devices requested, but the engine has %d", n, engine.NumDevices())}
	}
	return n, nil
}

// spread is the layout of a call's inputs on several devices; nil for a single device.
type spread struct {
	mesh   *distributed.DeviceMesh
	shared *distributed.ShardingSpec // for [n, B, …]: each device has its part of every batch
	copied *distributed.ShardingSpec // each device has a full copy
}

// Spread shares every batch among several devices: XLA partitions the step so that each device computes an equal part of the images, and
// sums gradients and losses. Every device keeps all variables. Call it before the first step.
func (t *Trainer) Spread(devices int) error {
	if devices == 1 {
		return nil
	}
	mesh, err := distributed.NewDeviceMesh([]int{devices}, []string{"batch"})
	if err != nil {
		return fmt.Errorf("sharing batches among %d devices: %w", devices, err)
	}
	shared, err := distributed.BuildSpec(mesh).R().S("batch").Done()
	if err != nil {
		return fmt.Errorf("sharing batches among %d devices: %w", devices, err)
	}
	t.spread = &spread{mesh, shared, distributed.NewReplicatedShardingSpec(mesh)}
	t.steps.AutoSharding(mesh).WithInputShardingSpecs(t.spread.shared, t.spread.copied, t.spread.shared).WithOutputShardingSpecs(t.spread.copied)
	return nil
}

// place splits the inputs of a call (images, coefficients and possibly noise) and starts the transfer of each part to its device.
func (s *spread) place(backend backends.Backend, inputs []*tensors.Tensor) ([]*distributed.Tensor, error) {
	var all []*distributed.Tensor
	for i, in := range inputs {
		spec := s.shared
		if i == 1 {
			spec = s.copied
		}
		parts, err := distributed.ShardTensor(spec, in)
		if err != nil {
			return all, err
		}
		all = append(all, parts)
		in.MustFinalizeAll()
		for device, part := range parts.Shards() {
			if backend.HasSharedBuffers() {
				continue
			}
			if err := part.MaterializeOnDevice(backend, false, backends.DeviceNum(device)); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}
