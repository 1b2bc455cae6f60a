package command

import (
	"cmp"
	"context"
	"os"
	"slices"

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
	dataFlag
	alertFlags
	executorFlags
}

func (c *serveCommand) Run(ctx context.Context, env environment) error {
	o := ServeOptions{Out: env.out, Addr: c.Addr, Data: c.Data, Open: c.Open, AllowRoot: c.AllowRoot, Embed: c.Embed, PrivateURLs: c.AllowPrivateURLs, SlurmLines: c.AllowSlurmLines, Shipped: c.Shipped}
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
