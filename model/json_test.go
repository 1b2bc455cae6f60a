package model_test

import (
	"strings"
	"testing"

	"slotscope/model"
)

func TestJSONFaultsAreInWords(t *testing.T) {
	type part struct {
		Seeds []int64 `json:"seeds"`
	}
	for text, want := range map[string]string{
		`{"name": "a", "steps": 3, "parts": [{"seeds": [1]}]}`: "",
		`{"steps": "many"}`:            "steps is a JSON string, where a number belongs",
		`{"parts": {"seeds": []}}`:     "parts is a JSON object, where an array belongs",
		`{"parts": [{"seeds": true}]}`: "parts.seeds is a JSON bool, where an array belongs",
		`[]`:                           "it is a JSON array, where an object belongs",
		`{"colour": 1}`:                `unknown field "colour"`,
		`{"steps": 1`:                  "it ends in the middle of its JSON",
		``:                             "it is empty",
		`{"steps": 1,,}`:               "invalid character ',' looking for beginning of object key string, at byte 13",
		`{"steps": 1} {}`:              "it goes on after its JSON value",
	} {
		var v struct {
			Name  string `json:"name"`
			Steps int    `json:"steps"`
			Parts []part `json:"parts"`
		}
		err := model.ReadJSON(strings.NewReader(text), &v)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
