package weights_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	scopes "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/weights"
	"slotscope/model/paper/ae"
)

// module is the playground's WebAssembly module as browsers run it.
const module = "../../../static/play/codec.wasm"

// codec is one instance of the module.
type codec struct {
	t   testing.TB
	mod api.Module
}

var compiled = func() func(t testing.TB) (wazero.Runtime, wazero.CompiledModule) {
	var runtime wazero.Runtime
	var code wazero.CompiledModule
	return func(t testing.TB) (wazero.Runtime, wazero.CompiledModule) {
		if code != nil {
			return runtime, code
		}
		raw, err := os.ReadFile(module)
		if err != nil {
			t.Fatal(err)
		}
		runtime = wazero.NewRuntime(context.Background())
		if code, err = runtime.CompileModule(context.Background(), raw); err != nil {
			t.Fatal(err)
		}
		return runtime, code
	}
}()

func newCodec(t testing.TB) codec {
	runtime, code := compiled(t)
	mod, err := runtime.InstantiateModule(context.Background(), code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mod.Close(context.Background()) })
	return codec{t, mod}
}

func (c codec) call(name string, args ...uint64) uint32 {
	c.t.Helper()
	out, err := c.mod.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	if len(out) == 0 {
		return 0
	}
	return uint32(out[0])
}

// open passes a file to the module and returns its result.
func (c codec) open(file []byte) uint32 {
	at := c.call("alloc", uint64(len(file)))
	if !c.mod.Memory().Write(at, file) {
		c.t.Fatal("no memory for the file")
	}
	return c.call("open", uint64(at), uint64(len(file)))
}

// Indices of the buffers for at().
const (
	atZ, atSlots, atFound, atCodes, atImage, atCodebook, rowLength = 0, 1, 2, 3, 4, 5, 6
)

func (c codec) decode(codes []int32, size int) []byte {
	c.t.Helper()
	for i, code := range codes {
		c.mod.Memory().WriteUint32Le(c.call("at", atCodes)+uint32(4*i), uint32(code))
	}
	if bad := c.call("take"); bad != 0 {
		c.t.Fatalf("slot %d: code %d is rejected", bad-1, codes[bad-1])
	}
	c.call("draw")
	pixels, _ := c.mod.Memory().Read(c.call("at", atImage), uint32(size))
	return append([]byte{}, pixels...)
}

func (c codec) encode(image []byte, m, n int) (codes []int32, z []float32) {
	c.t.Helper()
	c.mod.Memory().Write(c.call("at", atImage), image)
	c.call("see")
	for i := range n {
		bits, _ := c.mod.Memory().ReadUint32Le(c.call("at", atZ) + uint32(4*i))
		z = append(z, math.Float32frombits(bits))
	}
	c.call("represent")
	for i := range m {
		code, _ := c.mod.Memory().ReadUint32Le(c.call("at", atCodes) + uint32(4*i))
		codes = append(codes, int32(code))
	}
	return codes, z
}

// engine is a model on the CPU engine with its own weights.
type engine struct {
	file           checkpoint.File
	image          ae.Image
	encode, decode *scopes.Exec
	latent         *scopes.Exec
}

// newEngine draws random weights and scales them for vivid images, with logits from about −6 to 6.
func newEngine(t testing.TB, cfg model.Config, image ae.Image) *engine {
	t.Helper()
	backend, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ae.New(cfg, image)
	if err != nil {
		t.Fatal(err)
	}
	scope := scopes.New().Checked(false)
	if err := m.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	tensorsOf, err := m.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	for name, factor := range map[string]float32{"out.weight": 6, "style.weight": 3, "fc2.weight": 4} {
		for i := range tensorsOf[name].Data {
			tensorsOf[name].Data[i] *= factor
		}
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for l := range 4 { // change the norms, as training does
		for _, name := range []string{"weight", "bias"} {
			data := tensorsOf[fmt.Sprintf("encoder.%d.%s", 3*l+1, name)].Data
			for i := range data {
				data[i] += 0.3 * float32(rng.NormFloat64())
			}
		}
	}
	if err := m.Import(scope, tensorsOf); err != nil {
		t.Fatal(err)
	}
	e := &engine{file: checkpoint.File{Config: cfg, Tensors: tensorsOf}, image: image}
	exec := func(f func(scope *scopes.Context, x *graph.Node) *graph.Node) *scopes.Exec {
		x, err := scopes.NewExec(backend.Backend, scope, f)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	e.encode = exec(func(scope *scopes.Context, x *graph.Node) *graph.Node {
		return graph.ConvertDType(m.Encode(scope, ae.Unit(x)), ae.SlotType(m))
	})
	e.latent = exec(func(scope *scopes.Context, x *graph.Node) *graph.Node { return m.Latent(scope, ae.Unit(x)) })
	e.decode = exec(func(scope *scopes.Context, x *graph.Node) *graph.Node { return graph.Sigmoid(m.Decode(scope, x)) })
	return e
}

// slots returns the input of the engine's decoder for codes. On a VAE's grid, code c stands for (c − 1024)/64.
func (e *engine) slots(codes []int32) *tensors.Tensor {
	if e.file.Config.Discrete() {
		return tensors.FromFlatDataAndDimensions(codes, 1, len(codes))
	}
	numbers := make([]float32, len(codes))
	for i, c := range codes {
		numbers[i] = float32(c-1024) / 64
	}
	return tensors.FromFlatDataAndDimensions(numbers, 1, len(codes))
}

func flat[T dtypes.Supported](t testing.TB, exec *scopes.Exec, in *tensors.Tensor) []T {
	t.Helper()
	out, err := exec.Exec(in)
	if err != nil {
		t.Fatal(err)
	}
	return tensors.MustCopyFlatData[T](out[0])
}

// draw returns a random tuple; for a VAE, within three standard deviations of 0.
func draw(rng *rand.Rand, cfg model.Config) []int32 {
	codes := make([]int32, cfg.M)
	for i := range codes {
		if cfg.Discrete() {
			codes[i] = int32(rng.IntN(cfg.K))
		} else {
			codes[i] = 1024 + int32(rng.IntN(6*64+1)) - 3*64
		}
	}
	return codes
}

// shape is a model and its size.
type shape struct {
	name   string
	image  ae.Image
	change func(*model.Config)
}

func shapes() []shape {
	square := ae.Image{H: 64, W: 64, C: 3}
	odd := func(c *model.Config) {
		c.Widths, c.FC, c.M, c.K = [4]int{3, 5, 9, 14}, 11, 3, 7
		if c.D > 0 {
			c.D = 30
		}
	}
	out := []shape{
		{"hrr", square, nil}, {"vqvae", square, nil}, {"qlae", square, nil}, {"betavae", square, nil}, {"betatcvae", square, nil}, {"ae", square, nil}, {"bioae", square, nil}, {"factorvae", square, nil}, {"tripod", square, nil},
		{"hrr", ae.Image{H: 32, W: 48, C: 1}, odd}, {"vqvae", ae.Image{H: 48, W: 32, C: 1}, odd},
		{"qlae", ae.Image{H: 128, W: 80, C: 3}, odd}, {"betavae", ae.Image{H: 32, W: 32, C: 1}, func(c *model.Config) { odd(c); c.K = 0 }},
		{"hrr", square, func(c *model.Config) { c.Inverse = "exact" }},
		{"hrr", square, func(c *model.Config) { c.NoDenoiser, c.FreeCodebook = true, true }},
		{"hrr", square, func(c *model.Config) { c.Binding = "random" }},
		{"hrr", square, func(c *model.Config) { c.Binding = "permutation" }},
		{"hrr", ae.Image{H: 32, W: 32, C: 3}, func(c *model.Config) { odd(c); c.Binding, c.D = "concat", 31 }},
	}
	return out
}

func (s shape) config(t testing.TB) model.Config {
	t.Helper()
	cfg, err := model.Default(s.name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	if s.change != nil {
		s.change(&cfg)
	}
	return cfg
}

// TestModuleAgreesWithTheEngine: images decoded by the module differ from the engine's by at most 1 of 255, and encoding gives the same
// codes. With float16 weights, up to 3 is allowed on these images, which are more vivid than those of trained models.
func TestModuleAgreesWithTheEngine(t *testing.T) {
	tuples := 20
	if expect.All() {
		tuples = 200
	}
	for n, s := range shapes() {
		cfg := s.config(t)
		e := newEngine(t, cfg, s.image)
		for _, numbers := range []weights.Type{weights.Float32, weights.Float16} {
			t.Run(fmt.Sprintf("%d %s %dx%dx%d type %d", n, s.name, s.image.H, s.image.W, s.image.C, numbers), func(t *testing.T) {
				raw, err := weights.Encode(e.file, numbers)
				if err != nil {
					t.Fatal(err)
				}
				c := newCodec(t)
				if answer := c.open(raw); answer != 0 {
					t.Fatalf("open returns %d", answer)
				}
				agree(t, c, e, tuples, 1+2*int(numbers)) // float16 keeps 11 bits of the scaled weights
			})
		}
	}
}

func agree(t *testing.T, c codec, e *engine, tuples, allowed int) {
	cfg, size := e.file.Config, e.image.H*e.image.W*e.image.C
	rng := rand.New(rand.NewPCG(11, 3))
	most, off, low, high, kept, slots := 0, 0, 255, 0, 0, 0
	worst := 0.0
	for range tuples {
		codes := draw(rng, cfg)
		want := flat[float32](t, e.decode, e.slots(codes))
		got := c.decode(codes, size)
		for i, v := range want {
			b := int(float64(v)*255 + 0.5)
			low, high = min(low, b), max(high, b)
			d := max(int(got[i])-b, b-int(got[i]))
			if most = max(most, d); d > 1 {
				off++
			}
		}
		image := make([]byte, size)
		for i, v := range want {
			image[i] = byte(float64(v)*255 + 0.5)
		}
		in := tensors.FromFlatDataAndDimensions(image, 1, e.image.H, e.image.W, e.image.C)
		wantZ := flat[float32](t, e.latent, in)
		var wantCodes []int32
		if cfg.Discrete() {
			wantCodes = flat[int32](t, e.encode, in)
		} else {
			for _, v := range flat[float32](t, e.encode, in) {
				wantCodes = append(wantCodes, int32(math.Round(float64(v)*64))+1024)
			}
		}
		gotCodes, gotZ := c.encode(image, cfg.M, len(wantZ))
		norm, diff := 0.0, 0.0
		for i, v := range wantZ {
			norm, diff = norm+float64(v)*float64(v), diff+math.Pow(float64(v-gotZ[i]), 2)
		}
		worst = max(worst, math.Sqrt(diff/norm))
		for i := range wantCodes {
			slots++
			if d := gotCodes[i] - wantCodes[i]; d == 0 || (!cfg.Discrete() && d*d <= 1) {
				kept++
			}
		}
	}
	t.Logf("largest difference %d of 255 (%d above 1), bytes %d to %d; z off by %.2g; %.4f of the codes", most, off, low, high, worst, float64(kept)/float64(slots))
	if most > allowed || off > tuples*size/1000 || high-low < 150 {
		t.Errorf("the largest difference is %d of 255 (%d above 1) on bytes from %d to %d; at most %d is allowed", most, off, low, high, allowed)
	}
	if float64(kept) < 0.97*float64(slots) {
		t.Errorf("%d of %d codes are the same", kept, slots)
	}
}
