// Slotscope trains, evaluates and explores disentangled representations based on holographic reduced representations. This file wires
// and runs the server; the subcommands are in jobs/command.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slotscope/db"
	"slotscope/handlers/compare"
	"slotscope/handlers/dataset"
	"slotscope/handlers/docs"
	"slotscope/handlers/home"
	"slotscope/handlers/measure"
	playpage "slotscope/handlers/play"
	runpage "slotscope/handlers/run"
	sweeppage "slotscope/handlers/sweep"
	"slotscope/handlers/system"
	theorypage "slotscope/handlers/theory"
	"slotscope/handlers/workbench"
	"slotscope/jobs"
	"slotscope/jobs/command"
	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/compute"
	"slotscope/model/compute/cpu"
	"slotscope/model/data"
	"slotscope/model/exchange"
	"slotscope/model/folder"
	"slotscope/model/play"
	"slotscope/model/shipped"
	"slotscope/model/view"
	"slotscope/model/whole"
	"slotscope/static"
	"slotscope/web"
)

func main() {
	cpu.SpareProcessors()
	os.Exit(command.Main(os.Args[1:], serve, freeze, export))
}

// serve opens the data folder and serves until ctx ends, then closes everything in reverse order. Runs in progress continue.
func serve(ctx context.Context, o command.ServeOptions) (err error) {
	log := web.NewLog(os.Stderr)
	slog.SetDefault(log)
	site := web.Config{Addr: o.Addr, Token: o.Token, Open: o.Open, Root: o.AllowRoot, Log: log, Version: command.About()}
	if err := allow(&site, o); err != nil {
		return err
	}
	root, err := folder.Root(o.Data)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := whole.CleanTemp(); err != nil {
		log.Warn("could not remove the temporary files of dead processes", "error", err)
	}
	lock, err := folder.LockData(root.Dir())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	engine, err := compute.Open("cpu") // a GPU, if there is one, is reserved for runs
	if err != nil {
		return err
	}
	if o.Shipped {
		placeShipped(root, log)
	}
	listener, err := web.Listen(site)
	if err != nil {
		return err
	}
	defer listener.Close()
	index, err := openIndex(ctx, root.Dir(), log)
	if err != nil {
		return err
	}
	defer index.Close()

	sets := data.Catalogue{Dir: root.Dir(), Limits: o.Limits(root.Dir())}
	adding := jobs.NewDatasets(sets, log)
	defer adding.Close()
	runs, err := jobs.New(context.WithoutCancel(ctx), command.Supervision(o, root, log, jobs.Options{Store: index, Check: fits(sets)}))
	if err != nil {
		return err
	}
	defer runs.Close()
	if err := prometheus.Register(runs.Metrics()); err != nil {
		return err
	}
	sweeps := jobs.NewSweeps(context.WithoutCancel(ctx), jobs.SweepOptions{Supervisor: runs, Log: log})
	defer sweeps.Close()
	library := play.NewLibrary(root.Dir(), engine, sets)
	defer library.Close()

	site.Ready = index.Ready
	site.Pages = parts{root.Dir(), engine, sets, adding, runs, sweeps, library}.pages(o)
	return web.Serve(ctx, listener, site, func(url string) { fmt.Fprintln(o.Out, "listening on", url) })
}

// openIndex opens the index of a data folder. On a full disk, it opens one in memory, so that users can delete runs from the pages.
func openIndex(ctx context.Context, dir string, log *slog.Logger) (*db.DB, error) {
	index, err := db.Open(ctx, filepath.Join(dir, "index.sqlite"))
	if !folder.Full(err) {
		return index, err
	}
	log.Warn("the disk is full, so the index of runs is kept in memory; delete runs or other files, then restart", "error", err)
	return db.OpenInMemory(ctx)
}

// parts holds the services that the pages use.
type parts struct {
	data    string // path of the data folder
	engine  *compute.Engine
	sets    data.Catalogue
	adding  *jobs.Datasets
	runs    *jobs.Supervisor
	sweeps  *jobs.Sweeps
	library *play.Library
}

func (p parts) pages(o command.ServeOptions) []web.Page {
	evaluations, bundled := p.runs.Evaluations(), bundles(p.library, p.engine, p.data)
	return []web.Page{
		&home.Home{Runs: p.runs, Datasets: p.sets, Library: p.library},
		runpage.Runs{Service: p.runs, Datasets: p.sets, Places: p.runs, Evaluations: evaluations, Bundles: bundled, Folders: p.runs, Logs: exchange.Store{Data: p.data}},
		workbench.Workbench{Runs: p.runs, Views: view.Open(p.data), Evaluations: evaluations},
		compare.Reports{Runs: p.runs, Scores: p.runs, Sweeps: p.sweeps, Pairs: p.library, Noise: p.runs, Bundles: bundled},
		sweeppage.Sweeps{Service: p.sweeps, Datasets: p.sets, Places: p.runs},
		dataset.Datasets{Catalogue: p.adding},
		&playpage.Play{Library: p.library, Static: static.Files(), Revision: command.Revision()},
		measure.Tables{},
		measure.Measure{Runs: p.runs, Datasets: p.sets, Scores: p.runs, Noise: p.runs, Evaluations: evaluations, Names: p.library},
		theorypage.Theory{Datasets: p.sets, Library: p.library, Scores: p.runs},
		&docs.API{Version: command.Revision()},
		system.System{Engine: system.Look(o.Executor), DataDir: p.data, Version: command.Revision(), Started: time.Now(), Alerts: p.runs},
	}
}

// allow sets which sites may embed the pages and checks that the access settings are safe.
func allow(site *web.Config, o command.ServeOptions) error {
	site.Embed = o.Embed
	for _, origin := range o.Embed {
		if err := web.CheckOrigin(origin); err != nil {
			return model.Invalid{"embed": err.Error()}
		}
	}
	if err := site.CheckAccess(); err != nil {
		return model.Invalid{"addr": err.Error()}
	}
	return nil
}

// placeShipped copies the shipped demo runs into the data folder. The server also works without them.
func placeShipped(root *folder.Data, log *slog.Logger) {
	if err := shipped.Place(root); err != nil {
		log.Warn("could not copy all demo runs into the data folder; the next start retries", "error", err)
	}
}

// freeze writes the playground with the named checkpoints, or all shipped ones, as one HTML file.
func freeze(ctx context.Context, o command.FreezeOptions, w io.Writer) error {
	engine, err := compute.Open("cpu")
	if err != nil {
		return err
	}
	library := play.NewLibrary(o.Data, engine, data.Catalogue{Dir: o.Data})
	defer library.Close()
	if len(o.Names) == 0 {
		shipped, err := play.Shipped()
		if err != nil {
			return err
		}
		for _, s := range shipped {
			o.Names = append(o.Names, s.Key)
		}
	}
	return playpage.Freezer{Library: library, Static: static.Files(), Revision: command.Revision()}.Freeze(ctx, o.Names, w)
}

// export makes the bundle of a checkpoint; free releases its library.
func export(ctx context.Context, o command.ExportOptions) (b bundle.Bundle, free func(), err error) {
	engine, err := compute.Open("cpu")
	if err != nil {
		return b, nil, err
	}
	library := play.NewLibrary(o.Data, engine, data.Catalogue{Dir: o.Data})
	if b, err = bundles(library, engine, o.Data).Bundle(ctx, o.Name); err != nil {
		library.Close()
		return b, nil, err
	}
	return b, library.Close, nil
}

// bundles returns the source of bundles of a data folder's runs.
func bundles(library *play.Library, engine *compute.Engine, dir string) bundle.Source {
	freezer := playpage.Freezer{Library: library, Static: static.Files(), Revision: command.Revision()}
	return bundle.Source{Library: library, Engine: engine, Data: dir, Revision: command.Revision(), Freeze: freezer.Freeze}
}

// fits returns a check that a configuration's dataset is installed and has enough images for a batch.
func fits(sets data.Catalogue) func(context.Context, model.Config) error {
	return func(ctx context.Context, cfg model.Config) error {
		set, err := sets.Open(ctx, cfg.Dataset)
		if err != nil {
			return err
		}
		defer set.Close()
		_, err = data.NewSampler(cfg.Seed, cfg.Batch, set.Info().Len)
		return err
	}
}
