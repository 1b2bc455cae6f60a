package docs

import (
	"fmt"
	"strings"
	"unicode"
)

// schemaOf parses a type in the notation of operations.go and returns its JSON Schema:
//
//	text int number bool any        a value; value is a number, one of the strings NaN, +Inf and -Inf, or null
//	Run                             one of types
//	[Run]                           an array
//	{id: text, runs?: [Run]}        an object with these fields, those with ? optional, and possibly others
//	{*: number}                     an object with any fields of one type
//	text|null                       either type
func schemaOf(text string) (any, error) {
	p := &parser{rest: text}
	schema, err := p.either()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("unexpected %q at the end", p.rest)
	}
	return schema, err
}

type parser struct{ rest string }

func (p *parser) next(c byte) bool {
	p.rest = strings.TrimLeft(p.rest, " \n\t")
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) word() string {
	p.rest = strings.TrimLeft(p.rest, " \n\t")
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '*' })
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

func (p *parser) either() (any, error) {
	var all []any
	for {
		one, err := p.one()
		if err != nil {
			return nil, err
		}
		if all = append(all, one); !p.next('|') {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return map[string]any{"anyOf": all}, nil
}

var simple = map[string]any{
	"text": map[string]any{"type": "string"}, "int": map[string]any{"type": "integer"}, "number": map[string]any{"type": "number"}, "bool": map[string]any{"type": "boolean"},
	"null": map[string]any{"type": "null"}, "any": map[string]any{},
	"value": map[string]any{"anyOf": []any{map[string]any{"type": []any{"number", "null"}}, map[string]any{"enum": []any{"NaN", "+Inf", "-Inf"}}}},
}

func reference(name string) any { return map[string]any{"$ref": "#/components/schemas/" + name} }

func (p *parser) one() (any, error) {
	switch {
	case p.next('['):
		items, err := p.either()
		if err == nil && !p.next(']') {
			err = fmt.Errorf("missing ] before %q", p.rest)
		}
		return map[string]any{"type": "array", "items": items}, err
	case p.next('{'):
		return p.object()
	}
	name := p.word()
	if schema, ok := simple[name]; ok {
		return schema, nil
	}
	if _, ok := types[name]; ok {
		return reference(name), nil
	}
	return nil, fmt.Errorf("unknown type %q", name)
}

func (p *parser) object() (any, error) {
	entries, required := map[string]any{}, []any{}
	out := map[string]any{"type": "object"}
	for !p.next('}') {
		name := p.word()
		optional := p.next('?')
		if name == "" {
			return nil, fmt.Errorf("missing name before %q", p.rest)
		}
		var schema any = map[string]any{}
		if p.next(':') {
			var err error
			if schema, err = p.either(); err != nil {
				return nil, err
			}
		}
		switch {
		case name == "*":
			out["additionalProperties"] = schema
		case optional:
			entries[name] = schema
		default:
			entries[name], required = schema, append(required, name)
		}
		p.next(',')
	}
	if len(entries) > 0 {
		out["properties"] = entries
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out, nil
}
