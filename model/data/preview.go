package data

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"slotscope/model"
)

// Preview describes the dataset that adding a file or folder would give.
type Preview struct {
	Format string `json:"format"`
	Info   Info   `json:"info"`
	Images []byte `json:"-"` // the first images, at most previewImages, [n, H, W, C]
	Contents
}

const previewImages = 32

var errEnough = errors.New("enough images were read")

// Preview reads the description and the first images of a requested dataset, which must be on this machine. It writes nothing.
func (c Catalogue) Preview(ctx context.Context, r Request) (Preview, error) {
	r.From = strings.TrimSpace(r.From)
	p, err := c.planFrom(r)
	if err == nil {
		err = p.checkReading(r.Reading)
	}
	switch {
	case err != nil:
		return Preview{}, err
	case len(p.wants) > 0 || len(p.paths) == 0:
		return Preview{}, model.Invalid{"from": fmt.Sprintf("only files and folders on this machine can be previewed; add %s without a preview", r.From)}
	}
	rec := record{Paths: p.paths, Form: p.form, Reading: r.Reading}
	out := Preview{}
	if p.published != nil {
		rec.Published, out.Format = p.published.Info.Name, p.published.Info.Title
	} else {
		f, err := recognise(p.paths[0], isDir(p.paths[0]))
		if err != nil {
			return Preview{}, err
		}
		rec.Format, out.Format = f.Name, f.Name
	}
	source, err := openSafely(ctx, rec)
	if err != nil {
		return Preview{}, err
	}
	defer source.Close()
	if err := checkSource(source); err != nil {
		return Preview{}, fmt.Errorf("%s: %w", p.paths[0], err)
	}
	if s, ok := source.(interface{ contents() Contents }); ok {
		out.Contents = s.contents()
	}
	out.Info = source.Info()
	if out.Scaling == "" && len(out.Remarks) == 0 && len(out.Unused) == 0 && out.Info.Note != "" {
		out.Remarks = []string{out.Info.Note} // of a published dataset
	}
	out.Info.Name = p.name
	if out.Info.Title == "" {
		out.Info.Title = p.name
	}
	limit := min(previewImages, out.Info.Len) * out.Info.H * out.Info.W * out.Info.C
	err = safely(func() error {
		return source.Stream(ctx, 0, func(_ int, images []byte) error {
			if out.Images = append(out.Images, images...); len(out.Images) >= limit {
				return errEnough
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Preview{}, err
	}
	out.Images = out.Images[:min(limit, len(out.Images))]
	return out, nil
}
