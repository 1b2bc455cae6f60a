package views

import (
	"sort"
	"strconv"
)

// ProblemView is what an error page says.
type ProblemView struct {
	Status  string // HTTP status, as in "404"
	Title   string // what happened, in a few words
	Text    string // a sentence
	Fields  []FieldProblem
	Request string // the request's number in the log
}

// FieldProblem is what is wrong with one field.
type FieldProblem struct{ Name, Text string }

// reference is what to quote from the page.
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

// TokenView is the page that asks for the server's token; Wrong says that one was given and is not it.
type TokenView struct{ Wrong bool }
