package play

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/play"
	ui "slotscope/views/play"
)

// list returns all checkpoints that can be opened.
func (p *Play) list(w http.ResponseWriter, r *http.Request) error {
	list := p.Library.List()
	if list == nil {
		list = []play.Source{}
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"checkpoints": list})
}

// about returns one checkpoint.
func (p *Play) about(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	return handlers.JSON(w, http.StatusOK, map[string]any{
		"checkpoint": rm.source, "m": rm.model.Config.M, "k": rm.model.Codes(), "d": rm.model.Config.D, "discrete": !rm.model.Continuous(),
		"h": rm.model.Image.H, "w": rm.model.Image.W, "c": rm.model.Image.C, "engine": rm.model.Engine,
	})
}

// usage returns the code counts of each slot, or the progress of counting.
func (p *Play) usage(w http.ResponseWriter, r *http.Request) error {
	src, err := p.Library.Find(chi.URLParam(r, "checkpoint"))
	if err != nil {
		return err
	}
	c := p.Library.Usage(src)
	switch {
	case c.Err != nil:
		return c.Err
	case c.Usage == nil:
		return handlers.JSON(w, http.StatusAccepted, map[string]any{"state": "counting", "done": c.Done, "of": c.Of, "early": c.Early != nil})
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"state": "ready", "usage": c.Usage})
}

// slots returns the names of slots and codes and the groups of slots, as far as they have been counted.
func (p *Play) slots(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	usage := p.Library.Usage(rm.source)
	if usage.Err != nil {
		return usage.Err
	}
	known := cmp.Or(usage.Usage, usage.Early)
	names, err := p.Library.Names(rm.source)
	if err != nil {
		return err
	}
	slots := rm.slots(known, rm.dataset(r.Context()), names)
	return handlers.JSON(w, http.StatusOK, map[string]any{"counted": countedView(usage), "slots": slots, "groups": rm.groups(s, known, slots, names)})
}

// encodeRequest selects one image: by index, by one class per factor, or at random.
type encodeRequest struct {
	Index   *int  `json:"index"`
	Classes []int `json:"classes"`
	Random  bool  `json:"random"`
}

type encodeReply struct {
	Index    int     `json:"index"` // −1 for an upload
	Classes  []int   `json:"classes,omitempty"`
	Codes    []int   `json:"codes"`
	PSNR     float64 `json:"psnr"`     // dB of the reconstruction
	Original string  `json:"original"` // URL of the encoded image
	Said     string  `json:"said,omitempty"`
}

// uploads limits how many uploads are decoded at once; each may take 160 MB.
var uploads = semaphore.NewWeighted(2)

// encode returns the codes of a dataset image (JSON body) or of an uploaded image (any other body, or a form's file).
func (p *Play) encode(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" {
		return rm.encodeUpload(w, r, kind)
	}
	var in encodeRequest
	if err := handlers.ReadJSON(w, r, 1<<16, &in); err != nil {
		return err
	}
	set, err := p.Library.Set(r.Context(), rm.source.Config.Dataset)
	if err != nil {
		return err
	}
	var index int
	switch {
	case in.Index != nil && (in.Classes != nil || in.Random), in.Classes != nil && in.Random:
		return model.Invalid{"": "give only one of index, classes and random"}
	case in.Index != nil:
		index = *in.Index
	case in.Classes != nil:
		if index, err = set.Index(in.Classes); err != nil {
			return err
		}
	case in.Random:
		index = rand.IntN(set.Info().Len)
	default:
		return model.Invalid{"": "give one of index, classes and random"}
	}
	if n := set.Info().Len; index < 0 || index >= n {
		return notAnImage("index", strconv.Itoa(index), set)
	}
	s, err := rm.encodeIndex(r.Context(), set, index)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, encodeReply{
		Index: index, Classes: s.classes, Codes: s.codes, PSNR: s.psnr,
		Original: fmt.Sprintf("/api/play/%s/original.png?index=%d", rm.source.Key, index),
	})
}

func (rm playRoom) encodeUpload(w http.ResponseWriter, r *http.Request, kind string) error {
	raw, err := uploaded(w, r, kind)
	if err != nil {
		return err
	}
	pixels, said, err := rm.readPicture(r.Context(), raw)
	if err != nil {
		return err
	}
	s, err := rm.encodePixels(r.Context(), pixels)
	if err != nil {
		return err
	}
	png, err := play.PNG(play.Picture(pixels, rm.model.Image, 1))
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, encodeReply{
		Index: -1, Codes: s.codes, PSNR: s.psnr, Said: said,
		Original: "data:image/png;base64," + base64.StdEncoding.EncodeToString(png),
	})
}

// upload encodes an image from a form into row A or B, for browsers without scripts.
func (p *Play) upload(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	raw, err := uploaded(w, r, "multipart/form-data")
	if err != nil {
		return err
	}
	pixels, _, err := rm.readPicture(r.Context(), raw)
	if err != nil {
		return err
	}
	s, err := rm.encodePixels(r.Context(), pixels)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	name, row := "a", "codes"
	if q.Get("side") == "b" {
		name, row = "b", "bcodes"
	}
	q.Del("side")
	q.Del(name)
	q.Set(row, play.FormatCodes(s.codes))
	http.Redirect(w, r, playAddress(rm.source.Key, q), http.StatusSeeOther)
	return nil
}

func (rm playRoom) readPicture(ctx context.Context, raw []byte) ([]byte, string, error) {
	if err := uploads.Acquire(ctx, 1); err != nil {
		return nil, "", err
	}
	defer uploads.Release(1)
	return play.Read(raw, rm.model.Image)
}

// uploaded reads the body, or the file "image" of a form.
func uploaded(w http.ResponseWriter, r *http.Request, kind string) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, play.MaxUpload+1<<16) // a form adds a little around the file
	r.Body = body
	if kind != "multipart/form-data" {
		raw, err := io.ReadAll(body)
		if err != nil {
			return nil, brokenUpload(err)
		}
		return raw, nil
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, model.Invalid{"image": "cannot read the form: " + err.Error()}
	}
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return nil, model.Invalid{"image": `the form has no file named "image"`}
		}
		if err != nil {
			return nil, brokenUpload(err)
		}
		if part.FormName() == "image" {
			raw, err := io.ReadAll(part)
			if err != nil {
				return nil, brokenUpload(err)
			}
			return raw, nil
		}
	}
}

// brokenUpload is the error for an upload that is too large, incomplete or not a form.
func brokenUpload(err error) error {
	return handlers.OrTooLarge(err, model.Invalid{"image": "the upload is incomplete or not a valid form: " + err.Error()})
}

// mostTuples is the maximum number of code tuples per request.
const mostTuples = 64

// decode returns the images of code tuples as PNG data URLs.
func (p *Play) decode(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Codes [][]int `json:"codes"`
	}
	if err := handlers.ReadJSON(w, r, 1<<18, &in); err != nil {
		return err
	}
	if err := checkCount(len(in.Codes)); err != nil {
		return err
	}
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	images, err := rm.model.Decode(r.Context(), play.Held, in.Codes)
	if err != nil {
		return err
	}
	out := make([]string, len(images))
	for i, pixels := range images {
		raw, err := play.PNG(play.Picture(pixels, rm.model.Image, 1))
		if err != nil {
			return err
		}
		out[i] = "data:image/png;base64," + base64.StdEncoding.EncodeToString(raw)
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"images": out})
}

func checkCount(n int) error {
	if n < 1 || n > mostTuples {
		return model.Invalid{"codes": fmt.Sprintf("got %d code tuples; send 1–%d per request", n, mostTuples)}
	}
	return nil
}

// paletteQuery selects codes for a slot.
type paletteQuery struct {
	slot   int
	codes  []int  // the tuple to put each code into
	sort   string // "value" (of the slot's factor), "usage", "id" or "distance" (to the slot's current code)
	filter string // "all", "used" or "unseen"
	search string // part of the code's name, or its number
	offset int
	limit  int
}

type paletteEntry struct {
	Code     int      `json:"code"`
	Name     string   `json:"name,omitempty"`     // "0.6", "cube/cylinder", or user-chosen
	Text     string   `json:"text"`               // as displayed: the code's number, or the real number that it represents
	Count    int      `json:"count"`              // counted images with this code in the slot
	Unseen   bool     `json:"unseen"`             // Count is 0 and counting is complete
	Distance *float64 `json:"distance,omitempty"` // to the slot's code, relative to the mean distance between entries

	Pinned bool   `json:"pinned,omitempty"`
	Image  string `json:"image"` // the tuple with this entry

	told  string // its name by factor value, if the user chose another
	class int    // of the slot's factor
	pin   int    // position among pinned codes; MaxInt if not pinned
}

type paletteReply struct {
	Slot    int            `json:"slot"`
	Images  int            `json:"images"` // counted; 0 until counting is complete
	Total   int            `json:"total"`  // entries that pass the filter
	Entries []paletteEntry `json:"entries"`
}

const (
	paletteLimit = 24
	mostSearch   = 100 // bytes
)

// palette returns the entries of one slot.
func (p *Play) palette(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	q, err := rm.paletteQuery(r)
	if err != nil {
		return err
	}
	usage := p.Library.Usage(rm.source).Usage
	slot, err := rm.slot(r.Context(), usage, q.slot)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, rm.entries(usage, slot, q))
}

func (rm playRoom) paletteQuery(r *http.Request) (q paletteQuery, err error) {
	v := r.URL.Query()
	if q.codes, err = rm.tuple(v, "codes"); err != nil {
		return q, err
	}
	if q.codes == nil {
		return q, model.Invalid{"codes": "required: the code tuple to put each entry into, such as codes=17.301.4"}
	}
	bad := model.Invalid{}
	number := func(name string, low, high, otherwise int) int {
		if v.Get(name) == "" {
			return otherwise
		}
		n, err := strconv.Atoi(v.Get(name))
		if err != nil || n < low || n > high {
			bad[name] = fmt.Sprintf("%q is not a whole number in %d–%d", v.Get(name), low, high)
		}
		return n
	}
	choice := func(name string, choices ...string) string {
		if v.Get(name) == "" {
			return choices[0]
		}
		if !slices.Contains(choices, v.Get(name)) {
			bad[name] = fmt.Sprintf("%q is not a valid choice; use one of %s", v.Get(name), strings.Join(choices, ", "))
		}
		return v.Get(name)
	}
	q.slot = number("slot", 0, rm.model.Config.M-1, 0)
	q.offset = number("offset", 0, rm.model.Codes(), 0)
	q.limit = number("limit", 1, mostTuples, paletteLimit)
	q.sort = choice("sort", "usage", "value", "id", "distance")
	q.search = strings.ToLower(strings.TrimSpace(v.Get("search")))
	if len(q.search) > mostSearch {
		bad["search"] = fmt.Sprintf("search text is %d bytes long; use at most %d", len(q.search), mostSearch)
	}
	q.filter = choice("filter", "all", "used", "unseen")
	return q, bad.OrNil()
}

// entries returns a slot's entries. Pinned ones come first and bypass the used/unseen filter. Without a count, no entry is marked unseen.
func (rm playRoom) entries(u *play.Usage, slot ui.PlaySlot, q paletteQuery) paletteReply {
	reply := paletteReply{Slot: q.slot, Entries: []paletteEntry{}}
	distances, _ := rm.model.Distances(q.slot, q.codes[q.slot]) // the code has been checked
	low, high := rm.span(u, q.slot)
	known := map[int]ui.PlayCode{}
	for _, c := range slot.Codes {
		known[c.Code] = c
	}
	var all []paletteEntry
	for at, c := range rm.model.Entries() {
		e := paletteEntry{Code: c, Text: rm.model.Text(c), class: math.MaxInt, pin: math.MaxInt}
		if name, ok := known[c]; ok {
			e.Name, e.told = name.Name, name.Told
			if len(name.Classes) > 0 {
				e.class = slices.Min(name.Classes)
			}
		}
		if at := slices.Index(slot.Pins, c); at >= 0 {
			e.Pinned, e.pin = true, at
		}
		if distances != nil {
			e.Distance = &distances[at]
		}
		if u != nil {
			reply.Images = u.Images
			e.Count = u.Counts[q.slot][at]
			e.Unseen = e.Count == 0
		}
		outside := at < low || at > high || (q.filter == "used" && e.Unseen) || (q.filter == "unseen" && u != nil && !e.Unseen)
		if outside && !e.Pinned || !e.matches(q.search) {
			continue
		}
		all = append(all, e)
	}
	order := paletteOrder(q.sort)
	slices.SortStableFunc(all, func(a, b paletteEntry) int { return cmp.Or(cmp.Compare(a.pin, b.pin), order(a, b)) })
	reply.Total = len(all)
	for _, e := range all[min(q.offset, len(all)):min(q.offset+q.limit, len(all))] {
		e.Image = imageURL(rm.source.Key, play.With(q.codes, q.slot, e.Code))
		reply.Entries = append(reply.Entries, e)
	}
	return reply
}

// matches reports whether search is empty, part of the entry's name, or exactly its number.
func (e paletteEntry) matches(search string) bool {
	return search == "" || e.Text == search || strings.Contains(strings.ToLower(e.Name), search) || strings.Contains(strings.ToLower(e.told), search)
}

// span returns the first and last entry to offer: all codes of a codebook; for real numbers the range counted, or ±3 (three standard
// deviations of the prior) before counting.
func (rm playRoom) span(u *play.Usage, slot int) (low, high int) {
	entries := rm.model.Entries()
	if !rm.model.Continuous() {
		return 0, len(entries) - 1
	}
	used := func(at int) bool { return math.Abs(rm.model.Value(entries[at])) <= 3 }
	if u != nil {
		used = func(at int) bool { return u.Counts[slot][at] > 0 }
	}
	for low = 0; low < len(entries)-1 && !used(low); low++ {
	}
	for high = len(entries) - 1; high > low && !used(high); high-- {
	}
	return low, high
}

func paletteOrder(by string) func(a, b paletteEntry) int {
	switch by {
	case "value": // then most used first
		return func(a, b paletteEntry) int {
			return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.Count, a.Count))
		}
	case "id":
		return func(a, b paletteEntry) int { return cmp.Compare(a.Code, b.Code) }
	case "distance":
		return func(a, b paletteEntry) int {
			if a.Distance == nil || b.Distance == nil {
				return 0
			}
			return cmp.Compare(*a.Distance, *b.Distance)
		}
	}
	return func(a, b paletteEntry) int { return cmp.Compare(b.Count, a.Count) }
}

type swapReply struct {
	Slot  int    `json:"slot"`
	Codes []int  `json:"codes"`
	Image string `json:"image"`
	play.Difference
}

// swaps returns the paper's experiment for a state: A with each slot of B, and the cumulative interpolation.
func (p *Play) swaps(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	tuples := play.Swaps(s.codes, s.bcodes)
	walk := play.Interpolation(s.codes, s.bcodes, s.order)
	images, err := rm.model.Decode(r.Context(), play.Strip, append(slices.Clone(tuples), walk...))
	if err != nil {
		return err
	}
	base := images[len(tuples)]
	reply := struct {
		Codes  []int       `json:"codes"`
		BCodes []int       `json:"bcodes"`
		Order  []int       `json:"order"`
		Swaps  []swapReply `json:"swaps"`
		Strip  []swapReply `json:"strip"` // slot −1 is A itself; differences are to the previous step
	}{Codes: s.codes, BCodes: s.bcodes, Order: s.order}
	for i, t := range tuples {
		reply.Swaps = append(reply.Swaps, swapReply{i, t, imageURL(rm.source.Key, t), play.Compare(base, images[i], rm.model.Image.C)})
	}
	before := base
	for j, t := range walk {
		slot, now := -1, images[len(tuples)+j]
		if j > 0 {
			slot = s.order[j-1]
		}
		reply.Strip = append(reply.Strip, swapReply{slot, t, imageURL(rm.source.Key, t), play.Compare(before, now, rm.model.Image.C)})
		before = now
	}
	return handlers.JSON(w, http.StatusOK, reply)
}

// check re-encodes the decoded image and returns how many codes are preserved and which slots changed.
func (p *Play) check(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	codes, err := rm.tuple(r.URL.Query(), "codes")
	if err != nil {
		return err
	}
	if codes == nil {
		return model.Invalid{"codes": "required: the code tuple to check, such as codes=17.301.4"}
	}
	images, err := rm.model.Decode(r.Context(), play.Strip, [][]int{codes})
	if err != nil {
		return err
	}
	again, err := rm.model.Encode(r.Context(), images[0])
	if err != nil {
		return err
	}
	kept := rm.model.Kept(codes, again[0])
	moved := make([]int, 0, len(codes))
	for i := range codes {
		if !slices.Contains(kept, i) {
			moved = append(moved, i)
		}
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"codes": codes, "again": again[0], "kept": len(kept), "moved": moved})
}
