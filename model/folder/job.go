package folder

import "slotscope/model"

const jobFile = "job.json"

// Job describes how the run's process was started; the zero Job if not recorded.
func (f *Folder) Job() (model.Job, error) {
	var j model.Job
	err := f.readJSON(jobFile, &j)
	if missing(err) {
		return model.Job{}, nil
	}
	return j, err
}

// SetJob replaces the record of how the run's process was started.
func (f *Folder) SetJob(j model.Job) error { return f.writeJSON(jobFile, j) }
