package workbench_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"slotscope/db"
	"slotscope/handlers/handlertest"
	"slotscope/handlers/workbench"
	"slotscope/model"
	"slotscope/model/host"
	"slotscope/model/view"
)

// site serves the list with a fake service.
func site(t *testing.T) (*handlertest.Runs, *evaluations, http.Handler) {
	t.Helper()
	f, e := handlertest.NewRuns(t.TempDir()), &evaluations{}
	r := chi.NewRouter()
	workbench.Workbench{Runs: f, Views: view.Open(t.TempDir()), Evaluations: e}.Routes(r)
	return f, e, r
}

// evaluations records the queued evaluations.
type evaluations struct {
	queued []string
	asked  model.Evaluation
	state  map[string]model.Evaluation
	err    error
}

func (e *evaluations) Queue(_ context.Context, id string, ask model.Evaluation) error {
	if e.err == nil {
		e.queued, e.asked = append(e.queued, id), ask
		if e.state == nil {
			e.state = map[string]model.Evaluation{}
		}
		e.state[id] = model.Evaluation{State: model.Queued, Effort: ask.Effort}
	}
	return e.err
}

func (e *evaluations) Cancel(_ context.Context, id string) error {
	delete(e.state, id)
	return e.err
}

func (e *evaluations) State(id string) model.Evaluation { return e.state[id] }

func rowsOf(doc *goquery.Document) []string {
	ids := []string{}
	doc.Find("[data-testid=run-row]").Each(func(_ int, s *goquery.Selection) { ids = append(ids, s.AttrOr("data-run", "")) })
	return ids
}

func TestList(t *testing.T) {
	f, _, h := site(t)
	if doc := handlertest.Document(t, handlertest.Get(t, h, "/runs")); doc.Find("[data-testid=empty] a[href='/runs/new']").Length() != 1 {
		t.Error("an empty list has no next step")
	}
	f.Put("a", model.Running, 900).Name = "First light"
	f.Put("b", model.Failed, 30).Name = "Diverged"
	f.Put("c", model.Queued, 0)
	f.Put("d", model.Finished, 5).Archived = true
	for _, tt := range []struct {
		name, path string
		want       []string
		says       string
	}{
		{"newest first, equal ages by ID", "/runs", []string{"c", "b", "a"}, ""},
		{"by step upwards", "/runs?sort=step", []string{"c", "b", "a"}, ""},
		{"by step downwards", "/runs?sort=-step", []string{"a", "b", "c"}, ""},
		{"by a last value, none last", "/runs?sort=psnr/eval", []string{"b", "a", "c"}, ""},
		{"by a hyperparameter", "/runs?sort=-lr", []string{"c", "b", "a"}, ""},
		{"by state: active first", "/runs?sort=state", []string{"a", "c", "b"}, ""},
		{"an unknown sort column uses the default", "/runs?sort=colour", []string{"c", "b", "a"}, `Cannot sort by "colour": unknown column. Showing the newest runs first.`},
		{"an unknown column", "/runs?cols=name,colour", []string{"c", "b", "a"}, `No run has "colour". It may be a series that was not measured yet.`},
		{"an unknown group", "/runs?group=colour", []string{"c", "b", "a"}, `Cannot group by "colour". Choose config, a text column or a hyperparameter.`},
		{"by words of name and state", "/runs?q=light+RUNNING", []string{"a"}, ""},
		{"only runs that have not ended", "/runs?q=live", []string{"c", "a"}, ""},
		{"by numbers", "/runs?q=" + url.QueryEscape("step>=30 -running"), []string{"b"}, ""},
		{"the archive", "/runs?q=archived", []string{"d"}, ""},
		{"no match", "/runs?q=zebra", []string{}, ""},
		{"an invalid query", "/runs?q=" + url.QueryEscape("stepp>3"), []string{}, `"stepp": unknown hyperparameter, score or series; did you mean step?; to search for this text, put it in quotes`},
		{"a page beyond the last", "/runs?page=99999999999999999999", []string{"c", "b", "a"}, ""},
		{"another page beyond the last", "/runs?page=7", []string{"c", "b", "a"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := handlertest.Page(t, handlertest.Get(t, h, tt.path))
			if diff := cmp.Diff(tt.want, rowsOf(doc)); diff != "" {
				t.Error(diff)
			}
			if said := doc.Find("[data-testid=fault]").Text() + doc.Find("[data-testid=notice]").Text(); said != tt.says {
				t.Errorf("says %q", said)
			}
			if empty := doc.Find("[data-testid=no-match]").Length() == 1; empty != (tt.name == "no match") {
				t.Errorf("the message for an empty list is shown: %v", empty)
			}
		})
	}
	row := handlertest.Page(t, handlertest.Get(t, h, "/runs?cols=state,name,step,rate,lr,psnr/eval,m")).Find("[data-run=a]")
	cells := row.Find("td").Map(func(_ int, s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") })
	if diff := cmp.Diff([]string{"", "running", "★ First light", "900 of 4,000", "321", "0.001", "18.32", "9"}, cells); diff != "" && f.Runs["a"].Config.Steps == 4000 {
		t.Error(diff)
	}
}

// TestManyRuns: 300 runs in pages and in groups of seeds with intervals, by URL.
func TestManyRuns(t *testing.T) {
	f, _, h := site(t)
	f.PutMany(300)
	first := handlertest.Page(t, handlertest.Get(t, h, "/runs"))
	if n := len(rowsOf(first)); n != 100 {
		t.Errorf("a page has %d runs", n)
	}
	if text := first.Find("[data-testid=shown]").Text(); text != "293 of 300 runs" { // 7 are archived
		t.Errorf("says %q", text)
	}
	seen := map[string]bool{}
	for page := 1; page <= 3; page++ {
		for _, id := range rowsOf(handlertest.Page(t, handlertest.Get(t, h, fmt.Sprintf("/runs?page=%d&sort=-infom", page)))) {
			if seen[id] {
				t.Errorf("%s is on two pages", id)
			}
			seen[id] = true
		}
	}
	if len(seen) != 293 {
		t.Errorf("three pages have %d runs", len(seen))
	}
	doc := handlertest.Page(t, handlertest.Get(t, h, "/runs?group=config&sort=-infom&cols=name,lr,infom,state"))
	groups := doc.Find("[data-testid=group-row]")
	if groups.Length() != 50 || len(rowsOf(doc)) != 0 {
		t.Fatalf("%d groups, %d runs", groups.Length(), len(rowsOf(doc)))
	}
	label := strings.Join(strings.Fields(groups.First().Find("td.name").Text()), " ")
	var n int
	if _, count, ok := strings.Cut(label, "lr 0.001 "); !ok || !strings.Contains(label, "batch") {
		t.Errorf("the best group is called %q", label)
	} else if _, err := fmt.Sscan(count, &n); err != nil {
		t.Errorf("the best group counts %q", count)
	}
	mean := strings.Join(strings.Fields(groups.First().Find("[data-label=InfoM]").Text()), " ")
	if !strings.Contains(mean, "±") {
		t.Errorf("its InfoM is %q", mean)
	}
	key := groups.First().AttrOr("data-group", "")
	if open := handlertest.Page(t, handlertest.Get(t, h, "/runs?group=config&sort=-infom&open="+key)); len(rowsOf(open)) != n || n < 4 {
		t.Errorf("an open group shows %d runs", len(rowsOf(open)))
	}
	if byModel := handlertest.Page(t, handlertest.Get(t, h, "/runs?group=model")); byModel.Find("[data-testid=group-row]").Length() != 5 {
		t.Error("five models are not five groups")
	}
	columns := handlertest.Page(t, handlertest.Get(t, h, "/runs/columns?q=hrr&cols=name,lr")).Find("[data-testid=columns-form]")
	if got := columns.Find("input[name=cols]:checked").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("value", "") }); !slices.Equal(got, []string{"name", "lr"}) {
		t.Errorf("columns chosen: %v", got)
	}
	for _, f := range append(model.Fields(), model.Field{Name: "infom"}, model.Field{Name: "perplexity/used"}, model.Field{Name: "mig"}) {
		if columns.Find(fmt.Sprintf("input[value=%q]", f.Name)).Length() != 1 {
			t.Errorf("%s cannot be chosen as a column", f.Name)
		}
	}
}

// listed provides only the list; looking up a single run fails.
type listed struct {
	workbench.Service
	all   []model.Overview
	asked int
}

func (l *listed) Overview(context.Context) ([]model.Overview, error) {
	l.asked++
	return slices.Clone(l.all), nil
}

// TestTenThousandRuns: each request on 10,000 runs loads the list once, loads no single run, and sends a page of 100.
func TestTenThousandRuns(t *testing.T) {
	l := &listed{all: handlertest.Many(10_000)}
	r := chi.NewRouter()
	workbench.Workbench{Runs: l, Views: view.Open(t.TempDir())}.Routes(r)
	for i, path := range []string{"/runs", "/runs?page=57&sort=-infom", "/runs?q=" + url.QueryEscape("model=hrr lr<1e-3 -failed"), "/runs?group=config", "/runs?page=100000"} {
		w := handlertest.Get(t, r, path)
		if rows := len(rowsOf(handlertest.Page(t, w))); rows > 100 || rows == 0 && !strings.Contains(path, "group") || w.Body.Len() > 1<<20 {
			t.Errorf("%s: %d rows, %d bytes", path, rows, w.Body.Len())
		}
		if l.asked != i+1 {
			t.Fatalf("%s: the list was loaded %d times in %d requests", path, l.asked, i+1)
		}
	}
}

// TestBulk applies actions to several runs and lists the failures.
func TestBulk(t *testing.T) {
	f, e, h := site(t)
	for _, id := range []string{"a", "b", "c"} {
		f.Put(id, model.Finished, 40).Name = "Run " + id
	}
	f.Put("live", model.Running, 40)
	post := func(form url.Values) (int, string, *goquery.Document) {
		w := handlertest.Post(t, h, "/runs/bulk", form)
		return w.Code, w.Header().Get("Location"), handlertest.Document(t, w)
	}
	back := "/runs?q=run&sort=name"
	if code, to, _ := post(url.Values{"do": {"tag"}, "tag": {"night"}, "run": {"a,b", "c"}, "back": {back}}); code != 303 || to != back || f.Runs["a"].Tags != "night" || f.Runs["c"].Tags != "night" || f.Runs["live"].Tags != "" {
		t.Errorf("tagging: %d %s %q", code, to, f.Runs["a"].Tags)
	}
	if code, _, _ := post(url.Values{"do": {"untag"}, "tag": {"night"}, "run": {"b"}}); code != 303 || f.Runs["b"].Tags != "" {
		t.Errorf("untagging: %d %q", code, f.Runs["b"].Tags)
	}
	if code, _, _ := post(url.Values{"do": {"archive"}, "all": {"1"}, "q": {"tag:night"}}); code != 303 || !f.Runs["a"].Archived || f.Runs["b"].Archived || !f.Runs["c"].Archived {
		t.Errorf("archiving the matches of a query: %d", code)
	}
	if code, _, _ := post(url.Values{"do": {"unarchive"}, "run": {"a,c"}}); code != 303 || f.Runs["a"].Archived {
		t.Errorf("unarchiving: %d", code)
	}
	if code, to, _ := post(url.Values{"do": {"star"}, "run": {"a"}, "back": {"https://elsewhere.example/runs"}}); code != 303 || to != "/runs" || !f.Runs["a"].Star {
		t.Errorf("a star: %d %s", code, to)
	}
	if code, to, _ := post(url.Values{"do": {"unstar"}, "run": {"a"}, "back": {"/compare?runs=a%2Cb"}}); code != 303 || to != "/compare?runs=a%2Cb" || f.Runs["a"].Star {
		t.Errorf("removing a star: %d %s", code, to)
	}
	if code, to, _ := post(url.Values{"do": {"compare"}, "run": {"a", "b"}}); code != 303 || to != "/compare?runs=a,b" {
		t.Errorf("comparing: %d %s", code, to)
	}
	if code, _, _ := post(url.Values{"do": {"quick"}, "run": {"a,b"}}); code != 303 || fmt.Sprint(e.queued) != "[a b]" || e.asked.Effort != model.Quick {
		t.Errorf("evaluating: %d %v", code, e.queued)
	}
	if text := handlertest.Page(t, handlertest.Get(t, h, "/runs")).Find("[data-testid=row-evaluation]").First().Text(); text != "evaluation queued" {
		t.Errorf("a row says %q", text)
	}
	code, _, doc := post(url.Values{"do": {"stop"}, "run": {"live,a"}, "back": {back}})
	if text := strings.Join(strings.Fields(doc.Find("[data-testid=outcome]").Text()), " "); code != 409 || f.Runs["live"].State != model.Stopped || !strings.HasPrefix(text, "1 run stopping, 1 failed") || !strings.Contains(text, "Run a: Run a is finished") {
		t.Errorf("stopping one that ended: %d %s", code, text)
	}
	code, _, doc = post(url.Values{"do": {"star"}, "run": {"gone,c"}, "back": {back}})
	if said := doc.Find("[role=alert] li").Text(); code != 409 || !f.Runs["c"].Star || !strings.Contains(said, "gone") || doc.Find("[role=alert] a").Length() != 0 {
		t.Errorf("an unknown run beside a known one: %d %q", code, said)
	}
	code, _, doc = post(url.Values{"do": {"delete"}, "run": {"a,b"}, "back": {back}})
	if code != 200 || doc.Find("h1").Text() != "Delete 2 runs?" || f.Runs["a"] == nil {
		t.Errorf("deleting asks first: %d %s", code, doc.Find("h1").Text())
	}
	form := url.Values{}
	doc.Find("[data-testid=outcome] input[type=hidden]").Each(func(_ int, s *goquery.Selection) { form.Add(s.AttrOr("name", ""), s.AttrOr("value", "")) })
	if code, to, _ := post(form); code != 303 || to != back || f.Runs["a"] != nil || f.Runs["b"] != nil || f.Runs["c"] == nil {
		t.Errorf("deleting: %d %s", code, to)
	}
	for name, tt := range map[string]struct {
		form url.Values
		code int
	}{
		"nothing selected":   {url.Values{"do": {"stop"}}, 422},
		"an unknown action":  {url.Values{"do": {"paint"}, "run": {"c"}}, 422},
		"no tag":             {url.Values{"do": {"tag"}, "run": {"c"}}, 422},
		"a tag of two words": {url.Values{"do": {"tag"}, "tag": {"a b"}, "run": {"c"}}, 422},
		"an invalid query":   {url.Values{"do": {"star"}, "all": {"1"}, "q": {"lr<"}}, 422},
		"an unknown run":     {url.Values{"do": {"compare"}, "run": {"c,gone"}}, 404},
		"an unknown effort":  {url.Values{"do": {"evaluate"}, "effort": {"some"}, "run": {"c"}}, 422},
	} {
		if code, _, _ := post(tt.form); code != tt.code {
			t.Errorf("%s: %d, want %d", name, code, tt.code)
		}
	}
}

// TestSavedViews: views can be saved, opened and changed, and are not overwritten by another tab.
func TestSavedViews(t *testing.T) {
	f, _, h := site(t)
	f.Put("a", model.Finished, 40)
	save := func(form url.Values) (int, string, *goquery.Document) {
		w := handlertest.Post(t, h, "/runs/views", form)
		return w.Code, w.Header().Get("Location"), handlertest.Document(t, w)
	}
	code, to, _ := save(url.Values{"name": {"good  ones"}, "address": {"q=infom%3E0.7&sort=-infom&page=3"}})
	if code != 303 || to != "/runs?q=infom%3E0.7&sort=-infom&view=good+ones" {
		t.Fatalf("saving returns %d %s", code, to)
	}
	doc := handlertest.Page(t, handlertest.Get(t, h, to))
	link := doc.Find("[data-testid=saved-views] nav a[aria-current]")
	if link.Text() != "good ones" || link.AttrOr("href", "") != to || strings.Contains(doc.Find("[data-testid=save]").Text(), "Unsaved changes") {
		t.Errorf("the view is linked as %q %s", link.Text(), link.AttrOr("href", ""))
	}
	if doc := handlertest.Page(t, handlertest.Get(t, h, "/runs?q=psnr%3E3&view=good+ones")); !strings.Contains(doc.Find("[data-testid=save]").Text(), "Unsaved changes") {
		t.Error("a changed view is not marked as changed")
	}
	again := url.Values{"name": {"good ones"}, "was": {"good ones"}, "version": {"1"}, "address": {"q=psnr%3E3&view=good+ones"}}
	if code, _, _ := save(again); code != 303 {
		t.Errorf("saving again returns %d", code)
	}
	code, _, doc = save(again) // another tab, which saw the first version
	if text := doc.Find("#view-error").Text(); code != 409 || !strings.Contains(text, "was changed at") {
		t.Errorf("a second tab: %d %s", code, text)
	}
	if name, query := doc.Find("#view-name").AttrOr("value", ""), doc.Find("[name=q]").First().AttrOr("value", ""); name != "good ones" || query != "psnr>3" || doc.Find("[data-testid=save][open]").Length() != 1 {
		t.Errorf("the second tab loses what was entered: view %q, query %q", name, query)
	}
	if version := doc.Find("[name=version]").AttrOr("value", ""); version != "2" {
		t.Errorf("the second tab can save over version %q", version)
	}
	for name, form := range map[string]url.Values{"a name that is taken": {"name": {"good ones"}}, "no such version": {"name": {"good ones"}, "was": {"good ones"}, "version": {"x"}}, "no name": {"name": {" "}}} {
		if code, _, _ := save(form); code != 409 && code != 422 {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code, to, _ := save(url.Values{"do": {"delete"}, "name": {"good ones"}, "was": {"good ones"}, "version": {"2"}, "address": {"q=psnr%3E3"}}); code != 303 || to != "/runs?q=psnr%3E3" {
		t.Errorf("deleting returns %d %s", code, to)
	}
}

func TestListAPI(t *testing.T) {
	f, e, h := site(t)
	f.PutMany(60)
	type answer struct {
		Runs            []model.Overview
		Matching, Total int
	}
	list := func(q url.Values) (a answer) {
		t.Helper()
		w := handlertest.Get(t, h, "/api/runs?"+q.Encode())
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
		return a
	}
	if a := list(nil); len(a.Runs) != 59 || a.Matching != 59 || a.Total != 60 {
		t.Errorf("%d of %d of %d", len(a.Runs), a.Matching, a.Total)
	}
	a := list(url.Values{"q": {"model=hrr infom>0"}, "sort": {"-infom"}, "limit": {"3"}, "offset": {"1"}})
	if len(a.Runs) != 3 || a.Runs[0].Scores["infom"] < a.Runs[1].Scores["infom"] || a.Runs[0].Config.Model != "hrr" || a.Runs[0].Values["psnr/eval"] == 0 || a.Matching < 4 {
		t.Errorf("%+v", a.Runs)
	}
	if a := list(url.Values{"offset": {"1000"}}); len(a.Runs) != 0 {
		t.Errorf("%d runs after the last", len(a.Runs))
	}
	for path, field := range map[string]string{"?q=lr%3C": "q", "?sort=colour": "", "?limit=-1": "limit", "?offset=x": "offset"} {
		w := handlertest.Get(t, h, "/api/runs"+path)
		var out struct {
			Error  string
			Fields map[string]string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 422 || out.Fields[field] == "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := handlertest.Get(t, h, "/api/runs.csv?q=model%3Dhrr&sort=-infom&cols=name,lr,infom,total")
	lines, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || w.Code != 200 || fmt.Sprint(lines[0]) != "[id name lr infom total]" || len(lines) < 20 {
		t.Errorf("%d %v %v", w.Code, err, lines)
	}
	f.Put("formula", model.Finished, 3).Name = "=1+1"
	if w := handlertest.Get(t, h, "/api/runs.csv?run=formula&cols=step"); w.Body.String() != "id,name,step\nformula,'=1+1,3\n" {
		t.Errorf("%s", w.Body)
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs/bulk", `{"do":"tag","tag":"t","q":"model=hrr"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"failed":[]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs/bulk", `{"do":"stop","runs":["formula"]}`); w.Code != 409 || !strings.Contains(w.Body.String(), `"run":"formula"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = handlertest.Send(t, h, "POST", "/api/runs/bulk", `{"do":"star","runs":["gone","formula","gone-too"]}`)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"done":["formula"]`) || strings.Count(body, "it may have been deleted") != 2 || !strings.Contains(body, `"run":"gone-too"`) {
		t.Errorf("unknown runs beside a known one: %d %s", w.Code, body)
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs/bulk", `{"do":"star","runs":["gone"]}`); w.Code != 409 || !strings.Contains(w.Body.String(), `"done":[]`) {
		t.Errorf("unknown runs alone: %d %s", w.Code, w.Body)
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs/bulk", `{"do":"stop","runs":[],"q":""}`); w.Code != 422 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := handlertest.Get(t, h, "/api/runs/fields"); w.Code != 200 || !strings.Contains(w.Body.String(), `"night"`) {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}

	if w := handlertest.Send(t, h, "POST", "/api/runs/formula/evaluate", `{"effort":"quick","now":true}`); w.Code != 202 || !strings.Contains(w.Body.String(), `"state":"queued"`) || !e.asked.Now || e.asked.Effort != model.Quick {
		t.Errorf("%d %s %+v", w.Code, w.Body, e.asked)
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs/formula/evaluate", ""); w.Code != 202 || e.asked.Effort != model.Full {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := handlertest.Get(t, h, "/api/runs/formula/evaluate"); w.Code != 200 || !strings.Contains(w.Body.String(), `"effort":"full"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := handlertest.Send(t, h, "DELETE", "/api/runs/formula/evaluate", ""); w.Code != 202 || !strings.Contains(w.Body.String(), `"state":""`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, body := range []string{`{"effort":"some"}`, `{"efort":"full"}`, `[]`} {
		if w := handlertest.Send(t, h, "POST", "/api/runs/formula/evaluate", body); w.Code != 422 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := handlertest.Get(t, h, "/api/runs/nobody/evaluate"); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	e.err = fmt.Errorf("run formula is being evaluated already: %w", model.ErrConflict)
	if w := handlertest.Send(t, h, "POST", "/api/runs/formula/evaluate", ""); w.Code != 409 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// indexed is a service that lists the runs of an index.
type indexed struct {
	*db.DB
	workbench.Service
}

func (i indexed) Overview(ctx context.Context) ([]model.Overview, error) { return i.Overviews(ctx) }

// BenchmarkList requests the list of SLOTSCOPE_RUNS runs (default 1,000), which it generates; CPU-ms/op is the CPU time of a response.
func BenchmarkList(b *testing.B) {
	runs := 1000
	if text := os.Getenv("SLOTSCOPE_RUNS"); text != "" {
		fmt.Sscan(text, &runs)
	}
	index, err := db.Open(b.Context(), filepath.Join(b.TempDir(), "index.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer index.Close()
	for _, o := range handlertest.Many(runs) {
		points := []model.Point{{Step: 1, Time: time.Unix(1, 0), Values: o.Values}}
		for _, err := range []error{index.SaveRun(b.Context(), o.Run), index.AddPoints(b.Context(), o.ID, points, model.Cursor{Attempt: 1}), index.SaveScores(b.Context(), o.ID, "1", o.Scores)} {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	r := chi.NewRouter()
	workbench.Workbench{Runs: indexed{DB: index}}.Routes(r)
	for name, path := range map[string]string{
		"plain": "/runs", "query": "/runs?q=" + url.QueryEscape("model=hrr lr<1e-3 infom>0.1 -failed") + "&sort=-infom", "groups": "/runs?group=config&sort=-infom", "json": "/api/runs",
	} {
		b.Run(name, func(b *testing.B) {
			before := host.CPU()
			for b.Loop() {
				w := handlertest.Ask(r, "GET", path, "")
				if w.Code != 200 || w.Body.Len() < 10_000 {
					b.Fatal(w.Code, w.Body.Len())
				}
			}
			b.ReportMetric((host.CPU()-before).Seconds()*1000/float64(b.N), "CPU-ms/op")
		})
	}
}
