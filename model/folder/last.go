package folder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"

	"slotscope/model"
)

// lastPiece is the number of bytes that LastValues reads at a time, from the end.
const lastPiece = 64 << 10

// LastValues returns the last values of a run's series: those in the last 64 KiB of points, and the named ones from as far back as
// necessary.
func (f *Folder) LastValues(names ...string) (model.Values, error) {
	file, err := f.root.Open(pointsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	values := model.Values{}
	missing := func() bool {
		for _, name := range names {
			if _, there := values[name]; !there {
				return true
			}
		}
		return false
	}
	var rest []byte // start of the line in which the previous piece began
	for first := true; end > 0 && (first || missing()); first = false {
		from := max(0, end-lastPiece)
		piece := make([]byte, end-from, end-from+int64(len(rest)))
		if _, err := file.ReadAt(piece, from); err != nil {
			return values, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
		}
		piece, end = append(piece, rest...), from
		rest = nil
		if from > 0 {
			cut := bytes.IndexByte(piece, '\n') + 1
			rest, piece = piece[:cut], piece[cut:]
			from += int64(cut)
		}
		points, _ := parse(file, piece, from) // damaged lines are reported when points are read for display
		here := model.Values{}
		for _, p := range points {
			maps.Copy(here, p.Values)
		}
		maps.Copy(here, values) // values found closer to the end are newer
		values = here
	}
	return values, nil
}
