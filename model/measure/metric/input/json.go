package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// maxJSON is the maximum size of a .json file in bytes; larger tables need NumPy files.
const maxJSON = 1 << 30

// cell is one number of a row.
type cell float64

func (c *cell) UnmarshalJSON(b []byte) error {
	v, err := cellOf(string(b))
	*c = cell(v)
	return err
}

// cellOf parses a cell. It rejects integers too large for float64 to tell apart, because distinct classes would merge.
func cellOf(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "-+.eE0123456789") != "" {
		if strings.HasPrefix(text, `"`) {
			return 0, fmt.Errorf("%s is not a number; encode each value as a number", shorten(text))
		}
		return 0, fmt.Errorf("%s is not a number", shorten(text))
	}
	if math.Abs(v) >= told && !strings.ContainsAny(text, ".eE") {
		return 0, fmt.Errorf("%s is too large: integers ≥ %d lose precision as float64", shorten(text), int64(told))
	}
	return v, nil
}

func shorten(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

func readJSON(path string) (raw, error) {
	file, err := os.Open(path)
	if err != nil {
		return raw{}, fmt.Errorf("reading a table: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxJSON {
		return raw{}, fmt.Errorf("%s has %d bytes (limit %d); save larger tables as .npz", path, info.Size(), maxJSON)
	}
	r, err := parseJSON(file)
	if err != nil {
		return raw{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func parseJSON(from io.ReadSeeker) (raw, error) {
	var in struct {
		Latents, Factors [][]cell
		Discrete         *bool
		Names            []string `json:"factor_names"`
		extraJSON
	}
	decoder := json.NewDecoder(from)
	if err := decoder.Decode(&in); err != nil {
		return raw{}, within(from, explain(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return raw{}, errors.New("the file has more than one JSON object")
	}
	latents, err := matrixOf("latents", in.Latents)
	if err != nil {
		return raw{}, err
	}
	factors, err := matrixOf("factors", in.Factors)
	return raw{latents: latents, factors: factors, names: in.Names, discrete: in.Discrete, extra: in.extraJSON}, err
}

// explain converts a decoder error into a message about the file's content.
func explain(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON is truncated")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d (%w); JSON has no NaN or Infinity", syntax.Offset, err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("the file is a JSON %s; it must be an object with latents and factors", kind.Value)
	case errors.As(err, &kind) && strings.EqualFold(kind.Field, "discrete"):
		return fmt.Errorf(`"discrete" cannot be a JSON %s; use true or false, or omit it`, kind.Value)
	case errors.As(err, &kind) && strings.HasPrefix(kind.Field, "factor_names"):
		return fmt.Errorf(`"factor_names" cannot be a JSON %s; use a list of strings`, kind.Value)
	case errors.As(err, &kind) && aside(kind.Field):
		return fmt.Errorf("%q cannot be a JSON %s; udr holds models and kl, loss_capacity holds curves of numbers, selections holds lists of column numbers", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%q cannot be a JSON %s; use lists of rows for latents and factors, and lists of numbers for rows", kind.Field, kind.Value)
	}
	return err
}

// aside reports whether a field belongs to the optional content.
func aside(field string) bool {
	field, _, _ = strings.Cut(strings.TrimPrefix(field, "extraJSON."), ".")
	return field == "udr" || field == "loss_capacity" || field == "selections"
}

// within adds the array, row and column of the offending cell to an error.
func within(from io.ReadSeeker, err error) error {
	if _, failed := from.Seek(0, io.SeekStart); failed != nil {
		return err
	}
	w := walk{decoder: json.NewDecoder(from)}
	w.decoder.UseNumber()
	for {
		token, bad := w.decoder.Token()
		switch {
		case errors.Is(bad, io.EOF) || errors.Is(bad, io.ErrUnexpectedEOF):
			return err
		case w.inRow() && (bad != nil || !isCell(token)):
			return fmt.Errorf("%s: row %d, column %d: %w", w.key, w.row, w.column, err)
		case bad != nil:
			return err
		}
		w.pass(token)
	}
}

// isCell reports whether a token is valid inside a row.
func isCell(token json.Token) bool {
	switch t := token.(type) {
	case json.Number:
		_, err := cellOf(t.String())
		return err == nil
	case json.Delim:
		return t == ']'
	}
	return false
}

// walk tracks the position of tokens in the tables of a file.
type walk struct {
	decoder            *json.Decoder
	key                string // of the current value; empty before the first key
	depth, row, column int
}

func (w *walk) inRow() bool {
	return w.depth == 3 && (strings.EqualFold(w.key, "latents") || strings.EqualFold(w.key, "factors"))
}

func (w *walk) pass(token json.Token) {
	switch t, isText := token.(string); {
	case token == json.Delim('{') || token == json.Delim('['):
		w.depth++
		w.column = 0
		if w.depth == 2 {
			w.row = 0
		}
		return
	case token == json.Delim('}') || token == json.Delim(']'):
		w.depth--
	case w.depth == 1 && w.key == "" && isText:
		w.key = t
		return
	}
	switch w.depth {
	case 1:
		w.key = ""
	case 2:
		w.row++
	case 3:
		w.column++
	}
}

func matrixOf(name string, rows [][]cell) (matrix, error) {
	m := matrix{name: name, rows: len(rows)}
	if len(rows) == 0 {
		return m, fmt.Errorf("%q is missing or empty", name)
	}
	m.cols = len(rows[0])
	for r, row := range rows {
		if len(row) != m.cols {
			return m, fmt.Errorf("%s: row %d has %d numbers, row 0 has %d", name, r, len(row), m.cols)
		}
		for _, v := range row {
			m.values = append(m.values, float64(v))
		}
	}
	return m, nil
}
