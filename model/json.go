package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// ReadJSON decodes the single JSON value in r into v. Unknown keys, a top-level null and text after the value are errors. Errors of
// encoding/json are wrapped by JSONFault.
func ReadJSON(r io.Reader, v any) error {
	var raw json.RawMessage
	d := json.NewDecoder(r)
	if err := d.Decode(&raw); err != nil {
		return JSONFault(err)
	}
	var syntax *json.SyntaxError
	switch _, err := d.Token(); {
	case err == nil || errors.As(err, &syntax):
		return errors.New("text follows the JSON value")
	case !errors.Is(err, io.EOF):
		return JSONFault(err)
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return fmt.Errorf("it is null; expected %s", wanted(reflect.TypeOf(v).Elem()))
	}
	d = json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		wrong.Field = keyPath(reflect.TypeOf(v), strings.Split(wrong.Field, "."))
	}
	if err != nil {
		return JSONFault(err)
	}
	return nil
}

// keyPath returns the path to a fault in JSON keys only; encoding/json also includes the names of embedded structs.
func keyPath(t reflect.Type, path []string) string {
	var keys []string
	for _, name := range path {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
			t = t.Elem()
		}
		field, found := reflect.StructField{}, false
		if t.Kind() == reflect.Struct {
			field, found = t.FieldByName(name)
		}
		if found && field.Anonymous && field.Tag.Get("json") == "" {
			t = field.Type
			continue
		}
		keys = append(keys, name)
		if t.Kind() == reflect.Struct {
			t = typeOfKey(t, name)
		}
	}
	return strings.Join(keys, ".")
}

// typeOfKey returns the type of the struct field with a JSON key; string, which is not a struct, if there is none.
func typeOfKey(t reflect.Type, key string) reflect.Type {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key || name == "" && f.Name == key {
			return f.Type
		}
	}
	return reflect.TypeFor[string]()
}

// jsonFault is an encoding/json error reworded for the author of the JSON.
type jsonFault struct {
	said string
	error
}

func (f jsonFault) Error() string { return f.said }
func (f jsonFault) Unwrap() error { return f.error }

// JSONFault rewords an encoding/json error without this program's Go types; the result wraps err.
func JSONFault(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	said := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.As(err, &wrong):
		said = fmt.Sprintf("%s is a JSON %s; expected %s", cmp.Or(wrong.Field, "it"), wrong.Value, wanted(wrong.Type))
	case errors.Is(err, io.ErrUnexpectedEOF):
		said = "its JSON is truncated"
	case errors.Is(err, io.EOF):
		said = "it is empty"
	case errors.As(err, &syntax):
		said = fmt.Sprintf("%s, at byte %d", said, syntax.Offset)
	}
	return jsonFault{said, err}
}

// wanted returns the JSON type that a Go type is decoded from, in words.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number of at most 18 digits"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}
