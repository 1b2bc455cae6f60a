package adopt_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/npz"
	"slotscope/model/learn/evaluate"
	"slotscope/model/measure/metric/input"
)

// behaviour is the environment variable that turns the test binary into a child that answers messages.
const behaviour = "ADOPT_TEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviour); how != "" {
		(&child{how: how, in: bufio.NewReader(os.Stdin)}).serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a model of three slots: the brightness of each third of an image's rows, as codes 0 to 7 or as numbers from 0 to 100.
type child struct {
	how string
	in  *bufio.Reader
}

const side = 64

func (c *child) serve() {
	codes := 8
	if strings.HasPrefix(c.how, "numbers") {
		codes = 0
	}
	for count := 1; ; count++ {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return
		}
		var asked struct{ Do string }
		json.Unmarshal([]byte(line), &asked)
		hello := map[string]any{"slotscope": 1, "name": "thirds", "slots": 3, "codes": codes, "image": []int{side, side, 3}}
		if asked.Do != "hello" {
			in := c.read()
			c.misbehave(asked.Do, count)
			if asked.Do == "encode" {
				c.encode(in, codes)
			} else {
				c.decode(in, codes)
			}
			continue
		}
		c.misbehave(asked.Do, count)
		if c.how == "other model" {
			hello["slots"] = 4
		}
		if to, ok := strings.CutPrefix(c.how, "hello "); ok {
			key, value, _ := strings.Cut(to, "=")
			var v any
			json.Unmarshal([]byte(value), &v)
			hello[key] = v
		}
		raw, _ := json.Marshal(hello)
		fmt.Println(string(raw))
	}
}

func (c *child) misbehave(do string, count int) {
	now, at, _ := strings.Cut(c.how, " at ")
	if n, _ := strconv.Atoi(at); n > 0 && count < n || n == 0 && do != at {
		return
	}
	switch now {
	case "die":
		fmt.Fprintln(os.Stderr, "out of memory:\nneeded 3 GB")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("loading weights … 100%")
	case "endless":
		for {
			fmt.Print(strings.Repeat("x", 1<<10))
		}
	case "binary":
		os.Stdout.WriteString("{\"ok\":true}\n\x00\x01\x02 this is not an array")
		os.Exit(0)
	case "short":
		os.Stdout.WriteString("{\"ok\":true}\n")
		npz.WriteArray(os.Stdout, npz.Data{Shape: []int{1, 3}, Values: []int64{1, 2, 3}})
	case "huge":
		os.Stdout.WriteString("{\"ok\":true}\n")
		os.Stdout.WriteString("\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (900000000, 3), }       \n")
		time.Sleep(time.Hour)
	case "sorry":
		fmt.Println(`{"error": "CUDA is busy"}`)
	}
}

func (c *child) read() *npz.Array {
	var all bytes.Buffer
	head, _, err := npz.ReadHeader(io.TeeReader(c.in, &all))
	if err != nil {
		panic(err)
	}
	io.CopyN(&all, c.in, int64(head.Len()*head.Size))
	a, err := npz.Parse("request", all.Bytes())
	if err != nil {
		panic(err)
	}
	return a
}

func (c *child) encode(in *npz.Array, codes int) {
	pixels, _ := in.Elements()
	n := in.Shape[0]
	whole, numbers := make([]int64, 3*n), make([]float32, 3*n)
	for b := range n {
		for s := range 3 {
			sum := 0
			for y := s * 21; y < (s+1)*21; y++ {
				sum += int(pixels[(b*side+y)*side*3])
			}
			whole[3*b+s], numbers[3*b+s] = int64(sum/(21*32)), float32(sum)/(21*2.55)
		}
	}
	if c.how == "code 8" {
		whole[4] = 8
	}
	if c.how == "numbers NaN" {
		numbers[4] /= 0
		numbers[4] -= numbers[4]
	}
	d := npz.Data{Shape: []int{n, 3}, Values: whole}
	if codes == 0 {
		d.Values = numbers
	}
	fmt.Println(`{"ok": true}`)
	npz.WriteArray(os.Stdout, d)
}

func (c *child) decode(in *npz.Array, codes int) {
	slots, _ := in.Float64s()
	n := in.Shape[0]
	out, top := make([]float32, n*side*side*3), 100.0
	if codes > 0 {
		top = 8
	}
	for i := range out {
		b, y := i/(side*side*3), i/(side*3)%side
		out[i] = float32(slots[3*b+min(2, y/21)] / top)
	}
	fmt.Println(`{"ok": true}`)
	npz.WriteArray(os.Stdout, npz.Data{Shape: []int{n, side, side, 3}, Values: out})
}

type place struct {
	root *folder.Data
	set  data.Set
	cmd  adopt.Command
}

func setUp(t *testing.T, how string) place {
	t.Helper()
	t.Setenv(behaviour, how)
	t.Setenv(adopt.Variable, filepath.Join(t.TempDir(), "config", "models.json"))
	root, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	set, err := data.Open(t.Context(), "shapes3d-synthetic", root.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return place{root, set, adopt.Command{Args: []string{self}, Dir: root.Dir()}}
}

func (p place) adopt(t *testing.T) (checkpoint.File, string) {
	t.Helper()
	id, _, err := adopt.Adopt(t.Context(), p.root, p.set, "", p.cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p.checkpoint(t, id), id
}

func (p place) checkpoint(t *testing.T, id string) checkpoint.File {
	t.Helper()
	f, err := p.root.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := checkpoint.Read(f.CheckpointPath(1))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAdoptedModelAnswers(t *testing.T) {
	for how, codes := range map[string]int{"good": 8, "numbers": 0} {
		t.Run(how, func(t *testing.T) {
			p := setUp(t, how)
			file, _ := p.adopt(t)
			want := model.Config{Model: model.External, Preset: "thirds", Dataset: "shapes3d-synthetic", Engine: "auto", Steps: 1, M: 3, K: codes, EvalImages: 10_000}
			if file.Config != want {
				t.Errorf("configuration %+v, want %+v", file.Config, want)
			}
			if file.Config.Discrete() != (codes > 0) {
				t.Errorf("discrete is %v", file.Config.Discrete())
			}
			m, err := adopt.Open(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			images := slices.Repeat([]byte{128}, 2*side*side*3)
			s, err := m.Encode(images, 2)
			if err != nil {
				t.Fatal(err)
			}
			if codes > 0 && !slices.Equal(s.Codes, slices.Repeat([]int32{4}, 6)) || codes == 0 && (len(s.Numbers) != 6 || s.Numbers[0] < 50 || s.Numbers[0] > 50.5) {
				t.Errorf("slots %+v", s)
			}
			x, err := m.Decode(s, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(x) != len(images) || x[0] < 0.5 || x[0] > 0.503 {
				t.Errorf("%d numbers, the first %v", len(x), x[0])
			}
			offset, unit := adopt.Scales(file)
			if codes > 0 && (offset[0] != 0 || unit[0] != 1) || codes == 0 && (offset[0] < 10 || unit[0] < 3) {
				t.Errorf("scales %v, %v", offset, unit)
			}
		})
	}
}

// Every part of an evaluation works on an adopted model, and the scores are saved.
func TestAdoptedModelIsEvaluated(t *testing.T) {
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"good", "numbers"} {
		t.Run(how, func(t *testing.T) {
			p := setUp(t, how)
			file, _ := p.adopt(t)
			r, err := evaluate.Run(t.Context(), engine, file, p.set, evaluate.Options{Images: 100, Noise: 16, Pairs: 2, Probe: 2, Trees: 2, Agree: 100})
			if err != nil {
				t.Fatal(err)
			}
			if s := r.Scores; s.Metrics == nil || s.Metrics.Discrete != (how == "good") || s.SwapTruth == nil || s.PSNR <= 0 {
				t.Errorf("%+v", s)
			}
			dir, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			if err := r.Save(dir); err != nil {
				t.Fatal(err)
			}
			latents, err := input.Kept(filepath.Join(dir.Name(), folder.AgreementFile), nil)
			if err != nil || latents == nil {
				t.Errorf("latents for comparisons: %v", err)
			}
		})
	}
}

// Every failure of a child returns an error that names it, and ends the child.
func TestBadChildren(t *testing.T) {
	for how, want := range map[string]string{
		"die at 1":              "message 1 (hello): the process exited (exit status 3); last line on standard error: needed 3 GB",
		"die at 2":              "message 2 (encode): the process exited (exit status 3); last line on standard error: needed 3 GB",
		"hang at hello":         "message 1 (hello): no answer within 1 s, so the process was stopped; `slotscope adopt --run RUN --timeout SECONDS COMMAND` sets a longer limit",
		"hang at decode":        "message 3 (decode): no answer within 3 s, so the process was stopped; `slotscope adopt --run RUN --timeout SECONDS COMMAND` sets a longer limit",
		"garbage at hello":      `message 1 (hello): expected a line of JSON, got "loading weights … 100%"; write other output to standard error`,
		"garbage at encode":     `message 2 (encode): expected a line of JSON, got "loading weights … 100%"`,
		"endless at hello":      "expected a line of JSON, got more than 65536 bytes without a line break: \"xxxx",
		"binary at encode":      "message 2 (encode): not an .npy array",
		"short at encode":       "message 2 (encode): got an array of shape [1 3], want [8 3]",
		"huge at encode":        "message 2 (encode): got an array of shape [900000000 3], want [8 3]",
		"sorry at decode":       "message 3 (decode): the program reports: CUDA is busy",
		"code 8":                "image 1, slot 1: code 8; the range is 0 to 7",
		"numbers NaN":           "got NaN",
		"hello slotscope=2":     "protocol version 2 is not supported; use version 1",
		"hello slots=0":         "slots is 0; the range is 1 to 64",
		"hello codes=1":         "codes is 1; the range is 2 to 65536",
		`hello name="a\nb"`:     `name is "a\nb"`,
		"hello image=[9,9]":     "image is [9 9 0]",
		"hello image=[9,9,3]":   "expects images of 9 × 9 × 3, but those of shapes3d-synthetic are 64 × 64 × 3",
		"hello image=[9,9,9,9]": "image is [9 9 9]",
		`hello slots="many"`:    "invalid answer",
		"hello latent=-1":       "latent is -1",
		"hello seed=-1":         "seed -1 or step 1 is out of range",
	} {
		t.Run(how, func(t *testing.T) {
			p := setUp(t, how)
			switch how {
			case "hang at hello":
				p.cmd.Seconds = 1 // a child that starts slowly looks like one that hangs
			case "hang at decode":
				p.cmd.Seconds = 3
			}
			_, _, err := adopt.Adopt(t.Context(), p.root, p.set, "", p.cmd)
			var invalid model.Invalid
			if err == nil || !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if runs, err := p.root.Runs(); err != nil || len(runs) > 0 {
				t.Errorf("created runs %v (%v)", runs, err)
			}
			if _, err := os.Stat(os.Getenv(adopt.Variable)); err == nil {
				t.Error("the command was saved")
			}
		})
	}
	p := setUp(t, "good")
	p.cmd.Args = []string{filepath.Join(p.root.Dir(), "none")}
	if _, _, err := adopt.Adopt(t.Context(), p.root, p.set, "", p.cmd); err == nil || !strings.Contains(err.Error(), "starting none") {
		t.Errorf("missing program: %v", err)
	}
}

// A child that exits at message 1,000 fails that message; later messages go to a new child.
func TestChildDiesLate(t *testing.T) {
	p := setUp(t, "good")
	file, _ := p.adopt(t)
	t.Setenv(behaviour, "die at 1000")
	m, err := adopt.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	image, failures := make([]byte, side*side*3), []string{}
	for n := 3; n <= 1005; n++ { // messages 1 and 2 were hello and the examples
		if _, err := m.Encode(image, 1); err != nil {
			failures = append(failures, err.Error())
			if n != 1000 && len(failures) == 1 {
				t.Fatalf("message %d: %v", n, err)
			}
		}
	}
	if len(failures) != 6 || !strings.Contains(failures[0], "message 1000 (encode): the process exited (exit status 3)") || failures[5] != failures[0] {
		t.Errorf("%d failures: %q", len(failures), failures)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, err = m.Encode(image, 1); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Errorf("no new child: %v", err)
	}
}

func TestCommandIsTheUsers(t *testing.T) {
	p := setUp(t, "good")
	file, id := p.adopt(t)
	path := os.Getenv(adopt.Variable)
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, want string) {
		t.Helper()
		m, err := adopt.Open(t.Context(), file)
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	os.Chmod(path, 0o666)
	check("a file that others may write", "can be written by other users")
	os.Chmod(path, 0o600)
	os.WriteFile(path, []byte("{"), 0o600)
	check("a damaged file", "reading ")
	os.Remove(path)
	check("no command", "has no command for it; set one with `slotscope adopt --run RUN COMMAND`")

	t.Setenv(behaviour, "other model")
	if err := adopt.Again(p.root, id, p.cmd); err == nil || !strings.Contains(err.Error(), "serves 4 slots of 8 codes") {
		t.Errorf("another model: %v", err)
	}
	check("a command that was refused", "has no command")
	t.Setenv(behaviour, "good")
	if err := adopt.Again(p.root, id, p.cmd); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, kept) {
		t.Errorf("the saved command is %s, before %s (%v)", again, kept, err)
	}
	m, err := adopt.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()

	delete(file.Meta, "adopted")
	check("a run that was imported", "this run was imported and has no model")
}

// Children do not get the server's token in their environment.
func TestChildHasNoToken(t *testing.T) {
	p := setUp(t, "good")
	t.Setenv("SLOTSCOPE_TOKEN", "secret")
	p.cmd.Args = []string{"/bin/sh", "-c", `[ -z "$SLOTSCOPE_TOKEN" ] && exec "$0"`, p.cmd.Args[0]}
	p.adopt(t)
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("{\"ok\":true}\n\x93NUMPY\x01\x00\x46\x00{'descr': '<i8', 'fortran_order': False, 'shape': (1, 3), }              \n" + strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 3)))
	f.Add([]byte(`{"slotscope": 1, "name": "x", "slots": 3, "codes": 8, "image": [64, 64, 3]}` + "\n"))
	f.Add([]byte(`{"error": "no"}` + "\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		s, err := adopt.ReadAnswer(answer, 1, 3, 8)
		if err == nil && (len(s.Codes) != 3 || slices.Max(s.Codes) > 7 || slices.Min(s.Codes) < 0) {
			t.Errorf("codes %v", s.Codes)
		}
		if h, err := adopt.ReadHello(answer); err == nil && (h.Slots < 1 || h.Slots > adopt.MaxSlots) {
			t.Errorf("%+v", h)
		}
	})
}
