// Package docs renders the API reference.
package docs

// DocsView lists every operation and type of the API.
type DocsView struct {
	Groups []Group
	Types  []Type // used in request and response bodies
}

// Type is a named type and its definition.
type Type struct{ Name, Text string }

// Group is the operations on one kind of resource.
type Group struct {
	Title      string
	Operations []Operation
}

// Operation is one method of one path.
type Operation struct {
	Method, Path, About string
	Query               []string
	Body, Answer        string // types, e.g. {id: text}
	Status              int
	Try                 string // example URL; empty if none
}
