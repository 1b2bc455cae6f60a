package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/metric"
	"slotscope/model/measure/metric/input"
	"slotscope/model/whole"
	ui "slotscope/views/measure"
)

// Tables serves the page and API that compute all metrics of an uploaded file of latents and factors. Uploads are deleted after measuring.
type Tables struct{}

// Routes registers /measure and /api/metrics.
func (h Tables) Routes(r chi.Router) {
	r.Get("/measure", handlers.Handle(h.page))
	r.Post("/measure", handlers.Handle(h.measure))
	r.Post("/api/metrics", handlers.Handle(h.api))
}

const (
	largestTable = 512 << 20 // bytes of an upload
	largestField = 4096      // bytes of a form field
	mostTrees    = 1000
)

// measuring serializes measurements, because each uses every core.
var measuring = semaphore.NewWeighted(1)

// order is a request to measure files.
type order struct {
	paths  []string // of the uploaded files
	names  []string // their original names
	pick   input.Pick
	fields map[string]string
	o      metric.Options
}

func (h Tables) page(w http.ResponseWriter, r *http.Request) error {
	return handlers.Draw(w, r, ui.Table(ui.TableView{Endings: input.Endings()}))
}

func (h Tables) api(w http.ResponseWriter, r *http.Request) error {
	_, scores, err := received(w, r)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, scores)
}

// measure handles the form and shows it again with scores or errors.
func (h Tables) measure(w http.ResponseWriter, r *http.Request) error {
	order, scores, err := received(w, r)
	v := ui.TableView{Endings: input.Endings(), Files: order.names, Latents: order.fields["latents"], Factors: order.fields["factors"], As: order.fields["as"]}
	var invalid model.Invalid
	if errors.As(err, &invalid) {
		v.Problem = handlers.SentenceOf(err)
		return handlers.DrawStatus(w, r, http.StatusUnprocessableEntity, ui.Table(v))
	}
	if err != nil {
		return err
	}
	v.Show(scores)
	return handlers.Draw(w, r, ui.Table(v))
}

// received measures an uploaded form.
func received(w http.ResponseWriter, r *http.Request) (o order, scores metric.TableScores, err error) {
	dir, remove, err := whole.Temp()
	if err != nil {
		return o, scores, err
	}
	defer remove()
	if o, err = readOrder(w, r, dir); err != nil {
		return o, scores, err
	}
	scores, err = o.measure(r.Context())
	if err != nil && r.Context().Err() == nil && !errors.Is(err, model.ErrConflict) {
		err = model.Invalid{"file": strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")}
	}
	return o, scores, err
}

func (o order) measure(ctx context.Context) (metric.TableScores, error) {
	if !measuring.TryAcquire(1) {
		return metric.TableScores{}, fmt.Errorf("another file is being measured; try again when it is done: %w", model.ErrConflict)
	}
	defer measuring.Release(1)
	table, extra, err := input.ReadFiles(o.paths, o.pick)
	if err != nil {
		return metric.TableScores{}, err
	}
	return metric.MeasureAll(ctx, table, extra, o.o, nil)
}

// readOrder reads the form and stores its files in a folder.
func readOrder(w http.ResponseWriter, r *http.Request, dir string) (o order, err error) {
	o = order{fields: map[string]string{}, o: metric.Options{Trees: 100}}
	r.Body = http.MaxBytesReader(w, r.Body, largestTable)
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "multipart/form-data" {
		return o, model.Invalid{"file": "send a multipart/form-data form with one or two files"}
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return o, model.Invalid{"file": "the form cannot be read: " + err.Error()}
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return o, broken(err)
		}
		if part.FormName() != "file" {
			value, err := io.ReadAll(io.LimitReader(part, largestField))
			if err != nil {
				return o, broken(err)
			}
			o.fields[part.FormName()] = string(value)
			continue
		}
		if part.FileName() == "" { // empty file input
			continue
		}
		if err := o.keep(part, part.FileName(), dir); err != nil {
			return o, broken(err)
		}
	}
	return o, o.read()
}

func broken(err error) error {
	var invalid model.Invalid
	if errors.As(err, &invalid) {
		return err
	}
	return handlers.OrTooLarge(err, model.Invalid{"file": "the upload is incomplete: " + err.Error()})
}

// keep stores a file under a generated name with the original extension.
func (o *order) keep(from io.Reader, name, dir string) error {
	ending := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(input.Endings(), ending) {
		return model.Invalid{"file": fmt.Sprintf("%s: unsupported format; supported: %s", name, strings.Join(input.Endings(), ", "))}
	}
	if len(o.paths) == 2 {
		return model.Invalid{"file": "got more than two files; send one with latents and factors, or one of each"}
	}
	path := filepath.Join(dir, fmt.Sprintf("file %d%s", len(o.paths)+1, ending))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	o.paths, o.names = append(o.paths, path), append(o.names, name)
	return errors.Join(err, f.Close())
}

// read parses the form fields.
func (o *order) read() error {
	if len(o.paths) == 0 {
		return model.Invalid{"file": "choose one file, or two: latents, then factors"}
	}
	o.pick = input.Pick{Latents: input.Names(o.fields["latents"]), Factors: input.Names(o.fields["factors"])}
	switch o.fields["as"] {
	case "", "found":
	case "codes":
		o.pick.As = input.Codes
	case "numbers":
		o.pick.As = input.Numbers
	default:
		return model.Invalid{"as": fmt.Sprintf("got %q; choose found, codes or numbers", o.fields["as"])}
	}
	var err error
	if text := o.fields["trees"]; text != "" {
		if o.o.Trees, err = strconv.Atoi(text); err != nil || o.o.Trees < 1 || o.o.Trees > mostTrees {
			return model.Invalid{"trees": fmt.Sprintf("got %q; enter a whole number from 1 to %d", text, mostTrees)}
		}
	}
	if text := o.fields["seed"]; text != "" {
		if o.o.Seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			return model.Invalid{"seed": fmt.Sprintf("got %q; enter a whole number", text)}
		}
	}
	return nil
}
