package command

import (
	"context"
	"os"
)

func serve(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "serve")
	o := ServeOptions{Out: env.out}
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "address to listen on; any but a loopback address needs a token")
	fs.StringVar(&o.Token, "token", os.Getenv("SLOTSCOPE_TOKEN"), "secret that visitors must bring; $SLOTSCOPE_TOKEN")
	fs.BoolVar(&o.Open, "open", false, "on a loopback address, serve every user of this machine, not only you")
	fs.BoolVar(&o.AllowRoot, "allow-root", false, "on a loopback address, serve root beside you")
	folder := dataFlag(fs)
	executor := executorFlags(fs)
	err := parse(fs, args, 0)
	if err != nil {
		return err
	}
	o.Data = *folder
	if o.Executor, o.Slurm, err = executor(); err != nil {
		return err
	}
	return env.serve(ctx, o)
}
