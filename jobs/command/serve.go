package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"slotscope/model"
	"slotscope/model/data"
)

type serveCommand struct {
	Addr             string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"address to listen on; any but a loopback address needs a token"`
	Token            string   `env:"SLOTSCOPE_TOKEN" placeholder:"SECRET" help:"secret that visitors must bring; other users of this machine can see flags, so prefer the variable"`
	Open             bool     `help:"on a loopback address, serve every user of this machine, not only you"`
	AllowRoot        bool     `help:"on a loopback address, serve root beside you"`
	DataRoot         []string `sep:"none" placeholder:"FOLDER" help:"folder that datasets may be added from by path; may be given again. Without it: any folder, or with --token the data folder alone"`
	Embed            []string `sep:"none" placeholder:"ORIGIN" help:"origin, such as https://lab.example, whose pages may show these in frames and read answers; may be given again"`
	AllowPrivateURLs bool     `name:"allow-private-urls" help:"let visitors add datasets from servers of this machine and of private networks"`
	AllowSlurmLines  bool     `help:"let visitors give SLURM jobs any option of sbatch, and shell lines that run before"`
	Shipped          bool     `default:"true" negatable:"" help:"put the trained runs that the program ships into the data folder, each once"`
	parallelFlag
	dataFlag
	alertFlags
	executorFlags
}

// parallelFlag says how many runs share the processors.
type parallelFlag struct {
	Parallel int `default:"1" placeholder:"N" help:"runs at the same time on this machine's processors, each with its share of the cores: several small ones train more images a second than one after another"`
}

// maxParallel is the largest --parallel: more processes than any machine has cores for are a mistake.
const maxParallel = 256

// check says whether so many can compute.
func (f parallelFlag) check() error {
	if f.Parallel < 1 || f.Parallel > maxParallel {
		return model.Invalid{"parallel": fmt.Sprintf("%d is not between 1 and %d", f.Parallel, maxParallel)}
	}
	return nil
}

func (c *serveCommand) Run(ctx context.Context, env environment) error {
	o := ServeOptions{Out: env.out, Addr: c.Addr, Data: c.Data, Open: c.Open, AllowRoot: c.AllowRoot, Embed: c.Embed, PrivateURLs: c.AllowPrivateURLs, SlurmLines: c.AllowSlurmLines, Shipped: c.Shipped}
	if err := c.check(); err != nil {
		return err
	}
	o.Parallel = c.Parallel
	o.Token = cmp.Or(c.Token, os.Getenv("SLOTSCOPE_TOKEN")) // an empty flag takes no token away
	for _, text := range c.DataRoot {
		root, err := data.Root(text)
		if err != nil {
			return badFlag{"data-root", err}
		}
		o.Roots = append(o.Roots, root)
	}
	var err error
	if o.Alerting, err = c.alerting(o.Data); err != nil {
		return err
	}
	if o.Executor, o.Slurm, err = c.executor(); err != nil {
		return err
	}
	return env.serve(ctx, o)
}

// Limits bound what visitors may add to a data folder. Whoever holds a token is perhaps not the operator, so paths are then bound to
// folders that the operator named.
func (o ServeOptions) Limits(dataDir string) data.Limits {
	limits := data.Limits{Public: !o.PrivateURLs}
	if o.Token != "" || len(o.Roots) > 0 {
		limits.Roots = append(slices.Clone(o.Roots), dataDir)
	}
	return limits
}
