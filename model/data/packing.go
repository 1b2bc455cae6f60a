package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"slotscope/model/data/pack"
)

// take registers a source: in place if it has random access to images, else packed.
func (a *adding) take(ctx context.Context, source Source, r record) error {
	r.Info = source.Info()
	r.Info.Name = a.name
	if r.Info.Title == "" {
		r.Info.Title = a.name
	}
	if err := checkSource(source); err != nil {
		return fmt.Errorf("%s: %w", a.paths[0], err)
	}
	_, inPlace := source.(InPlace)
	r.Packed = !inPlace
	if inPlace {
		if err := a.checkSums(ctx, source); err != nil {
			return err
		}
	}
	if pictures, ok := source.(forgiving); ok && a.request.Skip {
		a.leaveOut(pictures)
	}
	if r.Packed || !indexed(r.Info) {
		if err := a.pack(ctx, source, r); err != nil {
			return err
		}
	}
	if s, ok := source.(remarking); ok {
		r.Info.Note = strings.TrimSpace(r.Info.Note + " " + s.remark())
	}
	return writeRecord(a.dir, recordFile, r.without(a.left))
}

// remarking is a source that has a note on the images it has yielded. Images packed before an interruption are not covered.
type remarking interface {
	remark() string
}

// summed is a source whose file contains checksums.
type summed interface {
	// verify reads everything the checksums cover and compares it with them.
	verify(ctx context.Context, tell func(done, of int64)) error
}

// checkSums verifies a file that is used in place with its own checksums, unless published ones were verified.
func (a *adding) checkSums(ctx context.Context, source Source) error {
	s, ok := source.(summed)
	if !ok || a.published != nil && a.published.Forms[a.form].summed() {
		return nil
	}
	a.stage("checking", filepath.Base(a.paths[0]), "bytes")
	return s.verify(ctx, a.progress)
}

// summed reports whether a checksum is published for every file.
func (f Form) summed() bool {
	return !slices.ContainsFunc(f.Files, func(f File) bool { return f.SHA256 == "" && f.MD5 == "" })
}

// checkSource returns an error if the description of a source is inconsistent.
func checkSource(source Source) error {
	info := source.Info()
	if info.Len < 1 || info.H < 1 || info.W < 1 || info.C != 1 && info.C != 3 {
		return fmt.Errorf("%d images of %d × %d × %d are not a usable dataset; it needs at least one image, with 1 or 3 channels", info.Len, info.H, info.W, info.C)
	}
	for i, f := range info.Factors {
		if slices.ContainsFunc(info.Factors[:i], func(other Factor) bool { return other.Name == f.Name }) {
			return fmt.Errorf("two factors are named %q; give each its own name", f.Name)
		}
		if f.Name == "" || len(f.Values) == 0 || len(f.Values) > 1<<16 {
			return fmt.Errorf("factor %q has %d values; it needs a name and 1 to 65,536 values", f.Name, len(f.Values))
		}
	}
	if info.Complete {
		if n := Grid(info.Sizes()).Len(); n != info.Len {
			return fmt.Errorf("%d images do not match the %d combinations of the factors", info.Len, n)
		}
		return nil
	}
	labels, factors := source.Labels(), len(info.Factors)
	if len(labels) != info.Len*factors {
		return fmt.Errorf("there are %d labels for %d images with %s", len(labels), info.Len, countOf(factors, "factor", "factors"))
	}
	for i, class := range labels {
		if f := info.Factors[i%factors]; int(class) >= len(f.Values) {
			return fmt.Errorf("image %d has class %d of %s, which has only %d values", i/factors, class, f.Name, len(f.Values))
		}
	}
	return nil
}

// pack writes images.pack, or resumes writing it.
func (a *adding) pack(ctx context.Context, source Source, r record) error {
	h, labels, err := packed(source, r)
	if err != nil {
		return err
	}
	if _, err := a.dir.Stat(packFile); err == nil {
		return a.recallLeftOut(h.Len) // packing was complete but interrupted before the record was written
	}
	bytes, err := h.Size()
	if err != nil {
		return err
	}
	w, err := pack.NewWriter(a.dir, packFile, h, labels)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := a.recallLeftOut(w.Done()); err != nil {
		return err
	}
	if err := room(a.dir, bytes-int64(w.Done())*int64(h.Each)); err != nil {
		return errors.Join(err, a.discardEmpty(w))
	}
	if h.Each > 0 && w.Done() < h.Len {
		if err := a.prepare(ctx, source); err != nil {
			return err
		}
		a.stage("packing", "", "images")
		if err := a.stream(ctx, source, w, h); err != nil {
			return err
		}
	}
	return w.Finish()
}

// discardEmpty removes the file if it has no images yet.
func (a *adding) discardEmpty(w *pack.Writer) error {
	if w.Done() > 0 {
		return nil
	}
	return errors.Join(w.Close(), pack.Discard(a.dir, packFile))
}

// packed returns the header and labels of the packed file of a source.
func packed(source Source, r record) (pack.Header, []uint16, error) {
	info, err := json.Marshal(r.Info)
	if err != nil {
		return pack.Header{}, nil, err
	}
	h := pack.Header{Len: r.Info.Len, Info: info, Origin: fmt.Sprint(r.Published, r.Form, r.Format, r.Paths, r.Prints)}
	if r.Reading != (Reading{}) {
		h.Origin += fmt.Sprint(r.Reading)
	}
	if r.Packed {
		h.Each = r.Info.H * r.Info.W * r.Info.C
	}
	if indexed(r.Info) {
		return h, nil, nil
	}
	h.Factors = len(r.Info.Factors)
	return h, source.Labels(), nil
}

// prepare does the work before the first image.
func (a *adding) prepare(ctx context.Context, source Source) error {
	p, ok := source.(prepared)
	if !ok {
		return nil
	}
	a.stage("reading", "", "images")
	of := int64(source.Info().Len)
	a.progress(0, of)
	return p.prepare(ctx, func(done int) { a.progress(int64(done), of) })
}

func (a *adding) stream(ctx context.Context, source Source, w *pack.Writer, h pack.Header) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s cannot be read: %v", a.paths[0], p)
		}
	}()
	a.progress(int64(w.Done()), int64(h.Len))
	err = source.Stream(ctx, w.Done(), func(first int, images []byte) error {
		if first != w.Done() || len(images) > (h.Len-first)*h.Each {
			return fmt.Errorf("the reader of %s yielded %d images from %d on, but %d was next", a.paths[0], len(images)/h.Each, first, w.Done())
		}
		if err := w.Write(images); err != nil {
			return err
		}
		a.progress(int64(w.Done()), int64(h.Len))
		return ctx.Err()
	})
	if err == nil && w.Done() < h.Len {
		err = fmt.Errorf("%s ended early, after %d of %d images", a.paths[0], w.Done(), h.Len)
	}
	return err
}
