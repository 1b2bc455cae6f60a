package dataset

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	ui "slotscope/views/dataset"
)

// list draws every known dataset with a few of its images, its progress, or its source. With ?from= it also previews what adding that
// would give.
func (h Datasets) list(w http.ResponseWriter, r *http.Request) error {
	asked := askedOf(r.URL.Query())
	if asked.From == "" {
		return handlers.Draw(w, r, ui.Datasets(h.listView(r, asked, nil)))
	}
	p, err := h.preview(r.Context(), asked)
	var bad model.Invalid
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	view := h.listView(r, asked, bad)
	if bad != nil {
		return handlers.DrawStatus(w, r, http.StatusUnprocessableEntity, ui.Datasets(view))
	}
	if view.Preview, err = previewView(p); err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.Datasets(view))
}

// askedOf reads the form's fields.
func askedOf(q url.Values) data.Request {
	field := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return data.Request{
		Name: field("name"), From: field("from"),
		Reading: data.Reading{Images: field("images"), Labels: field("labels"), Scale: field("scale"), Orientation: field("orientation")},
	}
}

// previewTime limits a preview. Finding the range of brightness can take a pass over a large file.
const previewTime = 20 * time.Second

// previews limits previews to one at a time, since each may read a whole file.
var previews = make(chan struct{}, 1)

// preview reads what a request would add. Errors of the files are reported beside the path.
func (h Datasets) preview(ctx context.Context, asked data.Request) (data.Preview, error) {
	within, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	select {
	case previews <- struct{}{}:
		defer func() { <-previews }()
	case <-within.Done():
	}
	p, err := data.Preview{}, within.Err()
	if err == nil {
		p, err = h.Catalogue.Preview(within, asked)
	}
	switch invalid := (model.Invalid{}); {
	case err == nil, errors.As(err, &invalid):
		return p, err
	case ctx.Err() != nil:
		return p, ctx.Err() // the client has gone
	case within.Err() != nil:
		return p, model.Invalid{"from": fmt.Sprintf("the preview took longer than %v; add the dataset without it, or run slotscope data preview", previewTime)}
	}
	return p, model.Invalid{"from": handlers.ErrorText(err)}
}

// previewView returns the view of a preview, with its images in the page.
func previewView(p data.Preview) (*ui.PreviewView, error) {
	shown := len(p.Images) / (p.Info.H * p.Info.W * p.Info.C)
	columns := min(gridSide, max(1, shown))
	sheet, err := encodePNG(p.Info.Picture(p.Images, columns, 1))
	if err != nil {
		return nil, err
	}
	return &ui.PreviewView{
		DatasetCard: datasetCard(p.Info), Format: p.Format, Axes: p.Axes, Scaling: p.Scaling, Remarks: p.Remarks, Used: p.Used, Unused: p.Unused,
		Sheet: "data:image/png;base64," + base64.StdEncoding.EncodeToString(sheet), Columns: columns, Shown: shown,
		Unpacked: data.Bytes(int64(p.Info.Len) * int64(p.Info.H*p.Info.W*p.Info.C)),
	}, nil
}

func (h Datasets) listView(r *http.Request, asked data.Request, bad model.Invalid) ui.DatasetsView {
	view := ui.DatasetsView{Add: ui.AddForm{
		From: asked.From, Name: asked.Name, Images: asked.Images, Labels: asked.Labels, Scale: asked.Scale, Orientation: asked.Orientation, Errors: map[string]string{},
	}}
	for field, text := range bad {
		view.Add.Errors[field] = handlers.Sentence(text)
	}
	for _, field := range []string{"dataset", ""} { // of the whole request
		if view.Add.Errors["from"] == "" {
			view.Add.Errors["from"] = view.Add.Errors[field]
		}
	}
	for _, e := range h.Catalogue.Entries(r.Context()) {
		entry := entryView(e)
		switch {
		case e.State == data.Ready:
			view.Ready = append(view.Ready, entry)
		case e.State == data.Absent || e.State == data.Found:
			view.Known = append(view.Known, entry)
		default:
			view.Underway = append(view.Underway, entry)
		}
	}
	return view
}

// entryView returns the view of one dataset.
func entryView(e data.Entry) ui.DatasetEntry {
	v := ui.DatasetEntry{
		DatasetCard: datasetCard(e.Info), State: string(e.State), Kind: string(e.Kind), Paths: e.Paths, Part: e.Part, Reason: handlers.Sentence(e.Reason), Holder: e.Holder,
		Line: e.Work.String(), Stage: e.Work.Stage, Damaged: e.Work.Damaged != "" && e.State == data.Failed, Share: e.Work.Share(), Counted: e.Work.Of > 0,
	}
	if from := e.Request.From; e.State == data.Failed && from != "" && !strings.Contains(from, "://") {
		v.Again = ui.PreviewURL(from, e.Request.Name, e.Request.Images, e.Request.Labels, e.Request.Scale, e.Request.Orientation)
	}
	if e.Disk > 0 && e.Kind != data.Part {
		v.Disk = data.Bytes(e.Disk)
	}
	if need := int64(e.Info.Len) * int64(e.Info.H*e.Info.W*e.Info.C); need > 0 {
		v.Unpacked = data.Bytes(need)
	}
	p := e.Published
	if p == nil {
		return v
	}
	v.Page, v.Fetch, v.Downloadable = p.Page, handlers.Sentence(p.Fetch), p.Downloadable()
	for _, form := range p.Forms {
		var files []ui.DatasetFile
		for _, f := range form.Files {
			file := ui.DatasetFile{Name: f.Name, URL: f.URL, Folder: f.Folder, Checked: f.SHA256 != "" || f.MD5 != ""}
			if f.Bytes > 0 {
				file.Size = data.Bytes(f.Bytes)
			}
			files = append(files, file)
		}
		v.Forms = append(v.Forms, files)
	}
	return v
}

// add queues the form's request; errors are shown beside its fields.
func (h Datasets) add(w http.ResponseWriter, r *http.Request) error {
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	asked := askedOf(r.PostForm)
	name, err := h.Catalogue.Add(r.Context(), asked)
	var bad model.Invalid
	if errors.Is(err, model.ErrConflict) {
		bad = model.Invalid{"name": handlers.ErrorText(err)}
	} else if err != nil && !errors.As(err, &bad) {
		return err
	}
	if bad != nil {
		return handlers.DrawStatus(w, r, http.StatusUnprocessableEntity, ui.Datasets(h.listView(r, asked, bad)))
	}
	http.Redirect(w, r, ui.DatasetAnchor(name), http.StatusSeeOther)
	return nil
}

// again adds a published dataset by name, or resumes one that was interrupted or failed.
func (h Datasets) again(w http.ResponseWriter, r *http.Request) error {
	name, err := h.Catalogue.Add(r.Context(), data.Request{Name: datasetName(r), Skip: r.FormValue("skip_broken") != ""})
	if err != nil {
		return err
	}
	http.Redirect(w, r, ui.DatasetAnchor(name), http.StatusSeeOther)
	return nil
}

func (h Datasets) stop(w http.ResponseWriter, r *http.Request) error {
	if err := h.Catalogue.Stop(r.Context(), datasetName(r)); err != nil {
		return err
	}
	http.Redirect(w, r, ui.DatasetAnchor(datasetName(r)), http.StatusSeeOther)
	return nil
}

func (h Datasets) remove(w http.ResponseWriter, r *http.Request) error {
	if err := h.Catalogue.Remove(r.Context(), datasetName(r)); err != nil {
		return err
	}
	http.Redirect(w, r, "/datasets", http.StatusSeeOther)
	return nil
}

// part redirects to the page of a part of a dataset, or reports an invalid selection on the page of the whole.
func (h Datasets) part(w http.ResponseWriter, r *http.Request) error {
	whole, text := datasetName(r), strings.TrimSpace(r.URL.Query().Get("select"))
	name := fmt.Sprintf("%s[%s]", whole, text)
	set, err := h.Catalogue.Open(r.Context(), name)
	var bad model.Invalid
	if err == nil {
		defer set.Close()
		http.Redirect(w, r, "/datasets/"+url.PathEscape(set.Info().Name), http.StatusSeeOther)
		return nil
	}
	if !errors.As(err, &bad) {
		return err
	}
	q := r.URL.Query()
	q.Set("select", text)
	q.Set("select_error", "1")
	r.URL.RawQuery = q.Encode()
	h.with(h.show)(w, r)
	return nil
}

// addRequest is the body of POST /api/datasets.
type addRequest struct {
	Name string `json:"name"`
	From string `json:"from"`
	Skip bool   `json:"skip_broken"`
	data.Reading
}

func (h Datasets) addJSON(w http.ResponseWriter, r *http.Request) error {
	var asked addRequest
	if err := handlers.ReadJSON(w, r, 64<<10, &asked); err != nil {
		return err
	}
	name, err := h.Catalogue.Add(r.Context(), data.Request(asked))
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/datasets/"+url.PathEscape(name)+"/state")
	return h.answerState(w, r, name, http.StatusAccepted)
}

func (h Datasets) stateJSON(w http.ResponseWriter, r *http.Request) error {
	return h.answerState(w, r, datasetName(r), http.StatusOK)
}

func (h Datasets) stopJSON(w http.ResponseWriter, r *http.Request) error {
	if err := h.Catalogue.Stop(r.Context(), datasetName(r)); err != nil {
		return err
	}
	return h.answerState(w, r, datasetName(r), http.StatusAccepted)
}

func (h Datasets) removeJSON(w http.ResponseWriter, r *http.Request) error {
	if err := h.Catalogue.Remove(r.Context(), datasetName(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h Datasets) answerState(w http.ResponseWriter, r *http.Request, name string, status int) error {
	e, err := h.Catalogue.Entry(r.Context(), name)
	if err != nil {
		return err
	}
	return handlers.JSON(w, status, datasetEntry(e))
}

// datasetStateJSON is the state of one dataset.
type datasetStateJSON struct {
	Name   string     `json:"name"`
	State  data.State `json:"state"`
	Kind   data.Kind  `json:"kind"`  // "" until ready
	Paths  []string   `json:"paths"` // source files
	Part   string     `json:"part"`  // name of the whole dataset, if this is a named part
	Bytes  int64      `json:"bytes"` // in the data folder
	Reason string     `json:"reason"`
	Why    string     `json:"why"` // what to do if it is not ready
	Work   data.Work  `json:"work"`
}

func datasetEntry(e data.Entry) datasetStateJSON {
	paths := e.Paths
	if paths == nil {
		paths = []string{}
	}
	return datasetStateJSON{e.Info.Name, e.State, e.Kind, paths, e.Part, e.Disk, handlers.Sentence(e.Reason), handlers.Sentence(e.Why()), e.Work}
}

func (h Datasets) listJSON(w http.ResponseWriter, r *http.Request) error {
	infos, known := []data.Info{}, []datasetStateJSON{}
	infos = append(infos, h.Catalogue.List(r.Context())...)
	for _, e := range h.Catalogue.Entries(r.Context()) {
		known = append(known, datasetEntry(e))
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"datasets": infos, "catalogue": known})
}
