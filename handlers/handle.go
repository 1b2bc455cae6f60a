// Package handlers has the functions that all pages share: error responses, request bodies, files and figures. Each page is a
// subpackage with a struct of its dependencies and a Routes method. A handler reads the request, calls a service and renders one
// typed view model; errors it returns are written by Handle.
package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5/middleware"

	"slotscope/model"
	"slotscope/views"
)

// Func is a handler that may return an error.
type Func func(w http.ResponseWriter, r *http.Request) error

// Fault is the message for internal errors; the log has the details.
const Fault = "Internal error. See the server log."

// FaultIn returns Fault with the request ID of ctx, if any.
func FaultIn(ctx context.Context) string {
	if id := middleware.GetReqID(ctx); id != "" {
		return "Internal error. See the server log for request ID " + id + "."
	}
	return Fault
}

// Handle calls fn and writes the error it returns: model.Invalid as 422 with a sentence per field, model.ErrNotFound as 404,
// model.ErrConflict as 409, http.MaxBytesError as 413. Any other error is logged and written as 500 with a fixed message. Paths under
// /api/ and /ws/ get JSON, others a page.
func Handle(fn Func) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fn(w, r); err != nil {
			Fail(w, r, err)
		}
	}
}

// Fail writes err as Handle does.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if r.Context().Err() != nil && p.status == http.StatusInternalServerError {
		return // the client has gone or the server is closing; no response is needed
	}
	if p.status == http.StatusInternalServerError {
		slog.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	answer(w, r, p)
}

type problem struct {
	status int
	title  string
	text   string
	fields map[string]string
}

func problemOf(err error) problem {
	var invalid model.Invalid
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &invalid):
		return problem{http.StatusUnprocessableEntity, "Some entries are invalid", invalidText(invalid), invalid}
	case errors.Is(err, model.ErrNotFound):
		return problem{http.StatusNotFound, "Not found", ErrorText(err), nil}
	case errors.Is(err, model.ErrConflict):
		return problem{http.StatusConflict, "Conflict", ErrorText(err), nil}
	case errors.As(err, &tooLarge):
		return problem{http.StatusRequestEntityTooLarge, "Too large", fmt.Sprintf("The request is larger than the limit of %d bytes.", tooLarge.Limit), nil}
	}
	return problem{http.StatusInternalServerError, "Internal error", Fault, nil}
}

func invalidText(v model.Invalid) string {
	if whole, ok := v[""]; ok {
		return Sentence(whole)
	}
	return "Some entries are invalid; see the message beside each."
}

// ErrorText returns the text of err as a sentence, without a redundant marker error at its end: "/x is not a page of this server: not
// found" becomes "/x is not a page of this server." A single word keeps the marker: "X: not found."
func ErrorText(err error) string {
	text := err.Error()
	for _, marker := range []error{model.ErrNotFound, model.ErrConflict} {
		if rest := strings.TrimSuffix(text, ": "+marker.Error()); rest != text && strings.Contains(rest, " ") {
			text = rest
		}
	}
	return Sentence(text)
}

// Sentence capitalizes text and adds a full stop.
func Sentence(text string) string { return views.Sentence(text) }

func answer(w http.ResponseWriter, r *http.Request, p problem) {
	if p.status == http.StatusInternalServerError {
		p.text = FaultIn(r.Context())
	}
	if wantsJSON(r) {
		if len(p.fields) > 0 {
			p.text = Sentence(model.Invalid(p.fields).Error())
		}
		JSON(w, p.status, apiError{Error: p.text, Fields: p.fields, Request: middleware.GetReqID(r.Context())})
		return
	}
	view := views.NewProblem(p.status, p.title, p.text, middleware.GetReqID(r.Context()), p.fields)
	if err := DrawStatus(w, r, p.status, views.Problem(view)); err != nil {
		slog.ErrorContext(r.Context(), "drawing an error page", "error", err)
		http.Error(w, p.text, p.status)
	}
}

type apiError struct {
	Error   string            `json:"error"`
	Fields  map[string]string `json:"fields,omitempty"`
	Request string            `json:"request,omitempty"` // request ID in the log
}

// JSONError writes an error message as JSON.
func JSONError(w http.ResponseWriter, r *http.Request, status int, text string) error {
	return JSON(w, status, apiError{Error: text, Request: middleware.GetReqID(r.Context())})
}

func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/ws/")
}

// JSON writes v as JSON. It panics if v cannot be encoded, which is a programming error.
func JSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("handlers: encoding %T: %v", v, err))
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client has gone
	return nil
}

// Draw renders a page with status 200.
func Draw(w http.ResponseWriter, r *http.Request, page templ.Component) error {
	return DrawStatus(w, r, http.StatusOK, page)
}

// DrawStatus renders a page with the given status. It buffers the page so that a rendering error can still be reported.
func DrawStatus(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	var buf bytes.Buffer
	if err := page.Render(r.Context(), &buf); err != nil {
		return fmt.Errorf("drawing %s: %w", r.URL.Path, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "private, no-cache")
	}
	if status == http.StatusOK && unchanged(w, r, buf.Bytes()) {
		return nil
	}
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
	return nil
}

// unchanged sets the ETag to a hash of the page, and writes 304 if the browser has the same page.
func unchanged(w http.ResponseWriter, r *http.Request, page []byte) bool {
	tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(page))[:20] + `"` // weak, because compression may change the bytes
	w.Header().Set("ETag", tag)
	if !strings.Contains(r.Header.Get("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// ReadJSON decodes the body into v, at most limit bytes; unknown keys and trailing data are reported as model.Invalid.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	if err := model.ReadJSON(http.MaxBytesReader(w, r.Body, limit), v); err != nil {
		return OrTooLarge(err, model.Invalid{"": "the body is not the expected JSON: " + err.Error()})
	}
	return nil
}

// OrTooLarge returns err if it is an http.MaxBytesError, and otherwise the second error.
func OrTooLarge(err, otherwise error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return otherwise
}

// NotFound handles unknown paths.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Fail(w, r, fmt.Errorf("%s is not a page of this server: %w", r.URL.Path, model.ErrNotFound))
}

// NotAllowed handles methods that a path does not support.
func NotAllowed(w http.ResponseWriter, r *http.Request) {
	answer(w, r, problem{http.StatusMethodNotAllowed, "Method not allowed", fmt.Sprintf("%s does not support %s.", r.URL.Path, r.Method), nil})
}

// Collect copies the fields of a model.Invalid into bad and returns any other error.
func Collect(bad model.Invalid, err error) error {
	var invalid model.Invalid
	if err == nil || !errors.As(err, &invalid) {
		return err
	}
	maps.Copy(bad, invalid)
	return nil
}

// ReadForm parses a form body of at most 256 KiB.
func ReadForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 256<<10)
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "" && kind != "application/x-www-form-urlencoded" {
		return model.Invalid{"": fmt.Sprintf("expected a form as application/x-www-form-urlencoded, got %s", kind)}
	}
	if err := r.ParseForm(); err != nil {
		return OrTooLarge(err, model.Invalid{"": "cannot read the form: " + err.Error()})
	}
	return nil
}

// StepsOf parses the total number of training steps; empty or 0 means as configured.
func StepsOf(text string) (int, error) {
	text = strings.ReplaceAll(strings.TrimSpace(text), ",", "")
	if text == "" {
		return 0, nil
	}
	steps, err := strconv.Atoi(text)
	if err != nil || steps < 0 || steps > 1e8 {
		return 0, model.Invalid{"steps": fmt.Sprintf("got %q; enter a whole number, at most 100,000,000", text)}
	}
	return steps, nil
}

// SentenceOf returns the message of an error that users may see.
func SentenceOf(err error) string { return problemOf(err).sentence() }

// sentence returns the text of a problem, with the errors of its fields if it has any.
func (p problem) sentence() string {
	if len(p.fields) == 0 {
		return p.text
	}
	return Sentence(model.Invalid(p.fields).Error())
}

// StatusOf returns the HTTP status for an error.
func StatusOf(err error) int { return problemOf(err).status }
