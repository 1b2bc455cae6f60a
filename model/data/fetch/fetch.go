// Package fetch downloads large files over HTTP, resumes interrupted downloads, and verifies files against published checksums.
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"slotscope/model/public"
)

// Want is a file to download, and what is known about it.
type Want struct {
	URL    string
	Name   string // file name in the folder
	Bytes  int64  // 0 if unknown
	SHA256 string // hex; empty if unknown
	MD5    string // hex; empty if unknown
}

// Progress receives the number of bytes done and in total; of is 0 while the total is unknown.
type Progress func(done, of int64)

const (
	part     = ".part"      // suffix of an incomplete file
	record   = ".part.json" // suffix of the record of its origin
	attempts = 6            // without progress before giving up
	patience = 60 * time.Second
)

// Fetcher downloads.
type Fetcher struct {
	Client   *http.Client
	Patience time.Duration                         // how long to wait for a byte before another attempt
	Wait     func(attempt int) time.Duration       // pause after failed attempt 1, 2, …
	Room     func(dir *os.Root, bytes int64) error // returns an error if the disk has too little space; nil to skip this check
}

// New returns a Fetcher that may connect to any server.
func New() Fetcher {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = patience
	return Fetcher{
		Client: &http.Client{Transport: transport, CheckRedirect: follow}, Patience: patience,
		Wait: func(attempt int) time.Duration { return time.Second << min(attempt, 5) },
	}
}

// AllowPrivate is the flag with which an operator allows downloads from private networks.
const AllowPrivate = "--allow-private-urls"

// Public returns a Fetcher for URLs chosen by users, which connects only to servers on the public internet.
func Public() Fetcher {
	f := New()
	f.Client.Transport = public.NewTransport(AllowPrivate, patience)
	return f
}

// follow limits redirects to 10, and to HTTP and HTTPS.
func follow(next *http.Request, before []*http.Request) error {
	switch {
	case len(before) >= 10:
		return permanent{fmt.Errorf("%s redirects endlessly", before[0].URL)}
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return permanent{fmt.Errorf("%s redirects to %s, which is not a web address", before[0].URL, next.URL)}
	}
	return nil
}

// Download writes the file to dir under its name unless it exists. It resumes a partial download if the server supports that and the
// file has not changed. After an error, the partial download is kept for the next call.
func (f Fetcher) Download(ctx context.Context, dir *os.Root, w Want, progress Progress) error {
	if _, err := dir.Stat(w.Name); err == nil {
		return nil
	}
	d, err := f.open(dir, w, progress)
	if err != nil {
		return err
	}
	defer d.file.Close()
	for failures := 0; ; {
		before := d.done
		whole, err := d.attempt(ctx)
		if whole {
			return d.finish()
		}
		if d.done > before {
			failures = 0
		}
		failures++
		if ctx.Err() != nil {
			return fmt.Errorf("downloading %s: %w", w.URL, context.Cause(ctx))
		}
		if final(err) || failures >= attempts {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.Wait(failures)):
		}
	}
}

// permanent is an error that another attempt would not fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// final reports whether another attempt would not help.
func final(err error) bool {
	var refused public.Refused
	var fatal permanent
	return errors.As(err, &fatal) || errors.As(err, &refused)
}

// download is one download in progress.
type download struct {
	Fetcher
	dir      *os.Root
	want     Want
	progress Progress
	file     *os.File
	done     int64
	origin   origin
}

// origin records the source of a partial download, so that parts of different files are never joined.
type origin struct {
	URL  string `json:"url"`
	ETag string `json:"etag"` // or the Last-Modified date; If-Range accepts either
}

func (f Fetcher) open(dir *os.Root, w Want, progress Progress) (*download, error) {
	d := &download{Fetcher: f, dir: dir, want: w, progress: progress}
	var err error
	if d.file, err = dir.OpenFile(w.Name+part, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	b, _ := dir.ReadFile(w.Name + record)
	if json.Unmarshal(b, &d.origin) == nil && d.origin.URL == w.URL && d.origin.ETag != "" {
		if stat, err := d.file.Stat(); err == nil {
			d.done = stat.Size()
		}
	}
	return d, nil
}

// attempt requests the missing bytes and writes what arrives. whole means that the file is complete.
func (d *download) attempt(ctx context.Context) (whole bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.Patience, func() { cancel(fmt.Errorf("%s sent nothing for %v", d.want.URL, d.Patience)) })
	defer stalled.Stop()
	reply, err := d.ask(ctx)
	if err != nil {
		return false, orCause(ctx, err)
	}
	defer reply.Body.Close()
	of, err := d.accept(reply)
	if err != nil || of > 0 && d.done == of {
		return err == nil, err
	}
	if err := d.copy(ctx, reply.Body, of, func() { stalled.Reset(d.Patience) }); err != nil {
		return false, orCause(ctx, err)
	}
	if of > 0 && d.done < of {
		return false, fmt.Errorf("%s ended after %d of %d bytes", d.want.URL, d.done, of)
	}
	return true, nil
}

// orCause returns the cause of ctx's end if that explains err, else err.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !final(err) {
		return cause
	}
	return err
}

func (d *download) ask(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.want.URL, nil)
	if err != nil {
		return nil, permanent{err}
	}
	request.Header.Set("Accept-Encoding", "identity")
	if d.done > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
		request.Header.Set("If-Range", d.origin.ETag)
	}
	reply, err := d.Client.Do(request)
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil, permanent{fmt.Errorf("server %s was not found; check the address and this machine's internet connection", request.URL.Host)}
	}
	if err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	return reply, nil
}

// accept prepares the partial file for the body of a reply and returns the size of the whole file, or 0 if unknown.
func (d *download) accept(reply *http.Response) (of int64, err error) {
	switch reply.StatusCode {
	case http.StatusPartialContent:
		first, of, ok := contentRange(reply.Header.Get("Content-Range"))
		if !ok || first != d.done {
			d.restart()
			return 0, fmt.Errorf("%s sent a byte range other than the one requested", d.want.URL)
		}
		return of, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if _, of, _ := contentRange(reply.Header.Get("Content-Range")); of > 0 && of == d.done {
			return of, nil
		}
		d.restart()
		return 0, fmt.Errorf("%s has no such byte range", d.want.URL)
	case http.StatusOK:
		return d.beginAnew(reply)
	}
	err = fmt.Errorf("%s responded with status %s", d.want.URL, reply.Status)
	if reply.StatusCode < 500 && reply.StatusCode != http.StatusTooManyRequests && reply.StatusCode != http.StatusRequestTimeout {
		return 0, permanent{err}
	}
	return 0, err
}

// beginAnew accepts a reply that starts at the first byte of the file.
func (d *download) beginAnew(reply *http.Response) (of int64, err error) {
	if kind := reply.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		return 0, permanent{fmt.Errorf("%s is a web page, not a file; download the file in a browser, then give its path", d.want.URL)}
	}
	of = max(0, reply.ContentLength)
	if d.want.Bytes > 0 && of > 0 && of != d.want.Bytes {
		return 0, permanent{fmt.Errorf("%s has %d bytes; the published file has %d", d.want.URL, of, d.want.Bytes)}
	}
	if d.Room != nil {
		if err := d.Room(d.dir, max(of, d.want.Bytes)); err != nil {
			return 0, permanent{err}
		}
	}
	if err := d.restart(); err != nil {
		return 0, permanent{err}
	}
	d.origin = origin{d.want.URL, validator(reply.Header)}
	b, _ := json.Marshal(d.origin)
	if err := d.dir.WriteFile(d.want.Name+record, b, 0o644); err != nil {
		return 0, permanent{err}
	}
	return of, nil
}

// validator returns the ETag or date that identifies the version of a file; empty if the server sends neither.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

func (d *download) restart() error {
	d.done = 0
	return d.file.Truncate(0)
}

func (d *download) copy(ctx context.Context, body io.Reader, of int64, alive func()) error {
	buf := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx) // do not drain the connection's buffer, which may hold all the rest
		}
		n, err := body.Read(buf)
		if n > 0 {
			alive()
			if _, err := d.file.WriteAt(buf[:n], d.done); err != nil {
				return permanent{err}
			}
			d.done += int64(n)
			d.progress(d.done, of)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("downloading %s: %w", d.want.URL, err)
		}
	}
}

// finish renames the complete file to its final name.
func (d *download) finish() error {
	if err := errors.Join(d.file.Sync(), d.file.Close()); err != nil {
		return err
	}
	if err := d.dir.Rename(d.want.Name+part, d.want.Name); err != nil {
		return err
	}
	d.dir.Remove(d.want.Name + record)
	return nil
}

// contentRange parses "bytes 5-9/10" and "bytes */10"; of is 0 if unknown.
func contentRange(text string) (first, of int64, ok bool) {
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	if !ok {
		return 0, 0, false
	}
	of, _ = strconv.ParseInt(total, 10, 64)
	from, _, ok := strings.Cut(span, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	return first, of, ok && err == nil
}

// NameOf returns a file name for a URL: the last part of its path.
func NameOf(url string) string {
	url, _, _ = strings.Cut(url, "?")
	url, _, _ = strings.Cut(url, "#")
	_, rest, _ := strings.Cut(url, "://")
	if _, file, ok := strings.Cut(rest, "/"); ok {
		if name := path.Base(path.Clean("/" + file)); name != "/" {
			return name
		}
	}
	return "download"
}
