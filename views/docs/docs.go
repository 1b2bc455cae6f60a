// Package docs draws the description of the API.
package docs

// DocsView is every described operation.
type DocsView struct {
	Groups []Group
	Types  []Type // what bodies and answers are made of
}

// Type is a name and what stands for it.
type Type struct{ Name, Text string }

// Group is the operations on one kind of thing.
type Group struct {
	Title      string
	Operations []Operation
}

// Operation is one method of one path.
type Operation struct {
	Method, Path, About string
	Query               []string
	Body, Answer        string // types, as {id: text}
	Status              int
	Try                 string // an address to look at; empty where there is none
}
