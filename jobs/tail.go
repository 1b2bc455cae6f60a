package jobs

import (
	"context"
	"errors"
	"slices"

	"slotscope/model"
	"slotscope/model/folder"
)

const (
	batchPoints = 500 // per transaction
	tailReads   = 2   // reads of about 1 MB per visit, so that a long import does not delay live runs
)

// tail stores the points that the run has written since the last visit. It runs without mu, because only the loop uses the cursor.
func (s *Supervisor) tail(ctx context.Context, f *folder.Folder, e *entry, seen sight) error {
	if e.cursor == nil {
		c, err := s.o.Store.Cursor(ctx, f.ID())
		if err != nil {
			return err
		}
		e.cursor = &c
	}
	s.setBehind(e, true)
	for range tailReads {
		more, err := s.read(ctx, f, e, seen.run.Attempt)
		if err != nil {
			return err
		}
		if !more {
			s.setBehind(e, false)
			return nil
		}
	}
	s.look() // continue without waiting for the tick
	return nil
}

func (s *Supervisor) setBehind(e *entry, behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.behind = behind
}

// read stores one piece of points.jsonl, and reports whether there may be more. It logs lines that are not points.
func (s *Supervisor) read(ctx context.Context, f *folder.Folder, e *entry, attempt int) (more bool, err error) {
	points, next, rewound, err := f.Follow(place(*e.cursor))
	if rewound {
		return true, s.resync(ctx, f, e, attempt)
	}
	if next == place(*e.cursor) {
		return false, err
	}
	if err != nil {
		s.report(e, f.ID(), err)
	}
	return true, s.store(ctx, f.ID(), e, points, next, attempt)
}

func place(c model.Cursor) folder.Cursor { return folder.Cursor{Offset: c.Offset, Mark: c.Mark} }

// store adds points in batches. Only the last batch advances the position in the file; repeating batches after a crash is harmless,
// because stored steps are skipped.
func (s *Supervisor) store(ctx context.Context, id string, e *entry, points []model.Point, next folder.Cursor, attempt int) error {
	points = slices.DeleteFunc(points, func(p model.Point) bool { return p.Step <= e.cursor.Head })
	c := *e.cursor
	switch {
	case c.Attempt == 0:
		c.Attempt = max(1, attempt)
	case c.Attempt < attempt && len(points) > 0: // a resume that dropped no points
		c.Attempt = attempt
		if err := s.o.Store.Rewind(ctx, id, c.Head, c); err != nil {
			return err
		}
		*e.cursor = c
	}
	for done := false; !done; {
		n := min(batchPoints, len(points))
		if done = n == len(points); done {
			c.Offset, c.Mark = next.Offset, next.Mark
		}
		if err := s.o.Store.AddPoints(ctx, id, points[:n], c); err != nil {
			return err
		}
		if n > 0 {
			c.Head = points[n-1].Step
			stored.Add(float64(n))
			s.watchers.notify(id)
		}
		*e.cursor, points = c, points[n:]
	}
	return nil
}

// resync reads a rewritten file from the start while it matches the stored points, drops the stored points beyond, and continues reading
// from there. The time of a point, in nanoseconds, shows whether it was measured again, so that this does not depend on numbers in any
// record.
func (s *Supervisor) resync(ctx context.Context, f *folder.Folder, e *entry, attempt int) error {
	at, keep := folder.Cursor{}, 0
	for ctx.Err() == nil {
		points, next, rewound, err := f.Follow(at)
		if rewound || next == at {
			break
		}
		if err != nil {
			s.report(e, f.ID(), err)
		}
		n, err := s.o.Store.Match(ctx, f.ID(), keep, points)
		if err != nil {
			return err
		}
		if n > 0 {
			keep = points[n-1].Step
		}
		if n < len(points) {
			break
		}
		at = next
	}
	return s.goBack(ctx, f.ID(), e, keep, at, attempt)
}

// goBack moves the cursor to a position in the file that follows the steps up to keep.
func (s *Supervisor) goBack(ctx context.Context, id string, e *entry, keep int, at folder.Cursor, attempt int) (err error) {
	c := *e.cursor
	c.Offset, c.Mark = at.Offset, at.Mark
	if keep >= c.Head {
		err = s.o.Store.AddPoints(ctx, id, nil, c) // nothing to drop
	} else {
		c.Attempt, c.Head = max(c.Attempt+1, attempt), keep
		err = s.o.Store.Rewind(ctx, id, keep, c)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	*e.cursor = c
	s.watchers.notify(id)
	return nil
}
