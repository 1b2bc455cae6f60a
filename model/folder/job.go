package folder

import "slotscope/model"

const jobFile = "job.json"

// Job is how the run's process is had; the zero Job where nobody has said.
func (f *Folder) Job() (model.Job, error) {
	var j model.Job
	err := f.readJSON(jobFile, &j)
	if missing(err) {
		return model.Job{}, nil
	}
	return j, err
}

// SetJob replaces how the run's process is had.
func (f *Folder) SetJob(j model.Job) error { return f.writeJSON(jobFile, j) }
