package report

// Progress is how far the writing of a report, or of one of its files, has come.
type Progress struct {
	File   string  `json:"file"`   // being written
	Number int     `json:"number"` // its place among the files that are written, from 1
	Of     int     `json:"of"`
	Share  float64 `json:"share"` // of its points that are written, 0 to 1; 0 for files without
}

// Begin tells Told that a file is being written.
func (r *Report) Begin(file string, number, of int) {
	r.now = Progress{File: file, Number: number, Of: of}
	r.tell()
}

func (r *Report) tell() {
	if r.Told != nil {
		r.Told(r.now)
	}
}

// steps are those that the runs have taken, of which curves.csv writes every point.
func (r *Report) steps() (n int) {
	for _, e := range r.Runs {
		n += e.Run.Step
	}
	return n
}
