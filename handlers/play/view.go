package play

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"slotscope/handlers"
	"slotscope/model/data"
	"slotscope/model/play"
	"slotscope/views"
	ui "slotscope/views/play"
)

// view returns the view of a state. It holds image URLs rather than pixels, so that the page loads before images are decoded.
func (rm playRoom) view(ctx context.Context, s playState) (ui.PlayView, error) {
	m, key := rm.model.Config.M, rm.source.Key
	v := ui.PlayView{
		Key: key, Title: rm.source.Title, Run: rm.source.Run, Step: rm.source.Step, Named: ui.Named(rm.source.Title, rm.source.Step), Engine: rm.model.Engine,
		Model: rm.source.Config.Model, Preset: rm.source.Config.Preset, M: m, K: rm.model.Codes(), D: rm.source.Config.D,
		Continuous: rm.model.Continuous(), Text: rm.model.Text,
		H: rm.model.Image.H, W: rm.model.Image.W, C: rm.model.Image.C,
		Codes: s.codes, BCodes: s.bcodes, Order: s.order, Slot: s.slot,
		Query: rm.query(s).Encode(), About: origin(rm.source).About(), Origin: origin(rm.source).Short(),
	}
	if size := rm.model.WeightsSize(); size > 0 && size <= play.MaxWeights {
		v.Weights = "/api/play/" + key + "/weights.bin"
	}
	rm.offer(&v)
	set, err := rm.play.Library.Set(ctx, rm.source.Config.Dataset)
	if err == nil {
		v.Dataset = datasetView(set.Info())
	} else {
		v.Problem = ui.NoDataset(err)
	}
	v.A, v.B = rm.sideView("A", s.a), rm.sideView("B", s.b)
	usage := rm.play.Library.Usage(rm.source)
	known := cmp.Or(usage.Usage, usage.Early)
	names, err := rm.play.Library.Names(rm.source)
	if err != nil {
		v.Problem = strings.TrimSpace(v.Problem + " " + handlers.SentenceOf(err))
	}
	v.Slots = rm.slots(known, v.Dataset, names)
	v.Groups = rm.groups(s, known, v.Slots, names)
	v.Nameable = rm.source.Run != ""
	v.Counted = countedView(usage)
	v.Pair = rm.play.firstPair(ctx, rm.source)
	v.Swaps, v.Strip = rm.swapCells(s), rm.stripCells(s)
	v.Image = imageURL(key, s.codes)
	v.Palette = rm.palette(s, usage.Usage, v.Slots)
	return v, nil
}

// offer lists the checkpoints to open and those to compare side by side.
func (rm playRoom) offer(v *ui.PlayView) {
	key := rm.source.Key
	contrast := rm.play.contrast(rm.source)
	for _, src := range rm.play.Library.List() {
		v.Checkpoints = append(v.Checkpoints, ui.PlayOption{Value: src.Key, Text: origin(src).Option(), Chosen: src.Key == key})
		if src.Config.Dataset == rm.source.Config.Dataset && src.Key != key {
			v.Others = append(v.Others, ui.PlayOption{Value: src.Key, Text: origin(src).Option(), Chosen: src.Key == contrast})
		}
	}
	if rm.source.Run != "" {
		v.Steps = rm.play.Library.Steps(rm.source.Run)
	}
	if !slices.ContainsFunc(v.Checkpoints, func(o ui.PlayOption) bool { return o.Chosen }) {
		v.Checkpoints = append(v.Checkpoints, ui.PlayOption{Value: key, Text: origin(rm.source).Option(), Chosen: true})
	}
}

// swapCells returns A with each single slot of B.
func (rm playRoom) swapCells(s playState) (cells []ui.PlayCell) {
	swaps := play.Swaps(s.codes, s.bcodes)
	for i := range swaps {
		to := s
		to.codes = swaps[i]
		cells = append(cells, ui.PlayCell{
			Slot: i, Codes: play.FormatCodes(swaps[i]), Image: imageURL(rm.source.Key, swaps[i]), Same: s.codes[i] == s.bcodes[i],
			Href: playAddress(rm.source.Key, rm.query(to)), SlotHref: rm.slotHref(s, i),
		})
	}
	return cells
}

// stripCells returns the steps from A to B, each with one more slot swapped.
func (rm playRoom) stripCells(s playState) (cells []ui.PlayCell) {
	for j, t := range play.Interpolation(s.codes, s.bcodes, s.order) {
		cell := ui.PlayCell{Slot: -1, Codes: play.FormatCodes(t), Image: imageURL(rm.source.Key, t)}
		if j > 0 {
			cell.Slot = s.order[j-1]
			cell.Earlier, cell.Later = rm.moved(s, j-1, -1), rm.moved(s, j-1, 1)
		}
		cells = append(cells, cell)
	}
	return cells
}

// palette returns the first page of codes for the selected slot.
func (rm playRoom) palette(s playState, usage *play.Usage, slots []ui.PlaySlot) (entries []ui.PlayEntry) {
	for _, e := range rm.entries(usage, slots[s.slot], paletteQuery{slot: s.slot, codes: s.codes, sort: rm.firstOrder(), filter: "used", limit: paletteLimit}).Entries {
		to := s
		to.codes = play.With(s.codes, s.slot, e.Code)
		q := rm.query(to)
		q.Set("slot", strconv.Itoa(s.slot))
		entries = append(entries, ui.PlayEntry{Code: e.Code, Text: e.Text, Count: e.Count, Unseen: e.Unseen, Pinned: e.Pinned, Image: e.Image, Codes: play.FormatCodes(to.codes), Href: playAddress(rm.source.Key, q) + "#palette", Current: e.Code == s.codes[s.slot]})
	}
	return entries
}

// firstOrder returns the initial sort order of the palette: real numbers by size, codes by factor value.
func (rm playRoom) firstOrder() string {
	if rm.model.Continuous() {
		return "id"
	}
	return "value"
}

// contrast returns the checkpoint initially shown beside a shipped HRR model: a shipped β-VAE, if there is one.
func (p *Play) contrast(src play.Source) string {
	shipped, err := play.Shipped()
	if err != nil || !slices.ContainsFunc(shipped, func(s play.Source) bool { return s.Key == src.Key }) {
		return ""
	}
	return play.Contrast(shipped, src)
}

// slot returns a slot with its name and those of its codes.
func (rm playRoom) slot(ctx context.Context, u *play.Usage, slot int) (ui.PlaySlot, error) {
	names, err := rm.play.Library.Names(rm.source)
	if err != nil {
		return ui.PlaySlot{}, err
	}
	return rm.slots(u, rm.dataset(ctx), names)[slot], nil
}

// dataset returns the checkpoint's dataset, or nil if it cannot be opened.
func (rm playRoom) dataset(ctx context.Context) *ui.PlayDataset {
	set, err := rm.play.Library.Set(ctx, rm.source.Config.Dataset)
	if err != nil {
		return nil
	}
	return datasetView(set.Info())
}

func imageURL(key string, codes []int) string {
	return "/img/" + key + "/" + play.FormatCodes(codes) + ".png"
}

// origin returns where a checkpoint comes from.
func origin(src play.Source) ui.Origin {
	o := ui.Origin{Title: src.Title, Config: src.Config, Step: src.Step}
	if src.Card != nil {
		o.Engine, o.Scores = src.Card.Engine, src.Card.Scores
	}
	return o
}

func datasetView(info data.Info) *ui.PlayDataset {
	d := &ui.PlayDataset{Name: info.Name, Title: info.Title, Len: info.Len, Complete: info.Complete}
	for _, f := range info.Factors {
		d.Factors = append(d.Factors, ui.PlayFactor{Name: plainName(f.Name), Values: f.Values})
	}
	return d
}

// plainName returns a factor's name with spaces for underscores.
func plainName(name string) string { return strings.ReplaceAll(name, "_", " ") }

func (rm playRoom) sideView(name string, s playSide) ui.PlaySide {
	v := ui.PlaySide{Name: name, Index: s.index, Classes: s.classes, Codes: s.codes, PSNR: s.psnr, Reconstruction: imageURL(rm.source.Key, s.codes)}
	if s.index >= 0 {
		v.Original = fmt.Sprintf("/api/play/%s/original.png?index=%d", rm.source.Key, s.index)
	}
	return v
}

// slots returns the column headings.
func (rm playRoom) slots(u *play.Usage, set *ui.PlayDataset, names play.Names) []ui.PlaySlot {
	out := make([]ui.PlaySlot, rm.model.Config.M)
	for i := range out {
		out[i] = ui.PlaySlot{Index: i, First: -1, Called: names.Slots[i], Pins: append([]int{}, names.Pins[i]...), Codes: []ui.PlayCode{}}
		if u == nil {
			out[i].Codes = called(out[i].Codes, names.Codes[i])
			continue
		}
		out[i].Known, out[i].Name, out[i].Used, out[i].First = true, u.Labels[i].Name, u.Labels[i].Used, u.Ownership.Slots[i].First
		for f, name := range u.Factors {
			share := float64(u.Ownership.NMI[f][i])
			if math.IsNaN(share) {
				share = 0 // a factor with one value
			}
			out[i].Shares = append(out[i].Shares, views.FactorShare{Factor: plainName(name), Share: share})
		}
		if set != nil {
			out[i].Codes = codesOf(u.Meanings[i], set)
		}
		out[i].Codes = called(out[i].Codes, names.Codes[i])
	}
	return out
}

// codesOf names codes by the factor values that they represent.
func codesOf(meanings []play.Meaning, set *ui.PlayDataset) []ui.PlayCode {
	out := make([]ui.PlayCode, len(meanings))
	for n, m := range meanings {
		c := ui.PlayCode{Code: m.Entry, Classes: m.Values[0].Classes, Share: m.Values[0].Share}
		var parts []string
		for _, v := range m.Values {
			parts = append(parts, valueNames(set.Factors[v.Factor], v.Classes))
		}
		c.Name = strings.Join(parts, ", ")
		if f := set.Factors[m.Values[0].Factor]; strings.HasSuffix(f.Name, "hue") {
			c.Hues = huesOf(f, c.Classes)
		}
		out[n] = c
	}
	return out
}

// called replaces code names by user-chosen ones.
func called(codes []ui.PlayCode, names map[int]string) []ui.PlayCode {
	for n, c := range codes {
		if name := names[c.Code]; name != "" {
			codes[n].Name, codes[n].Told = name, c.Name
		}
	}
	for _, code := range slices.Sorted(maps.Keys(names)) {
		if !slices.ContainsFunc(codes, func(c ui.PlayCode) bool { return c.Code == code }) {
			codes = append(codes, ui.PlayCode{Code: code, Name: names[code], Told: strconv.Itoa(code), Classes: []int{}})
		}
	}
	return codes
}

// valueNames joins the names of a factor's values: "0.6", "0.3/0.4".
func valueNames(f ui.PlayFactor, classes []int) string {
	sorted := slices.Sorted(slices.Values(classes))
	names := make([]string, len(sorted))
	for i, c := range sorted {
		names[i] = f.Values[c]
	}
	return strings.Join(names, "/")
}

// huesOf returns CSS colours of a hue's values, which are fractions of a turn; nil if a value is not a number.
func huesOf(f ui.PlayFactor, classes []int) (colours []string) {
	for _, c := range slices.Sorted(slices.Values(classes)) {
		turn, err := strconv.ParseFloat(f.Values[c], 64)
		if err != nil {
			return nil
		}
		colours = append(colours, fmt.Sprintf("hsl(%.0f 100%% 50%%)", 360*turn))
	}
	return colours
}

// groups returns the slots of each factor, in factor order. Slots without a factor come last, one group each.
func (rm playRoom) groups(s playState, u *play.Usage, slots []ui.PlaySlot, names play.Names) (out []ui.PlayGroup) {
	grouped := make([]bool, len(slots))
	add := func(g ui.PlayGroup) {
		g.Index = len(out)
		to, same := s, true
		to.codes = slices.Clone(s.codes)
		for _, i := range g.Slots {
			grouped[i], same, to.codes[i] = true, same && s.codes[i] == s.bcodes[i], s.bcodes[i]
			for f, share := range slots[i].Shares {
				if f >= len(g.Shares) {
					g.Shares = append(g.Shares, share)
				}
				g.Shares[f].Share = max(g.Shares[f].Share, share.Share)
			}
		}
		g.Swap = ui.PlayCell{
			Slot: g.Slots[0], Codes: play.FormatCodes(to.codes), Image: imageURL(rm.source.Key, to.codes), Same: same,
			Href: playAddress(rm.source.Key, rm.query(to)), SlotHref: rm.slotHref(s, g.Slots[0]),
		}
		out = append(out, g)
	}
	if u != nil {
		for _, g := range u.Ownership.Groups {
			name := plainName(u.Factors[g.Factor])
			if !g.Owned {
				name = "mostly " + name
			}
			add(ui.PlayGroup{Factor: g.Factor, Owned: g.Owned, Name: name, Key: u.Factors[g.Factor], Called: names.Groups[u.Factors[g.Factor]], Slots: g.Slots})
		}
	}
	for i := range slots {
		if !grouped[i] {
			add(ui.PlayGroup{Factor: -1, Name: slots[i].Name, Called: slots[i].Called, Slots: []int{i}})
		}
	}
	return out
}

func countedView(c play.Counting) ui.PlayCounted {
	v := ui.PlayCounted{Done: c.Done, Of: c.Of, Early: c.Early != nil}
	if c.Usage != nil {
		v.Ready, v.Done, v.Of = true, c.Usage.Images, c.Usage.Images
	}
	if c.Err != nil {
		v.Problem = ui.CountingFailed(handlers.SentenceOf(c.Err))
	}
	return v
}

func (rm playRoom) slotHref(s playState, i int) string {
	q := rm.query(s)
	q.Set("slot", strconv.Itoa(i))
	return playAddress(rm.source.Key, q) + "#palette"
}

// moved returns the URL with position j of the strip's order moved by one, or "" if it is at the end.
func (rm playRoom) moved(s playState, j, by int) string {
	if j+by < 0 || j+by >= len(s.order) {
		return ""
	}
	s.order = slices.Clone(s.order)
	s.order[j], s.order[j+by] = s.order[j+by], s.order[j]
	return playAddress(rm.source.Key, rm.query(s)) + "#strip"
}
