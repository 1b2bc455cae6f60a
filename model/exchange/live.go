package exchange

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"slotscope/model/folder"
	"slotscope/model/format/tensorboard"
)

// liveEvery is the interval between updates.
const liveEvery = time.Second

// Live writes an event file into dir during a run until ctx ends, then writes the remaining points. A resumed run starts a new file that
// replaces the repeated steps.
func Live(ctx context.Context, f *folder.Folder, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	begun := time.Now()
	file, err := os.OpenFile(filepath.Join(dir, eventName(begun, f.ID())), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	l := live{f: f, out: tensorboard.NewWriter(file, begun)}
	l.out.Start(begun, f.ID(), HParams(f.Config()), compared)
	for tick := time.NewTicker(liveEvery); ; {
		select {
		case <-tick.C:
			if err := l.carry(); err != nil {
				return err
			}
		case <-ctx.Done():
			tick.Stop()
			return l.end()
		}
	}
}

type live struct {
	f      *folder.Folder
	out    *tensorboard.Writer
	cursor folder.Cursor
	last   int // last step written
	shown  int // step of the last sheet written
}

// carry writes the points measured since the last call.
func (l *live) carry() error {
	for {
		points, next, rewound, err := l.f.Follow(l.cursor)
		if err != nil && next == l.cursor {
			return err
		}
		if rewound { // the run was resumed from an earlier step
			l.cursor, l.last = folder.Cursor{}, 0
			l.out.Restart(time.Now(), 1)
			continue
		}
		for _, p := range points {
			if p.Step > l.last {
				l.out.Scalars(p.Time, p.Step, p.Values)
				l.last = p.Step
			}
		}
		if next == l.cursor {
			break
		}
		l.cursor = next
	}
	for _, step := range l.f.Samples() {
		if step > l.shown {
			if err := sheet(l.f, l.out, step, time.Now()); err != nil {
				return err
			}
			l.shown = step
		}
	}
	return l.out.Err()
}

func (l *live) end() error {
	if err := l.carry(); err != nil {
		return err
	}
	status, err := l.f.Status()
	if err == nil && status.State.Ended() {
		at := status.Ended
		if at.IsZero() {
			at = time.Now()
		}
		l.out.End(at, outcomeOf(status.State))
	}
	if err != nil {
		return err
	}
	return l.out.Err()
}
