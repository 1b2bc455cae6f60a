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
	type place struct {
		Slurm []string        `json:"slurm"`
		Set   map[string]part `json:"set"`
	}
	for text, want := range map[string]string{
		`{"name": "a", "steps": 3, "parts": [{"seeds": [1]}]}`: "",
		`{"steps": "many"}`:            "steps is a JSON string; expected a whole number of at most 18 digits",
		`{"steps": 1.5}`:               "steps is a JSON number 1.5; expected a whole number of at most 18 digits",
		`{"rate": 1e999}`:              "rate is a JSON number 1e999; expected a number",
		`{"slurm": "gpus=1"}`:          "slurm is a JSON string; expected an array",
		`{"set": {"a": {"seeds": 5}}}`: "set.seeds is a JSON number; expected an array",
		`{"parts": {"seeds": []}}`:     "parts is a JSON object; expected an array",
		`{"parts": [{"seeds": true}]}`: "parts.seeds is a JSON bool; expected an array",
		`[]`:                           "it is a JSON array; expected an object",
		`{"colour": 1}`:                `unknown field "colour"`,
		`{"steps": 1`:                  "its JSON is truncated",
		``:                             "it is empty",
		`{"steps": 1,,}`:               "invalid character ',' looking for beginning of object key string, at byte 13",
		`{"steps": 1} {}`:              "text follows the JSON value",
		`{"steps": 1}}`:                "text follows the JSON value",
		`{"steps": 1} ]`:               "text follows the JSON value",
		"{\"steps\": 1}\n \n":          "",
		` null `:                       "it is null; expected an object",
	} {
		var v struct {
			Name  string  `json:"name"`
			Steps int     `json:"steps"`
			Parts []part  `json:"parts"`
			Rate  float64 `json:"rate"`
			place
		}
		err := model.ReadJSON(strings.NewReader(text), &v)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
