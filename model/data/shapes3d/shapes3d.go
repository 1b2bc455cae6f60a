// Package shapes3d draws a substitute for the Shapes3D images: a room, an object, a camera that orbits it, and three hues.
//
// Only 480 geometries (shape × scale × orientation) differ in what rays hit. Each is traced once into a layer of weights, and an image
// is a weighted sum of three hues and the sky: tens of thousands of images per second from 18 MB, without a file.
//
// The files, in the order of the work: scene.go and solid.go define the scene, trace.go follows a ray, room.go finds pixels that scales
// share, layer.go stores the results of the rays of a pixel, and compose.go makes images of them.
package shapes3d

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	Side  = 64              // pixels along each edge of an image
	Bytes = Side * Side * 3 // of one image: row by row, red, green, blue

	Hues         = 10
	Scales       = 8
	Shapes       = 4
	Orientations = 15
	geometries   = Scales * Shapes * Orientations
)

// Shapes of the object, by class.
const (
	Cube = iota
	Cylinder
	Sphere
	Capsule
)

// Scale returns the size of the object for a scale class, 0.75 to 1.25.
func Scale(class int) float64 { return 0.75 + 0.5*float64(class)/(Scales-1) }

// Orientation returns the camera's rotation around the object for an orientation class, −30 to 30 degrees.
func Orientation(class int) float64 { return -30 + 60*float64(class)/(Orientations-1) }

// Geometry holds the classes that determine where every ray of an image ends.
type Geometry struct{ Scale, Shape, Orientation int }

func (g Geometry) number() int {
	return (g.Scale*Shapes+g.Shape)*Orientations + g.Orientation
}

func geometryOf(number int) Geometry {
	return Geometry{number / (Shapes * Orientations), number / Orientations % Shapes, number % Orientations}
}

// Image is one image of the set, by class.
type Image struct {
	Floor, Wall, Object int // hues
	Geometry
}

// Renderer draws images. It traces a geometry on first use. Its methods are safe for concurrent use.
type Renderer struct {
	layers [geometries]struct {
		once sync.Once
		done atomic.Pointer[layer]
	}
	rooms [Shapes][Orientations]struct {
		once sync.Once
		room *room
	}
}

// Draw writes one image to dst, of at least Bytes bytes. The classes of im must be in range.
func (r *Renderer) Draw(dst []byte, im Image) {
	r.layer(im.Geometry.number()).compose(dst, hues[im.Floor], hues[im.Wall], hues[im.Object])
}

func (r *Renderer) layer(number int) *layer {
	at := &r.layers[number]
	if l := at.done.Load(); l != nil {
		return l
	}
	at.once.Do(func() {
		g := geometryOf(number)
		at.done.Store(bake(g, r.room(g.Shape, g.Orientation)))
	})
	return at.done.Load()
}

func (r *Renderer) room(shape, orientation int) *room {
	at := &r.rooms[shape][orientation]
	at.once.Do(func() { at.room = newRoom(shape, orientation) })
	return at.room
}

// Warm traces all remaining geometries on all cores, about 1.5 s of one core for all. If ctx ends, it stops with ctx's error and keeps
// what was traced.
func (r *Renderer) Warm(ctx context.Context) error {
	all := make([]int, geometries)
	for g := range all {
		all[g] = g
	}
	return r.trace(ctx, all)
}

// Prepare traces the geometries of images about to be drawn, on all cores.
func (r *Renderer) Prepare(images func(yield func(Image) bool)) {
	var missing []int
	var listed [geometries]bool
	for im := range images {
		g := im.Geometry.number()
		if !listed[g] && r.layers[g].done.Load() == nil {
			listed[g] = true
			missing = append(missing, g)
		}
	}
	r.trace(context.Background(), missing)
}

func (r *Renderer) trace(ctx context.Context, numbers []int) error {
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(numbers)) {
		work.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(numbers) {
					return
				}
				r.layer(numbers[i])
			}
		})
	}
	work.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("tracing geometries: %w", err)
	}
	return nil
}
