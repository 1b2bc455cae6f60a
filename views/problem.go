package views

import (
	"sort"
	"strconv"
)

// ProblemView is the view of an error page.
type ProblemView struct {
	Status  string // HTTP status, e.g. "404"
	Title   string // e.g. "Not found"
	Text    string // a sentence
	Fields  []FieldProblem
	Request string // request ID in the log
}

// FieldProblem is the error of one field.
type FieldProblem struct{ Name, Text string }

// reference returns the status and request ID, for bug reports.
func (p ProblemView) reference() string {
	if p.Request == "" {
		return "Status " + p.Status + "."
	}
	return "Status " + p.Status + ", request " + p.Request + "."
}

// NewProblem builds the view of an error page; fields may be nil.
func NewProblem(status int, title, text, request string, fields map[string]string) ProblemView {
	p := ProblemView{Status: strconv.Itoa(status), Title: title, Text: text, Request: request}
	for name, t := range fields {
		if name != "" {
			p.Fields = append(p.Fields, FieldProblem{name, t})
		}
	}
	sort.Slice(p.Fields, func(i, j int) bool { return p.Fields[i].Name < p.Fields[j].Name })
	return p
}

// TokenView is the token form; Wrong is set after a wrong token.
type TokenView struct{ Wrong bool }
