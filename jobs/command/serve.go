package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"slotscope/model"
	"slotscope/model/data"
)

// tokenVariable is the environment variable for the server's token.
const tokenVariable = "SLOTSCOPE_TOKEN"

type serveCommand struct {
	Addr             string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"listen address; any address except loopback requires a token"`
	Token            string   `env:"SLOTSCOPE_TOKEN" placeholder:"SECRET" help:"secret required from every client; prefer the variable, because other users of this machine can see flags"`
	Open             bool     `help:"on a loopback address, allow every user of this machine, not only you"`
	AllowRoot        bool     `help:"on a loopback address, also allow root"`
	DataRoot         []string `sep:"none" placeholder:"FOLDER" help:"folder from which datasets may be added by path (repeatable); default: any folder, or with --token only the data folder"`
	Embed            []string `sep:"none" placeholder:"ORIGIN" help:"origin that may embed the pages in frames and read responses, e.g. https://lab.example (repeatable)"`
	AllowPrivateURLs bool     `name:"allow-private-urls" help:"let users add datasets from servers on this machine and on private networks"`
	AllowSlurmLines  bool     `help:"let users give SLURM jobs any sbatch option and shell lines to run before the job"`
	Shipped          bool     `default:"true" negatable:"" help:"add the trained runs that ship with the program to the data folder, each once"`
	parallelFlag
	dataFlag
	alertFlags
	executorFlags
}

// parallelFlag is the flag for the number of runs that share the processors.
type parallelFlag struct {
	Parallel int `default:"1" placeholder:"N" help:"runs to compute at the same time on this machine's CPU, each on an equal share of the cores; speeds up many small runs"`
}

// maxParallel is the largest --parallel: no machine has cores for more processes.
const maxParallel = 256

// check returns an error if the number is out of range.
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
	o.Token = cmp.Or(c.Token, env.token) // an empty flag does not override the variable
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

// Limits returns the restrictions on adding datasets to a data folder. A user with a token may not be the operator, so a token restricts
// paths to the folders that the operator named.
func (o ServeOptions) Limits(dataDir string) data.Limits {
	limits := data.Limits{Public: !o.PrivateURLs}
	if o.Token != "" || len(o.Roots) > 0 {
		limits.Roots = append(slices.Clone(o.Roots), dataDir)
	}
	return limits
}
