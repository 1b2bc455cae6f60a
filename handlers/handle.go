// Package handlers holds what the packages of the pages share: how errors are answered, bodies read, files and figures sent.
// Each page is a package below: a struct with what it depends on and a Routes method. A handler reads the request, calls, and
// draws one typed view model; what it returns as an error, Handle answers.
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

// Func is a handler that may fail.
type Func func(w http.ResponseWriter, r *http.Request) error

// Fault is the sentence shown for every error that is not the visitor's; the log has the whole of it.
const Fault = "Internal error. See the server log."

// FaultIn is Fault with the ID under which the log has the request of a context.
func FaultIn(ctx context.Context) string {
	if id := middleware.GetReqID(ctx); id != "" {
		return "Internal error. See the server log for request ID " + id + "."
	}
	return Fault
}

// Handle answers what fn returns: model.Invalid 422 with a sentence per field, model.ErrNotFound 404, model.ErrConflict 409,
// too large a body 413, anything else logged whole and 500 with one fixed sentence. Paths under /api/ and /ws/ get JSON, others a page.
func Handle(fn Func) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fn(w, r); err != nil {
			Fail(w, r, err)
		}
	}
}

// Fail answers err as Handle does.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if r.Context().Err() != nil && p.status == http.StatusInternalServerError {
		return // the visitor left, or the server is closing: nobody reads an answer
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

// ErrorText drops a marker error from the end of a text that says the same in more words: "no page has the address /x: not
// found" reads as "No page has the address /x." What is a mere name keeps it: "x: not found".
func ErrorText(err error) string {
	text := err.Error()
	for _, marker := range []error{model.ErrNotFound, model.ErrConflict} {
		if rest := strings.TrimSuffix(text, ": "+marker.Error()); rest != text && strings.Contains(rest, " ") {
			text = rest
		}
	}
	return Sentence(text)
}

// Sentence gives text a capital and a full stop.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	runes := []rune(text)
	runes[0] = []rune(strings.ToUpper(string(runes[0])))[0]
	text = string(runes)
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}

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
	Request string            `json:"request,omitempty"` // its ID in the log
}

// JSONError answers a request of a program with a sentence.
func JSONError(w http.ResponseWriter, r *http.Request, status int, text string) error {
	return JSON(w, status, apiError{Error: text, Request: middleware.GetReqID(r.Context())})
}

func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/ws/")
}

// JSON answers with v; a value that cannot be encoded is a programming mistake and panics.
func JSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("handlers: encoding %T: %v", v, err))
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the visitor left
	return nil
}

// Draw answers 200 with a page.
func Draw(w http.ResponseWriter, r *http.Request, page templ.Component) error {
	return DrawStatus(w, r, http.StatusOK, page)
}

// DrawStatus answers with a page, drawn whole before its first byte is sent, so that a failure can still be answered.
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

// unchanged marks a page with a hash of its content and answers 304 where the browser has the same one.
func unchanged(w http.ResponseWriter, r *http.Request, page []byte) bool {
	tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(page))[:20] + `"` // weak: what compresses may change the bytes
	w.Header().Set("ETag", tag)
	if !strings.Contains(r.Header.Get("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// ReadJSON reads the body into v, at most limit bytes; unknown keys and anything after the value are errors for the sender.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	if err := model.ReadJSON(http.MaxBytesReader(w, r.Body, limit), v); err != nil {
		return OrTooLarge(err, model.Invalid{"": "the body is not the expected JSON: " + err.Error()})
	}
	return nil
}

// OrTooLarge is err itself where a body was too large, else otherwise.
func OrTooLarge(err, otherwise error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return otherwise
}

// NotFound answers paths that no page has.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Fail(w, r, fmt.Errorf("%s is not a page of this server: %w", r.URL.Path, model.ErrNotFound))
}

// NotAllowed answers a method that a path does not take.
func NotAllowed(w http.ResponseWriter, r *http.Request) {
	answer(w, r, problem{http.StatusMethodNotAllowed, "Not this way", fmt.Sprintf("%s does not take %s.", r.URL.Path, r.Method), nil})
}

// Collect moves the problems of an Invalid into bad; any other error it returns.
func Collect(bad model.Invalid, err error) error {
	var invalid model.Invalid
	if err == nil || !errors.As(err, &invalid) {
		return err
	}
	maps.Copy(bad, invalid)
	return nil
}

// ReadForm parses the body of a form, at most 256 KiB.
func ReadForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 256<<10)
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "" && kind != "application/x-www-form-urlencoded" {
		return model.Invalid{"": fmt.Sprintf("expected a form as application/x-www-form-urlencoded, got %s", kind)}
	}
	if err := r.ParseForm(); err != nil {
		return OrTooLarge(err, model.Invalid{"": "the form could not be read: " + err.Error()})
	}
	return nil
}

// StepsOf reads how far to train in total; empty or 0 is as configured.
func StepsOf(text string) (int, error) {
	text = strings.ReplaceAll(strings.TrimSpace(text), ",", "")
	if text == "" {
		return 0, nil
	}
	steps, err := strconv.Atoi(text)
	if err != nil || steps < 0 || steps > 1e8 {
		return 0, model.Invalid{"steps": fmt.Sprintf("%q is not a number of steps from 0 to 100,000,000", text)}
	}
	return steps, nil
}

// SentenceOf is what a visitor may read of an error.
func SentenceOf(err error) string { return problemOf(err).sentence() }

// sentence is the text of a problem with what is said of its fields.
func (p problem) sentence() string {
	if len(p.fields) == 0 {
		return p.text
	}
	return Sentence(model.Invalid(p.fields).Error())
}

// StatusOf is the HTTP status that an error is answered with.
func StatusOf(err error) int { return problemOf(err).status }
