package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// ReadJSON reads into v the one JSON value that r holds. Keys that v does not have, and whatever follows the value, are faults; an
// error is what JSONFault makes of it.
func ReadJSON(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return JSONFault(err)
	}
	if d.More() {
		return errors.New("it goes on after its JSON value")
	}
	return nil
}

// jsonFault is an error of encoding/json in words for who wrote the JSON.
type jsonFault struct {
	said string
	error
}

func (f jsonFault) Error() string { return f.said }
func (f jsonFault) Unwrap() error { return f.error }

// JSONFault says what is wrong with JSON, without this program's own types; err stays in the chain.
func JSONFault(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	said := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.As(err, &wrong):
		want := map[reflect.Kind]string{reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "an array", reflect.String: "text", reflect.Bool: "true or false"}[wrong.Type.Kind()]
		said = fmt.Sprintf("%s is a JSON %s, where %s belongs", cmp.Or(wrong.Field, "it"), wrong.Value, cmp.Or(want, "a number"))
	case errors.Is(err, io.ErrUnexpectedEOF):
		said = "it ends in the middle of its JSON"
	case errors.Is(err, io.EOF):
		said = "it is empty"
	case errors.As(err, &syntax):
		said = fmt.Sprintf("%s, at byte %d", said, syntax.Offset)
	}
	return jsonFault{said, err}
}
