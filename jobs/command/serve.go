package command

import (
	"cmp"
	"context"
	"os"
	"slices"

	"slotscope/model/data"
)

func serve(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "serve")
	o := ServeOptions{Out: env.out}
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "address to listen on; any but a loopback address needs a token")
	fs.StringVar(&o.Token, "token", "", "secret that visitors must bring; $SLOTSCOPE_TOKEN") // no default that -h would print
	fs.BoolVar(&o.Open, "open", false, "on a loopback address, serve every user of this machine, not only you")
	fs.BoolVar(&o.AllowRoot, "allow-root", false, "on a loopback address, serve root beside you")
	fs.Func("data-root", "`FOLDER` that datasets may be added from by path; may be given again. Without it: any folder, or with --token the data folder alone", func(text string) error {
		root, err := data.Root(text)
		o.Roots = append(o.Roots, root)
		return err
	})
	fs.Func("embed", "`ORIGIN`, such as https://lab.example, whose pages may show these in frames and read answers; may be given again", func(text string) error {
		o.Embed = append(o.Embed, text)
		return nil
	})
	fs.BoolVar(&o.PrivateURLs, "allow-private-urls", false, "let visitors add datasets from servers of this machine and of private networks")
	fs.BoolVar(&o.SlurmLines, "allow-slurm-lines", false, "let visitors give SLURM jobs any option of sbatch, and shell lines that run before")
	fs.BoolVar(&o.Shipped, "shipped", true, "put the trained runs that the program ships into the data folder, each once")
	folder := dataFlag(fs)
	alerting, executor := alertFlags(fs), executorFlags(fs)
	err := parse(fs, args, 0)
	if err != nil {
		return err
	}
	o.Data, o.Token = *folder, cmp.Or(o.Token, os.Getenv("SLOTSCOPE_TOKEN"))
	if o.Alerting, err = alerting(o.Data); err != nil {
		return err
	}
	if o.Executor, o.Slurm, err = executor(); err != nil {
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
