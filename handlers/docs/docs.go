// Package docs serves the API reference: an OpenAPI 3.1 document generated from the route table and the descriptions in operations.go, and
// an HTML page.
package docs

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	ui "slotscope/views/docs"
)

// API serves the description of every route of the site.
type API struct {
	Version string // of the program

	routes chi.Routes
}

// Routes registers /docs and /openapi.json.
func (h *API) Routes(r chi.Router) {
	h.routes = r
	r.Get("/docs", handlers.Handle(h.page))
	r.Get("/openapi.json", handlers.Handle(h.document))
}

func (h *API) document(w http.ResponseWriter, r *http.Request) error {
	doc, err := h.describe()
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, doc)
}

func (h *API) page(w http.ResponseWriter, r *http.Request) error {
	routes, err := h.table()
	if err != nil {
		return err
	}
	v := ui.DocsView{}
	for _, tag := range tags {
		group := ui.Group{Title: tag}
		for _, o := range operations {
			if o.tag == tag && slices.Contains(routes, route{o.method, o.path}) {
				group.Operations = append(group.Operations, o.view())
			}
		}
		v.Groups = append(v.Groups, group)
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		v.Types = append(v.Types, ui.Type{Name: name, Text: types[name]})
	}
	return handlers.Draw(w, r, ui.Docs(v))
}

// route is a route of the site.
type route struct{ method, path string }

// table returns the site's routes in order, without WebSockets and static files, which OpenAPI does not cover.
func (h *API) table() (all []route, err error) {
	err = chi.Walk(h.routes, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(path, "/ws/") || strings.HasSuffix(path, "/*") || method != http.MethodGet && path == "/metrics" || !slices.Contains(methods, method) {
			return nil
		}
		if path != "/" {
			path = strings.TrimSuffix(path, "/")
		}
		if r := (route{method, path}); !slices.Contains(all, r) {
			all = append(all, r)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b route) int { return strings.Compare(a.path+" "+a.method, b.path+" "+b.method) })
	return all, err
}

// methods are the HTTP methods that routes use and OpenAPI supports.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// describe builds the document: a described operation for every API route, and the paths of the pages without details.
func (h *API) describe() (map[string]any, error) {
	routes, err := h.table()
	if err != nil {
		return nil, err
	}
	paths := map[string]any{}
	for _, r := range routes {
		o := operation{method: r.method, path: r.path, tag: tagPages, about: "An HTML page or form.", kind: "text/html"}
		if i := slices.IndexFunc(operations, func(o operation) bool { return o.method == r.method && o.path == r.path }); i >= 0 {
			o = operations[i]
		}
		at, ok := paths[plain(r.path)].(map[string]any)
		if !ok {
			at = map[string]any{}
			paths[plain(r.path)] = at
		}
		if at[strings.ToLower(r.method)], err = o.document(); err != nil {
			return nil, err
		}
	}
	schemas := map[string]any{}
	for name, text := range types {
		if schemas[name], err = schemaOf(text); err != nil {
			return nil, fmt.Errorf("type %s: %w", name, err)
		}
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Slotscope", "version": h.Version, "summary": "Train, evaluate and explore disentangled representations.", "license": map[string]any{"name": "see LICENSE"}},
		"servers": []any{map[string]any{"url": "/"}},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer", "description": "Only if the server was started with --token."}},
		},
		"security": []any{map[string]any{}, map[string]any{"token": []any{}}},
	}
	for _, o := range operations {
		if !slices.Contains(routes, route{o.method, o.path}) {
			doc["x-missing"] = o.method + " " + o.path // described but not routed; a test fails on it
		}
	}
	return doc, nil
}

// plain converts a chi pattern to an OpenAPI path, without regular expressions.
func plain(path string) string {
	parts := strings.Split(path, "{")
	for i, p := range parts[1:] {
		name, rest, _ := strings.Cut(p, "}")
		name, _, _ = strings.Cut(name, ":")
		parts[i+1] = name + "}" + rest
	}
	return strings.Join(parts, "{")
}

// inPath returns the parameters of a path.
func inPath(path string) (names []string) {
	for _, p := range strings.Split(plain(path), "{")[1:] {
		name, _, _ := strings.Cut(p, "}")
		names = append(names, name)
	}
	return names
}

func (o operation) document() (map[string]any, error) {
	var parameters []any
	for _, name := range inPath(o.path) {
		parameters = append(parameters, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, name := range strings.Fields(o.query) {
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	good := map[string]any{"description": "done"}
	if o.answer != "" || o.kind != "" {
		media := map[string]any{}
		kind := o.kind
		if o.answer != "" {
			schema, err := schemaOf(o.answer)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", o.method, o.path, err)
			}
			kind, media["schema"] = "application/json", schema
		}
		good["content"] = map[string]any{kind: media}
	}
	bad := map[string]any{"description": "the error, as a sentence", "content": map[string]any{"application/json": map[string]any{"schema": reference("Error")}}}
	doc := map[string]any{"summary": o.about, "tags": []any{o.tag}, "responses": map[string]any{fmt.Sprint(o.code()): good, "default": bad}}
	if o.try != "" {
		doc["x-example"] = o.try
	}
	if parameters != nil {
		doc["parameters"] = parameters
	}
	if o.body != "" {
		kind := "application/json"
		if o.form {
			kind = "multipart/form-data"
		}
		schema, err := schemaOf(o.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.method, o.path, err)
		}
		doc["requestBody"] = map[string]any{"content": map[string]any{kind: map[string]any{"schema": schema}}}
	}
	return doc, nil
}

func (o operation) code() int {
	if o.status != 0 {
		return o.status
	}
	return http.StatusOK
}

func (o operation) view() ui.Operation {
	v := ui.Operation{Method: o.method, Path: plain(o.path), About: o.about, Query: strings.Fields(o.query), Body: o.body, Answer: o.answer, Status: o.code(), Try: o.try}
	if o.answer == "" {
		v.Answer = o.kind
	}
	return v
}
