package command

import (
	"context"
	"fmt"
	"runtime"

	"slotscope/model/compute"
)

func gpu(_ context.Context, env environment, args []string) error {
	fs := flags(env, "gpu")
	asJSON := jsonFlag(fs)
	if err := parse(fs, args, 0); err != nil {
		return err
	}
	engine, err := compute.Open("auto")
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(env.out, map[string]any{"engine": engine.Name, "why": engine.Why, "threads": engine.Threads})
	}
	fmt.Fprintf(env.out, "engine: %s\n%s\n%s\n", engine.Name, engine.Why, engine.Description())
	return nil
}

func version(_ context.Context, env environment, args []string) error {
	fs := flags(env, "version")
	asJSON := jsonFlag(fs)
	if err := parse(fs, args, 0); err != nil {
		return err
	}
	if *asJSON {
		return printJSON(env.out, About())
	}
	fmt.Fprintf(env.out, "slotscope %s, %s, %s/%s\n", Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// About is the program's version for machines to read.
func About() map[string]string {
	return map[string]string{"revision": Revision(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
}
