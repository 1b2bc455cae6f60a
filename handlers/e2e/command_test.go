//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/folder"
)

// says runs the program to its end and returns its exit code and output.
func says(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	cmd := command(t, args...)
	var stdout, stderr text
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code = exitCode(t, cmd)
	return code, stdout.String(), stderr.String()
}

// TestCommandLine calls the program with mistakes: each gives one sentence on standard error that names the mistake and its place, and
// nothing on standard output.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) string {
		if err := os.WriteFile(at(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	file := write("file", "not a folder")
	empty := at("empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	damaged := damagedRun(t, at("damaged"))
	s := serve(t, at("served"))
	taken := strings.TrimPrefix(s.url, "http://")
	free := "127.0.0.1:0"
	list := "; `slotscope %s -h` lists the flags"
	engines := `usage: --engine "abacus" is not one of auto, cpu, xla:cuda, xla:cpu, go`

	for _, c := range []struct {
		args string // words
		code int
		want string // last line of standard error, without the program's name
	}{
		{"dance", 2, `usage: unknown subcommand "dance"; ` + "`slotscope -h` lists the subcommands"},
		{"trian", 2, `usage: unknown subcommand "trian" (did you mean "train"?); ` + "`slotscope -h` lists the subcommands"},
		{"--dance", 2, "usage: unknown flag --dance" + fmt.Sprintf(list, "serve")},
		{"train --dance", 2, "usage: unknown flag --dance" + fmt.Sprintf(list, "train")},
		{"train --datset moon", 2, `usage: unknown flag --datset (did you mean "--dataset"?)` + fmt.Sprintf(list, "train")},
		{"data list --seed 1", 2, "usage: unknown flag --seed" + fmt.Sprintf(list, "data list")},
		{"version now", 2, `usage: unexpected argument "now"` + fmt.Sprintf(list, "version")},
		{"train --steps", 2, "usage: --steps needs a value" + fmt.Sprintf(list, "train")},
		{"bench train --batch many", 2, `usage: --batch: expected a valid 64 bit int but got "many"` + fmt.Sprintf(list, "bench")},

		{"train --dataset moon", 2, `dataset: unknown dataset "moon"; available: shapes3d-synthetic, dsprites-synthetic`},
		{"train --model gan", 2, `usage: --model "gan" is not one of ` + strings.Join(model.ModelNames(), ", ") + fmt.Sprintf(list, "train")},
		{"train --model betavae --set k=9", 2, "k: is not a hyperparameter of betavae; it belongs to hrr, vqvae, qlae, tripod"},
		{"train --preset huge", 2, `usage: --preset "huge" is not one of tiny, small, paper` + fmt.Sprintf(list, "train")},
		{"train --engine abacus", 2, engines + fmt.Sprintf(list, "train")},
		{"train --set speed=3", 2, `usage: --set: unknown hyperparameter "speed"` + fmt.Sprintf(list, "train")},
		{"train --set lr", 2, `usage: --set: "lr" is not of the form name=value` + fmt.Sprintf(list, "train")},
		{"train --set k=1", 2, "k: 1 is below the minimum 2"},
		{"train --set m=0", 2, "m: 0 is below the minimum 1"},
		{"train --set lr=-1", 2, "lr: -1 is not above 0"},
		{"train --set lr=fast", 2, `lr: "fast" is not a number`},
		{"train --set widths=1,2,3", 2, `widths: "1,2,3" does not list four widths; write them as in 64,128,256,512`},
		{"train --steps many", 2, `steps: "many" is not a whole number`},
		{"train --batch 480001", 2, "batch: 480001 is above the maximum 65536"},
		{"train --set k=1 --set m=0 --batch 0", 2, "batch: 0 is below the minimum 1; k: 1 is below the minimum 2; m: 0 is below the minimum 1"},

		{"train --name " + strings.Repeat("x", 201), 2, "name: a name can have at most 200 characters"},
		{"train --name a\x01b", 2, "name: a name must be one line of text"},

		{"train --run " + at("nowhere"), 1, "there is no run folder " + at("nowhere")},
		{"train --run " + empty, 1, empty + " has no config.json: not a run folder, or an incomplete copy"},
		{"train --run " + empty + " --steps 3", 2, "usage: --run takes the name and hyperparameters from the folder; remove the other flags"},
		{"train --run " + damaged.Dir(), 1, "reading checkpoint " + damaged.CheckpointPath(10) + ": the header claims 16 bytes, but only 12 follow; the file is truncated"},
		{"train --data " + file, 1, "cannot create or write the data folder: " + file + "/runs: not a directory"},
		{"serve --data " + file, 1, "cannot create or write the data folder: " + file + "/runs: not a directory"},
		{"train --data /dev/full", 1, "cannot create or write the data folder: /dev/full/runs: not a directory"},
		{"data sample shapes3d-synthetic --out " + at("no/where.png"), 1, "open " + at("no/where.png") + ": no such file or directory"},

		{"serve --addr " + free + " --data " + s.dir, 1, fmt.Sprintf("data folder %s is in use by process %d", s.dir, s.cmd.Process.Pid)},
		{"serve --addr " + taken + " --data " + at("other"), 1, taken + " is in use by another program, perhaps another slotscope; stop it or choose another address with --addr, e.g. --addr 127.0.0.1:0 for any free port"},
		{"serve --addr 0.0.0.0:0 --data " + at("other"), 2, "addr: other machines can reach 0.0.0.0:0, so a token is required; set it with --token or $SLOTSCOPE_TOKEN"},
		{"serve --parallel 0 --data " + at("other"), 2, "parallel: 0 is not between 1 and 256"},
		{"serve --addr here --data " + at("other"), 2, `addr: "here" is not an address; use HOST:PORT, e.g. 127.0.0.1:8080`},

		{"data", 2, "usage: slotscope data list | add | preview | info | check | sample | remove; `slotscope data -h` lists the subcommands"},
		{"data info moon", 2, `dataset: unknown dataset "moon"; available: shapes3d-synthetic, dsprites-synthetic`},
		{"data info", 2, "usage: slotscope data info <name> [flags]" + fmt.Sprintf(list, "data info")},
		{"bench", 2, "usage: slotscope bench <what> [flags]" + fmt.Sprintf(list, "bench")},
		{"bench all", 2, `usage: <what> "all" is not one of train, decode, data` + fmt.Sprintf(list, "bench")},
		{"bench decode --preset huge", 2, `usage: --preset "huge" is not one of tiny, small, paper` + fmt.Sprintf(list, "bench")},
		{"bench train --seconds -1", 2, "seconds: -1 is out of range; choose more than 0 and at most 86,400 seconds"},
		{"bench decode --precision bf16", 2, "precision: bf16 is for training steps; images are decoded in float32, or tf32 on a GPU"},
		{"bench decode --seconds NaN --profile -3", 2, "profile: -3 is negative; seconds: NaN is out of range; choose more than 0 and at most 86,400 seconds"},
		{"bench data --seconds Inf", 2, "seconds: +Inf is out of range; choose more than 0 and at most 86,400 seconds"},
		{"sweep --engine abacus --dry paper", 2, engines + fmt.Sprintf(list, "sweep")},
		{"sweep --steps -1 --datasets shapes3d-synthetic --dry paper", 2, "steps: -1 is below 0; leave steps out to use the preset's"},
		{"sweep --slurm partition=gpu --dry paper", 2, "usage: --slurm requires --executor slurm"},
		{"sweep --parallel 0 --dry paper", 2, "parallel: 0 is not between 1 and 256"},
		{"sweep --parallel 2 --executor slurm --dry paper", 2, "usage: --parallel applies only to runs on this machine; SLURM decides how many jobs run at the same time"},
		{"sweep --vary lr=1,2 --dry paper", 2, "usage: --vary applies only to own, not to the protocol paper"},
		{"sweep --parts main --dry own", 2, "usage: --parts applies only to paper and field"},
		{"sweep --vary lr=0.01..0.1 --dry own", 2, "vary[0]: lr has a range, which only random search supports; list its values for a grid"},
		{"sweep --vary lr=0.01..0.1 --random 3 --seeds 2 --race 2 --dry own", 2, "parts[0].race.least: 2 seeds before the first round: choose at least 2, and fewer than the part's 2"},
		{"train --slurm partition=gpu", 2, "usage: --slurm requires --executor slurm"},
		{"bench train --engine abacus", 2, engines + fmt.Sprintf(list, "bench")},
	} {
		t.Run(strings.ReplaceAll(c.args, dir, "DIR"), func(t *testing.T) {
			if rest, trains := strings.CutPrefix(c.args, "train"); trains {
				c.args = "train --data " + at("unused") + rest
			}
			code, out, stderr := says(t, strings.Fields(c.args)...)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			said, named := strings.CutPrefix(lines[len(lines)-1], "slotscope: ")
			if code != c.code || !named || said != c.want || out != "" {
				t.Errorf("exit code %d, want %d\ngot  %q\nwant %q\nstandard output %q, standard error:\n%s", code, c.code, said, c.want, out, stderr)
			}
		})
	}
	if _, err := os.Stat(at("unused")); err == nil {
		t.Error("a rejected training created a data folder")
	}
	s.close()
	wholeFile(t, damaged, 12)
	if s := status(t, damaged); s.State != model.Failed || s.Step != 10 {
		t.Errorf("the run with a damaged checkpoint: %+v", s)
	}
}

// damagedRun writes a run of twelve steps whose only checkpoint, of step 10, is truncated.
func damagedRun(t *testing.T, dir string) *folder.Folder {
	t.Helper()
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range tinyNet("steps=20") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			if err := cfg.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := folder.Create(dir, cfg, "damaged")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for _, path := range []string{f.CheckpointPath(10), f.OptimizerPath(10)} {
		if err := os.WriteFile(path, []byte("\x10\x00\x00\x00\x00\x00\x00\x00{\"__metadata"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	measure(t, f, 1, 12)
	return f
}

// TestHelp checks that help and lists go to standard output, for use with a pager.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"help", "\n  train "},
		{"--help", "\n  bench "},
		{"-h", "\n  gpu "},
		{"help runs stop", "Usage: slotscope runs stop <query|run> ... [flags]"},
		{"train -h", "--dataset="},
		{"serve --help", "--token="},
		{"bench decode -h", "--preset="},
		{"data info x -h", "--json"},
		{"version", "slotscope "},
		{"data list", "shapes3d-synthetic       480000 images, 64×64×3, 6 factors"},
		{"data info shapes3d-synthetic", "floor_hue"},
	} {
		code, out, stderr := says(t, strings.Fields(c.args)...)
		if code != 0 || !strings.Contains(out, c.want) || stderr != "" {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q; want %q", c.args, code, out, stderr, c.want)
		}
	}
}

// TestJSON checks that --json prints exactly one JSON object on standard output, with the documented fields.
func TestJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args   string
		fields string // each must be present and neither empty nor zero
	}{
		{"version --json", "revision go platform"},
		{"gpu --json", "engine why threads"},
		{"data list --json", "datasets"},
		{"data info shapes3d-synthetic --json", "name title h w c len factors about licence"},
		{"data sample shapes3d-synthetic --json --out " + filepath.Join(dir, "sheet.png"), "dataset file index"},
		{"bench decode --json --preset tiny --seconds 0.2 --engine cpu", "decode_ms engine preset batch threads count"},
		{"bench train --json --preset tiny --batch 2 --seconds 0.2 --engine cpu", "images_per_second engine preset batch threads step_ms"},
		{"bench data --json --seconds 0.2", "images_per_second random_images_per_second dataset threads"},
		{"train --json --data " + dir + " " + strings.Join(tinyNet("steps=3"), " "), "state step checkpoint engine parameters attempt reason"},
	} {
		name, _, _ := strings.Cut(c.args, "--json")
		t.Run(name, func(t *testing.T) {
			code, out, stderr := says(t, strings.Fields(c.args)...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			object := oneObject(t, out)
			for _, field := range strings.Fields(c.fields) {
				if v := object[field]; v == nil || v == "" || v == 0.0 {
					t.Errorf("%s is %v in %s", field, v, out)
				}
			}
		})
	}
	head, err := os.ReadFile(filepath.Join(dir, "sheet.png"))
	if err != nil || !bytes.HasPrefix(head, []byte("\x89PNG")) {
		t.Errorf("the sheet is not a PNG: %v", err)
	}
}

func oneObject(t *testing.T, out string) (object map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&object); err != nil {
		t.Fatalf("not a JSON object: %v in %q", err, out)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("trailing output after the object: %q", out)
	}
	return object
}

// TestWithoutHome checks that the program starts without $HOME and without warnings of a library.
func TestWithoutHome(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"version", "gpu"} {
		cmd := exec.Command(program(t), args)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "HOME=") })
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil || complaint.Len() > 0 {
			t.Errorf("%s: %v, %s", args, err, complaint.String())
		}
		if args == "gpu" && strings.Contains(string(out), "nonexistent") {
			t.Errorf("the placeholder for $HOME is visible:\n%s", out)
		}
	}
}

// TestWithoutCompiler checks that the program builds without a C compiler, computes metrics of tables, and reports in one sentence what
// it cannot do.
func TestWithoutCompiler(t *testing.T) {
	t.Parallel()
	expect.Long(t)
	bare := filepath.Join(t.TempDir(), "slotscope")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bare, "slotscope")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table := filepath.Join(t.TempDir(), "table.csv")
	rows := "z0,z1,y0,y1\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,%d,%d,%d\n", i%3, i%4, i%3, i%4)
	}
	if err := os.WriteFile(table, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bare, "metrics", table, "--latents", "z", "--factors", "y").CombinedOutput(); err != nil || !strings.Contains(string(out), "InfoM") {
		t.Errorf("metrics: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"train", "--preset", "tiny"}} {
		out, err := exec.Command(bare, append(args, "--data", t.TempDir())...).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if last := lines[len(lines)-1]; err == nil || !strings.HasPrefix(last, "slotscope: ") || !strings.Contains(last, "built without a C compiler") {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
	}
}

// TestServeWithToken serves on all addresses to clients with the token.
func TestServeWithToken(t *testing.T) {
	t.Parallel()
	cmd := command(t, "serve", "--shipped=false", "--addr", "0.0.0.0:0", "--data", t.TempDir(), "--token", "open sesame")
	s := started(t, cmd, t.TempDir())
	if !strings.HasSuffix(s.url, "/?token=open+sesame") {
		t.Fatalf("the URL %s lacks the token", s.url)
	}
	base := strings.TrimPrefix(strings.TrimSuffix(s.url, "/?token=open+sesame"), "http://")
	_, port, err := net.SplitHostPort(base)
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://127.0.0.1:" + port
	s.want(401, "GET", "/api/runs", nil, nil)
	s.want(200, "GET", "/healthz", nil, nil)
	s.want(200, "GET", "/api/runs?token=open+sesame", nil, nil)
	s.close()
}
