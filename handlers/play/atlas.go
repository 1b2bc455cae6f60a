package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/play"
	ui "slotscope/views/play"
)

const (
	atlasImages     = 24 // maximum number of images shown for a code
	atlasNeighbours = 8
)

// atlasRoom is a slot of an open checkpoint, and optionally one of its codes.
type atlasRoom struct {
	playRoom
	slot, code int // code is −1 if none
	usage      *play.Usage
	sampling   play.Sampling
	set        data.Set // nil if it cannot be opened
	classes    [][]int  // of the sample's images
	slots      []ui.PlaySlot
	names      play.Names
	codes      []int // of the playground's A
}

// atlas renders the page of a slot or a code.
func (p *Play) atlas(w http.ResponseWriter, r *http.Request) error { return p.drawAtlas(w, r, "") }

func (p *Play) drawAtlas(w http.ResponseWriter, r *http.Request, refused string) error {
	name := chi.URLParam(r, "checkpoint")
	src, err := p.Library.Find(name)
	if err != nil {
		return err
	}
	if name != src.Key {
		to := "/play/" + src.Key + "/atlas"
		for _, part := range []string{"slot", "code"} {
			if v := chi.URLParam(r, part); v != "" {
				to += "/" + url.PathEscape(v)
			}
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	rm, release, err := p.openAtlas(r)
	if err != nil {
		return err
	}
	defer release()
	v, err := rm.view()
	if err != nil {
		return err
	}
	if v.Code != nil {
		v.Code.Refused = refused
	}
	return handlers.Draw(w, r, ui.Atlas(v))
}

// nameInAtlas saves a code's name from the page's form.
func (p *Play) nameInAtlas(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.openAtlas(r)
	if err != nil {
		return err
	}
	defer release()
	name := r.PostFormValue("name")
	_, err = p.Library.Rename(rm.model, rm.source, nil, play.NameChange{Slot: &rm.slot, Code: &rm.code, Name: &name})
	if errors.As(err, new(model.Invalid)) {
		return p.drawAtlas(w, r, handlers.SentenceOf(err))
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, fmt.Sprintf("/play/%s/atlas/%d/%d", rm.source.Key, rm.slot, rm.code), http.StatusSeeOther)
	return nil
}

// openAtlas parses the URL and loads the available data.
func (p *Play) openAtlas(r *http.Request) (rm atlasRoom, release func(), err error) {
	rm.code = -1
	rm.playRoom, release, err = p.open(r)
	if err != nil {
		return rm, nil, err
	}
	if err = rm.fill(r); err != nil {
		release()
	}
	return rm, release, err
}

func (rm *atlasRoom) fill(r *http.Request) (err error) {
	for name, to := range map[string]*int{"slot": &rm.slot, "code": &rm.code} {
		if text := chi.URLParam(r, name); text != "" {
			if *to, err = strconv.Atoi(text); err != nil || *to < 0 {
				return fmt.Errorf("%q is not a %s: %w", text, name, model.ErrNotFound)
			}
		}
	}
	if rm.slot >= rm.model.Config.M {
		return fmt.Errorf("slot %d does not exist; this checkpoint has slots 0–%d: %w", rm.slot, rm.model.Config.M-1, model.ErrNotFound)
	}
	if rm.code >= rm.model.Codes() {
		return fmt.Errorf("code %d does not exist; this checkpoint has codes 0–%d: %w", rm.code, rm.model.Codes()-1, model.ErrNotFound)
	}
	if rm.code >= 0 {
		rm.code = rm.model.Entries()[rm.model.Entry(rm.code)]
	}
	if rm.names, err = rm.play.Library.Names(rm.source); err != nil {
		return err
	}
	counted := rm.play.Library.Usage(rm.source)
	rm.usage = cmp.Or(counted.Usage, counted.Early)
	rm.slots = rm.playRoom.slots(rm.usage, rm.dataset(r.Context()), rm.names)
	rm.sampling = rm.play.Library.Sample(rm.source)
	if rm.set, err = rm.play.Library.Set(r.Context(), rm.source.Config.Dataset); err != nil {
		rm.set = nil // codes can be decoded without the dataset
	}
	if s := rm.sampling.Sample; s != nil && rm.set != nil {
		if rm.classes, err = s.Classes(rm.set); err != nil {
			return err
		}
	}
	return rm.start(r.Context())
}

// start sets the codes of the playground's A.
func (rm *atlasRoom) start(ctx context.Context) error {
	q := url.Values{}
	if err := rm.play.fillPair(ctx, rm.source, q); err != nil {
		return err
	}
	s, err := rm.read(ctx, q)
	rm.codes = s.codes
	return err
}

func (rm atlasRoom) view() (ui.AtlasView, error) {
	v := ui.AtlasView{Key: rm.source.Key, Title: rm.source.Title, Run: rm.source.Run, M: rm.model.Config.M, Slot: rm.slot, Slots: rm.slots, Shares: rm.slots[rm.slot].Shares}
	if rm.sampling.Err != nil {
		v.Problem = ui.EncodingFailed(handlers.SentenceOf(rm.sampling.Err))
	} else if rm.sampling.Lives == nil {
		v.Done, v.Of = rm.sampling.Done, max(1, rm.sampling.Of)
	}
	counts := rm.counts()
	if counts != nil {
		v.Images = len(rm.sampling.Sample.Index)
	}
	var used []ui.AtlasEntry
	for at, c := range rm.model.Entries() {
		if counts != nil && counts[at] > 0 {
			used = append(used, rm.entry(c, counts))
		}
	}
	v.Unused = len(rm.model.Entries()) - len(used)
	v.Codes = slices.Clone(used)
	slices.SortStableFunc(v.Codes, func(a, b ui.AtlasEntry) int { return cmp.Compare(b.Count, a.Count) })
	if rm.code < 0 {
		return v, nil
	}
	code, err := rm.codeView(counts)
	code.Before, code.Next = around(used, rm.code)
	v.Code = &code
	return v, err
}

// around returns the used codes before and after one.
func around(used []ui.AtlasEntry, code int) (before, next *ui.AtlasEntry) {
	for i := range used {
		if used[i].Code < code {
			before = &used[i]
		}
		if used[i].Code > code && next == nil {
			next = &used[i]
		}
	}
	return before, next
}

// counts returns the number of sample images per entry of the slot; nil until the sample is complete.
func (rm atlasRoom) counts() []int {
	if rm.sampling.Sample == nil {
		return nil
	}
	counts := make([]int, len(rm.model.Entries()))
	for _, e := range rm.sampling.Sample.Entries {
		counts[e[rm.slot]]++
	}
	return counts
}

func (rm atlasRoom) entry(code int, counts []int) ui.AtlasEntry {
	e := ui.AtlasEntry{
		Code: code, Text: rm.model.Text(code), Image: imageURL(rm.source.Key, play.With(rm.codes, rm.slot, code)),
		Href: fmt.Sprintf("/play/%s/atlas/%d/%d", rm.source.Key, rm.slot, code),
	}
	e.Name = rm.known(code).Name
	if counts != nil {
		e.Count = counts[rm.model.Entry(code)]
	}
	return e
}

// known returns the meaning of the slot's code.
func (rm atlasRoom) known(code int) ui.PlayCode {
	for _, c := range rm.slots[rm.slot].Codes {
		if c.Code == code {
			return c
		}
	}
	return ui.PlayCode{Code: code}
}

func (rm atlasRoom) codeView(counts []int) (ui.AtlasCode, error) {
	e := rm.entry(rm.code, counts)
	c := ui.AtlasCode{Code: rm.code, Text: e.Text, Known: rm.known(rm.code), Called: rm.names.Codes[rm.slot][rm.code], Count: e.Count, Image: e.Image}
	q := url.Values{"codes": {play.FormatCodes(play.With(rm.codes, rm.slot, rm.code))}, "slot": {strconv.Itoa(rm.slot)}}
	c.Play = playAddress(rm.source.Key, q)
	neighbours, err := rm.model.Neighbours(rm.slot, rm.code, atlasNeighbours)
	if err != nil {
		return c, err
	}
	for _, n := range neighbours {
		e := rm.entry(n.Code, counts)
		e.Distance = fmt.Sprintf("%.2f", n.Distance)
		c.Neighbours = append(c.Neighbours, e)
	}
	if rm.classes != nil {
		rows := rm.sampling.Sample.Carried(rm.slot, rm.model.Entry(rm.code))
		rm.meaning(&c, rows)
		rm.carriers(&c, rows)
	}
	rm.life(&c)
	return c, nil
}

// meaning sets the factor values of the images with the code.
func (rm atlasRoom) meaning(c *ui.AtlasCode, rows []int) {
	if len(rows) == 0 {
		return
	}
	var own []int
	if rm.usage != nil {
		own = rm.usage.Ownership.Slots[rm.slot].Factors
	}
	every := make([]int, len(rm.classes))
	for n := range every {
		every[n] = n
	}
	for f, factor := range rm.set.Info().Factors {
		values := play.Values(rm.classes, f, len(factor.Values), rows)
		base := play.Values(rm.classes, f, len(factor.Values), every)
		best := 0
		for v := range values {
			if values[v].Taken > values[best].Taken {
				best = v
			}
		}
		isOwn, with, all := slices.Contains(own, f), chances(values), chances(base)
		c.Factors = append(c.Factors, ui.NewAtlasFactor(plainName(factor.Name), factor.Values[best], isOwn, with[best], all[best]))
		if isOwn {
			c.Values = append(c.Values, ui.ValuesFigure(plainName(factor.Name), factor.Values, with, all))
		}
	}
}

func chances(of []play.Probability) []ui.Chance {
	all := make([]ui.Chance, len(of))
	for i, p := range of {
		all[i] = ui.Chance{Value: p.Value, Low: p.Low, High: p.High, Taken: p.Taken, Of: p.Of}
	}
	return all
}

// carriers sets the images of the sample with the code, at most atlasImages.
func (rm atlasRoom) carriers(c *ui.AtlasCode, rows []int) {
	factors := rm.set.Info().Factors
	for _, n := range rows[:min(len(rows), atlasImages)] {
		index, text := rm.sampling.Sample.Index[n], ""
		for f, v := range rm.classes[n] {
			if f > 0 {
				text += ", "
			}
			text += plainName(factors[f].Name) + " " + factors[f].Values[v]
		}
		c.Carriers = append(c.Carriers, ui.AtlasImage{
			Index: index, Text: text, Original: fmt.Sprintf("/api/play/%s/original.png?index=%d", rm.source.Key, index),
			Href: playAddress(rm.source.Key, url.Values{"a": {strconv.Itoa(index)}, "slot": {strconv.Itoa(rm.slot)}}),
		})
	}
}

// life sets the history of the code over the run's checkpoints.
func (rm atlasRoom) life(c *ui.AtlasCode) {
	lives := rm.sampling.Lives
	if lives == nil { // not all checkpoints are encoded yet
		return
	}
	if len(lives) < 2 { // a shipped model outside a run has only one checkpoint
		c.Born = ui.OneCheckpoint(rm.source.Step)
		return
	}
	entry := rm.model.Entry(rm.code)
	life := ui.Life{Slot: rm.slot, Images: len(lives[0].Entries)}
	for _, l := range lives {
		life.Steps, life.Shares = append(life.Steps, l.Step), append(life.Shares, l.Share(rm.slot, entry))
	}
	life.Born, life.Died = play.Born(lives, rm.slot, entry)
	c.Life, c.Born = life.Figure(), life.Said()
}

// atlasReply is the API's description of a slot or a code.
type atlasReply struct {
	State      string           `json:"state"` // "encoding", then "ready"
	Done       int              `json:"done"`
	Of         int              `json:"of"`
	Images     int              `json:"images"` // of the sample
	Slot       ui.PlaySlot      `json:"slot"`
	Entries    []ui.AtlasEntry  `json:"entries"`
	Code       *int             `json:"code,omitempty"`
	Carriers   []int            `json:"carriers,omitempty"` // indices of all sample images with the code
	Values     []atlasFactor    `json:"values,omitempty"`
	Neighbours []play.Neighbour `json:"neighbours,omitempty"`
	Life       []atlasStep      `json:"life,omitempty"`
}

type atlasFactor struct {
	Factor string             `json:"factor"`
	Values []play.Probability `json:"values"`
}

type atlasStep struct {
	Step  int     `json:"step"`
	Share float64 `json:"share"`
}

// atlasData returns the data of the atlas page as JSON.
func (p *Play) atlasData(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.openAtlas(r)
	if err != nil {
		return err
	}
	defer release()
	if rm.sampling.Err != nil {
		return rm.sampling.Err
	}
	v, err := rm.view()
	if err != nil {
		return err
	}
	reply := atlasReply{State: "ready", Done: v.Done, Of: v.Of, Images: v.Images, Slot: rm.slots[rm.slot], Entries: append([]ui.AtlasEntry{}, v.Codes...)}
	status := http.StatusOK
	if v.Of > 0 {
		reply.State, status = "encoding", http.StatusAccepted
	}
	if rm.code >= 0 {
		if err := rm.codeReply(&reply); err != nil {
			return err
		}
	}
	return handlers.JSON(w, status, reply)
}

func (rm atlasRoom) codeReply(reply *atlasReply) (err error) {
	reply.Code = &rm.code
	if reply.Neighbours, err = rm.model.Neighbours(rm.slot, rm.code, atlasNeighbours); err != nil {
		return err
	}
	entry := rm.model.Entry(rm.code)
	for _, l := range rm.sampling.Lives {
		reply.Life = append(reply.Life, atlasStep{l.Step, l.Share(rm.slot, entry)})
	}
	if rm.classes == nil {
		return nil
	}
	rows := rm.sampling.Sample.Carried(rm.slot, entry)
	for _, n := range rows {
		reply.Carriers = append(reply.Carriers, rm.sampling.Sample.Index[n])
	}
	if len(rows) > 0 {
		for f, factor := range rm.set.Info().Factors {
			reply.Values = append(reply.Values, atlasFactor{factor.Name, play.Values(rm.classes, f, len(factor.Values), rows)})
		}
	}
	return nil
}
