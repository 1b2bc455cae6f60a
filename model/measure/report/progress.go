package report

// Progress is the progress of writing a report or one of its files.
type Progress struct {
	File   string  `json:"file"`   // name of the file being written
	Number int     `json:"number"` // 1-based index of the file
	Of     int     `json:"of"`
	Share  float64 `json:"share"` // fraction of points written, 0 to 1; 0 for files without points
}

// Begin reports to Told that a file is being written.
func (r *Report) Begin(file string, number, of int) {
	r.now = Progress{File: file, Number: number, Of: of}
	r.tell()
}

func (r *Report) tell() {
	if r.Told != nil {
		r.Told(r.now)
	}
}

// steps is the total number of steps of the runs, whose points curves.csv contains.
func (r *Report) steps() (n int) {
	for _, e := range r.Runs {
		n += e.Run.Step
	}
	return n
}
