package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"slotscope/model"
	"slotscope/model/data/fetch"
	"slotscope/model/data/pack"
	"slotscope/model/folder"
	"slotscope/model/host"
)

// Request is a request to add a dataset.
type Request struct {
	// Name is the name to add it under; empty for that of the published dataset, or one derived from the file name.
	Name string `json:"name"`
	// From is a path, absolute or relative to the data folder; a URL; a dataset with a selection, to be available as Name; or empty, for
	// a published dataset whose files are on this machine or can be downloaded.
	From string `json:"from"`
	// Skip skips damaged images. For a dataset whose adding failed because of one, it applies to the original request.
	Skip bool `json:"skip_broken"`
	Reading
}

// plan is a resolved request.
type plan struct {
	name      string
	request   Request
	part      string     // the dataset with a selection that gets the name
	published *Published // nil for a user's own file
	form      int
	paths     []string     // of the files; downloads go to files/ in the dataset's folder
	wants     []fetch.Want // files to download first
}

// Plan returns the name under which a request would be added, or an error that explains what is wrong with the request. It writes and
// downloads nothing.
func (c Catalogue) Plan(r Request) (name string, err error) {
	p, err := c.plan(r)
	return p.name, err
}

func (c Catalogue) plan(r Request) (plan, error) {
	r.Name, r.From = strings.TrimSpace(r.Name), strings.TrimSpace(r.From)
	if r.Name != "" {
		if err := checkName(r.Name); err != nil {
			return plan{}, err
		}
	}
	p, err := c.planFrom(r)
	if err == nil {
		err = p.checkReading(r.Reading)
	}
	if err != nil {
		return plan{}, err
	}
	if p.request == (Request{}) {
		p.request = Request{Name: p.name, From: r.From, Reading: r.Reading}
	}
	before, err := c.requested(p.name)
	p.request.Skip = r.Skip || err == nil && before.From == p.request.From && before.Skip
	for _, d := range drawn {
		if d.info.Name == p.name {
			return plan{}, fmt.Errorf("%s is part of the program and need not be added: %w", p.name, model.ErrConflict)
		}
	}
	if p.published == nil && publishedByName(p.name) != nil {
		return plan{}, model.Invalid{"name": fmt.Sprintf("%s is the name of a published dataset, and this is not that dataset; choose another name", p.name)}
	}
	if _, err := c.record(p.name); err == nil {
		return plan{}, fmt.Errorf("dataset %s already exists; remove it first or choose another name: %w", p.name, model.ErrConflict)
	}
	return p, nil
}

// checkReading returns an error for options that the dataset does not use, or that cannot be understood.
func (p plan) checkReading(r Reading) error {
	switch {
	case r == (Reading{}):
		return nil
	case p.published != nil:
		return model.Invalid{"from": fmt.Sprintf("%s is read as it was published; leave out the options images, labels, scale and orientation, or choose another name to read the file as your own", p.published.Info.Title)}
	case p.request.From != "" && p.request.Reading != r:
		return model.Invalid{"from": fmt.Sprintf("give the path of %s again to change how it is read", p.name)}
	case len(p.paths) == 0:
		return model.Invalid{"from": "the options images, labels, scale and orientation apply only to files; leave them out"}
	case r.Scale != "":
		_, _, err := parseScale(r.Scale)
		return err
	}
	return nil
}

func (c Catalogue) planFrom(r Request) (plan, error) {
	switch {
	case r.From == "":
		return c.planKnown(r.Name)
	case strings.HasPrefix(r.From, "http://"), strings.HasPrefix(r.From, "https://"):
		return c.planURL(r)
	case strings.Contains(r.From, "://") && !c.isPath(r.From):
		return plan{}, model.Invalid{"from": fmt.Sprintf("%s cannot be downloaded; use an address that starts with http:// or https://", r.From)}
	case strings.Contains(r.From, "[") && !c.isPath(r.From):
		return planPart(r)
	}
	return c.planPath(r)
}

// isPath reports whether a file or folder of that name exists. Its name may contain brackets, as a selection does.
func (c Catalogue) isPath(from string) bool {
	path, err := c.absolute(from)
	if err != nil || c.Limits.checkWritten(path) != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

// planKnown plans a published dataset by name, or resumes one whose adding was interrupted.
func (c Catalogue) planKnown(name string) (plan, error) {
	if before, err := c.requested(name); err == nil && before.From != "" {
		p, err := c.planFrom(before)
		p.request = before // for resuming after another interruption
		return p, err
	}
	p := publishedByName(name)
	if p == nil {
		return plan{}, model.Invalid{"from": fmt.Sprintf("%q is not the name of a published dataset; give a path or a URL", name)}
	}
	if form, paths, ok := c.find(p); ok {
		return plan{name: name, published: p, form: form, paths: paths}, nil
	}
	for form := range p.Forms {
		if p.Forms[form].downloadable() {
			return c.download(name, p, form), nil
		}
	}
	return plan{}, model.Invalid{"from": fmt.Sprintf("%s is not on this machine and must be downloaded by hand. %s", name, p.Obtain())}
}

// known reports whether a name is that of a published dataset, or of one that was requested before.
func (c Catalogue) known(name string) bool {
	_, err := c.requested(name)
	return err == nil || publishedByName(name) != nil
}

// requested returns the earlier request for a name.
func (c Catalogue) requested(name string) (Request, error) {
	dir, err := c.root(name)
	if err != nil {
		return Request{}, err
	}
	defer dir.Close()
	return readRecord[Request](dir, requestFile)
}

// download plans to download the files of a published form.
func (c Catalogue) download(name string, p *Published, form int) plan {
	out := plan{name: name, published: p, form: form}
	for _, f := range p.Forms[form].Files {
		out.wants = append(out.wants, fetch.Want{URL: f.URL, Name: f.Name, Bytes: f.Bytes, SHA256: f.SHA256, MD5: f.MD5})
		out.paths = append(out.paths, filepath.Join(c.setDir(name), filesDir, f.Name))
	}
	return out
}

func (c Catalogue) planURL(r Request) (plan, error) {
	u, err := url.Parse(r.From)
	if err != nil || u.Host == "" {
		return plan{}, model.Invalid{"from": fmt.Sprintf("%q is not a complete URL of a file; it needs a server and a path, as in https://example.org/file.npz", r.From)}
	}
	if err := c.Limits.checkURL(u); err != nil {
		return plan{}, err
	}
	file := fetch.NameOf(r.From)
	if p, form, ok := matchURL(r.From, file); ok && (r.Name == "" || r.Name == p.Info.Name) {
		out := c.download(p.Info.Name, p, form)
		if len(out.wants) == 1 {
			out.wants[0].URL = r.From // the user's address
		}
		return out, nil
	}
	name, err := nameFor(r.Name, file)
	if err != nil {
		return plan{}, err
	}
	path := filepath.Join(c.setDir(name), filesDir, file)
	return plan{name: name, wants: []fetch.Want{{URL: r.From, Name: file}}, paths: []string{path}}, nil
}

// nameFor returns the requested name, or one derived from a file name.
func nameFor(asked, file string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	base := strings.ToLower(filepath.Base(file))
	if ext := filepath.Ext(base); ext != base {
		base = strings.TrimSuffix(base, ext)
	}
	name := strings.Map(func(r rune) rune {
		if r < 128 && (validName(string(r)) || r == '.' || r == '_' || r == '-') {
			return r
		}
		return '-'
	}, base)
	name = strings.TrimLeft(name[:min(len(name), 64)], "._-")
	if !validName(name) {
		return "", model.Invalid{"name": fmt.Sprintf("no dataset name can be derived from %q; choose a name", file)}
	}
	return name, nil
}

func planPart(r Request) (plan, error) {
	if r.Name == "" {
		return plan{}, model.Invalid{"name": fmt.Sprintf("choose a name for %s, or use the selection directly without adding it", r.From)}
	}
	if _, text, err := splitSpec(r.From); err != nil {
		return plan{}, err
	} else if _, err := parseClauses(text); err != nil {
		return plan{}, err
	}
	return plan{name: r.Name, part: r.From}, nil
}

func (c Catalogue) planPath(r Request) (plan, error) {
	path, err := c.absolute(r.From)
	if err != nil {
		return plan{}, err
	}
	if err := c.Limits.checkWritten(path); err != nil {
		return plan{}, err
	}
	stat, err := os.Stat(path)
	if err == nil {
		err = c.Limits.checkReal(path)
	}
	if invalid := (model.Invalid{}); errors.As(err, &invalid) {
		return plan{}, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if r.Name == "" && c.known(r.From) {
			return c.planKnown(r.From)
		}
		if r.Name == "" && IsDrawn(r.From) {
			return plan{name: r.From}, nil // already there
		}
		if !filepath.IsAbs(r.From) {
			return plan{}, model.Invalid{"from": fmt.Sprintf("there is no file or folder %s in the data folder, %s; for a file elsewhere, give its absolute path", r.From, c.Dir)}
		}
		return plan{}, model.Invalid{"from": fmt.Sprintf("there is no file or folder %s on this machine", path)}
	}
	if err != nil {
		return plan{}, model.Invalid{"from": fmt.Sprintf("%s cannot be read: %v", path, err)}
	}
	if !stat.IsDir() && !stat.Mode().IsRegular() {
		return plan{}, model.Invalid{"from": fmt.Sprintf("%s is neither a file nor a folder", path)}
	}
	if p, form, paths, ok := match(path, stat.IsDir()); ok && (r.Name == "" || r.Name == p.Info.Name) {
		return plan{name: p.Info.Name, published: p, form: form, paths: paths}, c.Limits.checkReal(paths...)
	}
	format, err := recognise(path, stat.IsDir())
	if err == nil {
		err = format.checkReading(path, r.Reading)
	}
	if err != nil {
		return plan{}, err
	}
	name, err := nameFor(r.Name, path)
	return plan{name: name, paths: []string{path}}, err
}

// absolute resolves a path that a user gave: absolute, or relative to the data folder, which it may not leave.
func (c Catalogue) absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return "", model.Invalid{"from": fmt.Sprintf("%s is a relative path, and the data folder %s cannot be opened; give an absolute path", path, c.Dir)}
	}
	defer root.Close()
	if _, err := root.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", model.Invalid{"from": fmt.Sprintf("%s leads out of the data folder; give an absolute path", path)}
	}
	return filepath.Abs(filepath.Join(c.Dir, path))
}

// Add adds the requested dataset and returns its name once it is ready. If ctx ends or something fails, finished work is kept and
// another Add of the same name resumes it. tell, which may be nil, receives progress a few times a second. The error wraps
// model.ErrConflict if the name is taken or another process is adding the dataset.
func (c Catalogue) Add(ctx context.Context, r Request, tell func(Work)) (name string, err error) {
	p, err := c.plan(r)
	if err != nil {
		return "", err
	}
	dir, err := c.makeRoot(p.name)
	if err != nil {
		return p.name, fmt.Errorf("the data folder cannot be written: %w", err)
	}
	defer dir.Close()
	lock, err := folder.LockPath(filepath.Join(dir.Name(), lockFile), "dataset "+p.name)
	if err != nil {
		return p.name, err
	}
	defer lock.Unlock()
	a := &adding{plan: p, reporter: reporter{dir: dir, tell: tell}}
	if err := writeRecord(dir, requestFile, p.request); err != nil {
		return p.name, err
	}
	if err := removeIfThere(dir, workFile); err != nil {
		return p.name, err
	}
	err = c.add(ctx, a)
	return p.name, a.ended(ctx, err)
}

// adding is the work on one request.
type adding struct {
	plan
	reporter
	left leftOut
}

// ended records why the work stopped if it did not finish.
func (a *adding) ended(ctx context.Context, err error) error {
	if err == nil {
		return removeIfThere(a.dir, workFile)
	}
	if ctx.Err() != nil {
		a.note() // the progress so far
		return fmt.Errorf("adding %s was interrupted; progress is kept: %w", a.name, ctx.Err())
	}
	if errors.Is(err, syscall.ENOSPC) {
		pack.Discard(a.dir, packFile) // frees the disk for others
		err = fmt.Errorf("the disk of the data folder is full, so the partly packed images were removed; free some space, then add the dataset again: %w", err)
	}
	a.work.Error = err.Error()
	if d := (damaged{}); errors.As(err, &d) && !a.request.Skip {
		a.work.Damaged = d.picture
	}
	a.note()
	return fmt.Errorf("adding %s: %w", a.name, err)
}

func (c Catalogue) add(ctx context.Context, a *adding) error {
	if a.part != "" {
		return c.addPart(ctx, a)
	}
	if err := c.fetch(ctx, a); err != nil {
		return err
	}
	if err := a.verify(ctx); err != nil {
		return err
	}
	r := record{Paths: a.paths, Added: time.Now().UTC()}
	var err error
	if r.Prints, err = printsOf(a.paths); err != nil {
		return err
	}
	if a.published != nil {
		r.Published, r.Form = a.published.Info.Name, a.form
	} else if f, err := recognise(a.paths[0], isDir(a.paths[0])); err != nil {
		return a.unread(ctx, err)
	} else {
		r.Format, r.Reading = f.Name, a.request.Reading
	}
	source, err := openSafely(ctx, r)
	if err != nil {
		return a.unread(ctx, err)
	}
	defer source.Close()
	return a.take(ctx, source, r)
}

// unread removes a user's download that cannot be read, so that the next attempt downloads it again.
func (a *adding) unread(ctx context.Context, err error) error {
	if len(a.wants) == 0 || a.published != nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(fmt.Errorf("%w; the download was removed", err), os.Remove(a.paths[0]))
}

func isDir(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.IsDir()
}

// openSafely opens a source and turns a panic on a damaged file into an error.
func openSafely(ctx context.Context, r record) (source Source, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s cannot be read: %v", r.Paths[0], p)
		}
	}()
	return r.open(ctx)
}

// addPart registers a name for a part of another dataset.
func (c Catalogue) addPart(ctx context.Context, a *adding) error {
	set, err := c.Open(ctx, a.part)
	if err != nil {
		return err
	}
	defer set.Close()
	info := set.Info()
	info.Title, info.Name = a.name, a.name
	return writeRecord(a.dir, recordFile, record{Info: info, Part: a.part, Added: time.Now().UTC()})
}

// fetch downloads missing files.
func (c Catalogue) fetch(ctx context.Context, a *adding) error {
	if len(a.wants) == 0 {
		return nil
	}
	if err := a.dir.MkdirAll(filesDir, 0o755); err != nil {
		return err
	}
	files, err := a.dir.OpenRoot(filesDir)
	if err != nil {
		return err
	}
	defer files.Close()
	getter := c.Limits.fetcher()
	getter.Room = room
	for _, w := range a.wants {
		a.stage("downloading", w.Name, "bytes")
		if err := getter.Download(ctx, files, w, a.progress); err != nil {
			return err
		}
	}
	return nil
}

// verify compares the files with their published sizes and checksums.
func (a *adding) verify(ctx context.Context) error {
	if a.published == nil {
		return nil
	}
	for i, f := range a.published.Forms[a.form].Files {
		a.stage("checking", f.Name, "bytes")
		if f.Folder {
			continue
		}
		want := fetch.Want{Bytes: f.Bytes, SHA256: f.SHA256, MD5: f.MD5}
		if err := fetch.Verify(ctx, a.paths[i], want, a.progress); err != nil {
			return a.differs(ctx, a.paths[i], err)
		}
	}
	return nil
}

// differs adds a remedy to the error for a file that is not the published one. It removes such a file if it was downloaded.
func (a *adding) differs(ctx context.Context, path string, err error) error {
	if len(a.wants) > 0 && ctx.Err() == nil {
		return errors.Join(err, os.Remove(path)) // a failed download; the next attempt starts over
	}
	if d := fetch.Differs(""); errors.As(err, &d) {
		return fmt.Errorf("%w. To use it anyway, add it under a name other than %s (--name)", err, a.name)
	}
	return err
}

// reserve is the number of bytes to keep free on the disk.
const reserve = 64 << 20

// room returns an error if the disk of a folder has too little space for bytes more.
func room(dir *os.Root, bytes int64) error {
	free, _, known := host.Space(dir.Name())
	if known && free < bytes+reserve {
		return fmt.Errorf("not enough disk space: %s needed, but the disk of %s has only %s free", Bytes(bytes+reserve), dir.Name(), Bytes(free))
	}
	return nil
}
