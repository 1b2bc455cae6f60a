package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"time"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/measure/metric"
	"slotscope/model/paper/ae"

	"github.com/dustin/go-humanize"
)

const (
	windowBatches = 100                    // batches for perplexity/window and perplexity/used
	quickImages   = 512                    // images for psnr/eval during training, or EvalImages if fewer
	flushEvery    = 250 * time.Millisecond // maximum delay before a point is written
	statusEvery   = time.Second            // interval between updates of state.json
	rateOver      = 10 * time.Second       // averaging interval of images per second
	watchEvery    = 5 * time.Second        // interval between queries of the GPU's state
)

// Request is one attempt at a run.
type Request struct {
	Folder   *folder.Folder
	DataDir  string // folder of datasets
	Revision string // of this program, recorded with the run
	Attempt  int    // expected number of this attempt, from 1; 0 for the next one
	// QueueEvaluation queues an evaluation in the folder of a run that finishes, if its configuration has Evaluate set.
	QueueEvaluation bool

	Log *slog.Logger // progress, one line per event
	// Report is called about every second with the current status and the newest value of every series, which it must not retain; may be nil.
	Report func(model.Status, model.Config, map[string]float64)
}

// Run trains the run of a folder from its newest checkpoint, or from scratch, to its last step, while holding the folder's
// lock. Cancelling ctx saves a checkpoint and ends the run as stopped; the error then wraps ctx.Err(). Any
// other error ends it as failed. state.json records the result in every case.
func Run(ctx context.Context, req Request) (err error) {
	lock, err := req.Folder.Lock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	s := &session{Request: req, cfg: req.Folder.Config(), newest: map[string]float64{}}
	if s.status, err = req.Folder.Status(); err != nil {
		return err
	}
	if next := s.status.Attempt + 1; req.Attempt != 0 && req.Attempt != next {
		return fmt.Errorf("run %s: attempt %d has already been started: %w", req.Folder.ID(), req.Attempt, model.ErrConflict)
	}
	s.begin()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("training panicked: %v", p)
			req.Log.Error("panic", "value", p, "stack", stack())
		}
		s.close()
		err = s.end(ctx, err)
	}()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.train(ctx)
}

// session is the state of one attempt at a run.
type session struct {
	Request
	cfg     model.Config
	status  model.Status
	set     data.Set
	engine  *compute.Engine
	trainer *Trainer
	points  *folder.Appender
	sampler data.Sampler
	feeding Feeding
	images  []byte // those of the call that is being prepared
	copying bool   // the dataset is being copied to the device
	usage   *metric.Usage
	quick   quick
	rate    rate
	gpu     *gpu.Watcher // nil without a GPU
	process watched
	early   early
	better  better
	flushed time.Time          // last flush of points
	told    time.Time          // last write of state.json
	newest  map[string]float64 // last value of every series

	saving  int          // step of the last checkpoint whose writing began
	written <-chan error // result of writing it; nil if none is being written
}

// begin marks the run as running in this process, before anything can fail.
func (s *session) begin() {
	now := time.Now().UTC().Truncate(time.Millisecond) // the index's precision
	if s.status.Started.IsZero() {
		s.status.Started = now
	}
	s.status.State, s.status.PID, s.status.Revision = model.Running, pid(), s.Revision
	s.status.Host, _ = os.Hostname()
	s.status.Attempt++
	s.status.Ended, s.status.Reason = time.Time{}, ""
	s.status.Resumed = s.Folder.Latest()
	s.status.Step = s.status.Resumed
	s.tell(now)
}

// open prepares everything that a step needs and restores the newest checkpoint.
func (s *session) open(ctx context.Context) (err error) {
	if bad := s.cfg.Validate(); bad != nil {
		return fmt.Errorf("config.json: %w", bad)
	}
	if s.set, err = data.Open(ctx, s.cfg.Dataset, s.DataDir); err != nil {
		return fmt.Errorf("opening dataset %q: %w", s.cfg.Dataset, err)
	}
	info := s.set.Info()
	if s.sampler, err = data.NewSampler(s.cfg.Seed, s.cfg.Batch, info.Len); err != nil {
		return err
	}
	if s.engine, err = compute.OpenToResume(s.cfg, s.status.Precision); err != nil {
		return fmt.Errorf("opening engine %q: %w", s.cfg.Engine, err)
	}
	s.status.Engine, s.status.EngineWhy, s.status.Precision = s.engine.Name, s.engine.Why, s.engine.Precision
	if s.engine.Name == "xla:cuda" {
		s.gpu = gpu.Watch(watchEvery)
	}
	if s.trainer, err = New(s.cfg, ae.Image{H: info.H, W: info.W, C: info.C}, s.engine); err != nil {
		return err
	}
	devices, err := devicesOf(s.engine.Backend, s.cfg)
	if err != nil {
		return err
	}
	if err := s.trainer.Spread(devices); err != nil {
		return err
	}
	if devices > 1 {
		s.status.EngineWhy += fmt.Sprintf(" %d devices share every batch.", devices)
	}
	s.status.Parameters = s.trainer.Parameters()
	if s.cfg.Discrete() {
		s.usage = metric.NewUsage(s.cfg.Entries(), windowBatches)
	}
	if err := s.restore(); err != nil {
		return err
	}
	if err := s.place(ctx); err != nil {
		return err
	}
	if err := s.openEarly(); err != nil {
		return err
	}
	if s.points, err = s.Folder.Points(); err != nil {
		return err
	}
	if err := s.openQuick(); err != nil {
		return err
	}
	s.Log.Info("training", "dataset", info.Name, "model", s.cfg.Model, "preset", s.cfg.Preset, "parameters", s.status.Parameters,
		"engine", s.engine.Name, "why", s.engine.Why, "from", s.status.Step, "to", s.cfg.Steps)
	return nil
}

// measured holds the measurements of a call's steps that are not recorded yet.
type measured struct {
	first        int
	steps        []Step
	began, ended time.Time
}

// train takes the remaining steps. While a call of several steps runs, the previous one is recorded and the next prepared.
func (s *session) train(ctx context.Context) error {
	feeding, end := context.WithCancel(ctx)
	next := s.feed(feeding, s.status.Step+1)
	defer func() {
		end()
		for range next { // drain prepared calls
		}
	}()
	began, from := time.Now(), s.status.Step
	s.rate.restart(began, from)
	compiled := map[int]bool{} // by steps per call
	var last *measured
	for at := s.status.Step; at < s.cfg.Steps; {
		call, ok := <-next
		if !ok || ctx.Err() != nil {
			return errors.Join(s.record(last), s.stop(ctx))
		}
		if call.err != nil {
			return errors.Join(s.record(last), call.err)
		}
		now := &measured{first: call.First, began: time.Now()}
		running := s.trainer.Launch(call.Call)
		err := s.record(last)
		out := <-running
		if err = errors.Join(err, out.Err); err != nil {
			return err
		}
		last, now.steps, now.ended = now, out.Steps, time.Now()
		at += call.N
		if !compiled[call.N] { // compiling, which takes longer than a step, says nothing about the speed
			compiled[call.N] = true
			s.rate.restart(now.ended, at)
		}
		if call.N == 1 || s.due(at) || s.early.why != "" {
			if err := s.record(last); err != nil {
				return err
			}
			last = nil
		}
		if s.early.why != "" && last == nil {
			break
		}
	}
	if s.status.ImagesPerSecond == 0 { // a very short run has no speed yet, but sweep estimates need it
		s.rate.restart(began, from)
		s.pace(time.Now())
	}
	if err := s.keepAll(); err != nil {
		return err
	}
	return s.score(ctx)
}

// stop saves a checkpoint and returns why the run ends.
func (s *session) stop(ctx context.Context) error {
	s.status.State = model.Stopping
	s.tell(time.Now())
	if err := s.keepAll(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("stopped after step %d: %w", s.status.Step, ctx.Err())
}

// record writes a point for each step of a call and does what is due after them; it ignores nil.
func (s *session) record(m *measured) error {
	if m == nil {
		return nil
	}
	each := m.ended.Sub(m.began) / time.Duration(len(m.steps))
	for i, step := range m.steps {
		step.Values["images_per_second"] = float64(s.cfg.Batch) / each.Seconds()
		if err := s.point(m.first+i, step, m.began.Add(time.Duration(i+1)*each)); err != nil {
			return err
		}
	}
	return nil
}

// point records the measurements of one step.
func (s *session) point(step int, out Step, at time.Time) error {
	if s.gpu != nil {
		maps.Copy(out.Values, s.gpu.Take())
	}
	maps.Copy(out.Values, s.process.take(time.Now()))
	if out.Codes != nil {
		s.usage.Add(entries(s.cfg, out.Codes))
		out.Values["perplexity/batch"] = s.usage.Batch()
		out.Values["perplexity/window"] = s.usage.Window()
		out.Values["perplexity/used"] = float64(s.usage.Used())
	}
	if step%s.cfg.EvalEvery == 0 || step == s.cfg.Steps {
		if err := s.evaluate(out.Values); err != nil {
			return err
		}
	}
	round32(out.Values)
	s.judgeEarly(step, out.Values)
	if err := s.chooseBest(step, out.Values); err != nil {
		return err
	}
	maps.Copy(s.newest, out.Values)
	if err := s.points.Append(model.Point{Step: step, Time: at.UTC().Truncate(time.Microsecond), Values: out.Values}); err != nil {
		return err
	}
	s.status.Step = step
	if total := out.Values["total"]; math.IsNaN(total) || math.IsInf(total, 0) {
		return s.diverged(fmt.Sprintf("the total loss is %v at step %d", total, step))
	}
	return s.keep(time.Now())
}

// round32 rounds every value to float32, which most are already. This halves storage and keeps values equal after reading them back.
func round32(values map[string]float64) {
	for name, v := range values {
		values[name] = float64(float32(v))
	}
}

// entries returns the indices of the codebook entries of codes, [B, m].
func entries(c model.Config, codes []int32) []int32 {
	out := make([]int32, len(codes))
	for i, code := range codes {
		out[i] = int32(c.Entry(i%c.M, int(code)))
	}
	return out
}

// keep does what is due after a step: writing samples, a checkpoint, points and the status.
func (s *session) keep(now time.Time) error {
	step := s.status.Step
	if step == s.feeding.Steps || step%s.cfg.SampleEvery == 0 || step == s.cfg.Steps {
		if err := s.sample(); err != nil {
			return err
		}
	}
	if step%s.cfg.CheckpointEvery == 0 || step == s.better.step {
		if err := s.save(); err != nil {
			return err
		}
	}
	if len(s.written) > 0 {
		if err := s.settle(); err != nil {
			return err
		}
	}
	if now.Sub(s.flushed) >= flushEvery {
		s.flushed = now
		if err := s.points.Flush(); err != nil {
			return err
		}
	}
	if now.Sub(s.told) >= statusEvery {
		s.pace(now)
		s.tell(now)
	}
	return nil
}

// pace updates the status's speed and remaining time.
func (s *session) pace(now time.Time) {
	perSecond := s.rate.add(now, s.status.Step)
	s.status.ImagesPerSecond = perSecond * float64(s.cfg.Batch)
	s.status.SecondsLeft = 0
	if perSecond > 0 {
		s.status.SecondsLeft = float64(s.cfg.Steps-s.status.Step) / perSecond
	}
}

// tell writes state.json and calls Report. A failed write is only logged, because points and checkpoints hold the run's progress.
func (s *session) tell(now time.Time) {
	s.told, s.status.Updated = now, now.UTC()
	if err := s.Folder.SetStatus(s.status); err != nil {
		s.Log.Error("could not write state.json", "error", err)
	}
	if s.Report != nil {
		s.Report(s.status, s.cfg, s.newest)
	}
}

// close releases what open acquired, in reverse order.
func (s *session) close() {
	if s.gpu != nil {
		s.gpu.Stop()
	}
	if err := s.settle(); err != nil {
		s.Log.Error("could not save checkpoint", "error", err)
	}
	if s.points != nil {
		if err := s.points.Close(); err != nil {
			s.Log.Error("could not close points.jsonl", "error", err)
		}
	}
	s.quick.close()
	if s.trainer != nil {
		s.trainer.Finalize()
	}
	if s.set != nil {
		s.set.Close()
	}
}

// end writes the final status: the attempt's end state and its reason.
func (s *session) end(ctx context.Context, err error) error {
	now := time.Now()
	if err == nil && s.QueueEvaluation && s.cfg.Evaluate != "" {
		s.queueEvaluation(now) // before the run is visible as finished
	}
	s.status.Ended, s.status.SecondsLeft = now.UTC().Truncate(time.Millisecond), 0
	switch {
	case err == nil:
		s.status.State, s.status.Reason = model.Finished, fmt.Sprintf("All %s steps are done.", humanize.Comma(int64(s.cfg.Steps)))
		if s.early.why != "" && s.status.Step < s.cfg.Steps {
			s.status.Early, s.status.Reason = s.early.holds, s.earlyReason()
		}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		s.status.State = model.Stopped
		s.status.Reason = fmt.Sprintf("Stopped after step %d, saved at step %d: %v.", s.status.Step, s.status.Checkpoint, context.Cause(ctx))
	default:
		s.status.State = model.Failed
		s.status.Reason = s.failure(err)
	}
	s.logEnd(err)
	s.tell(now)
	return err
}

// logEnd logs the end of the attempt. The caller reports the error of a failure; it is logged here only if the reason in state.json is
// not the full error.
func (s *session) logEnd(err error) {
	about := []any{"state", s.status.State, "share_of_time_measuring", fmt.Sprintf("%.1f%%", 100*s.quick.share())}
	switch {
	case s.status.State != model.Failed:
		about = append(about, "reason", s.status.Reason)
	case s.status.Reason != err.Error():
		s.Log.Error("failed", "error", err)
	}
	s.Log.Info("ended", about...)
}

// queueEvaluation queues an evaluation of the run. On a cluster, the training job runs it.
func (s *session) queueEvaluation(now time.Time) {
	job, err := s.Folder.Job()
	e := model.Evaluation{State: model.Queued, Effort: s.cfg.Evaluate, Asked: now.UTC().Truncate(time.Millisecond)}
	if job.Executor == model.Slurm {
		e.Executor = model.Slurm
	}
	if err := errors.Join(err, s.Folder.QueueEvaluation(e)); err != nil {
		s.Log.Error("could not queue the evaluation", "error", err)
	}
}
