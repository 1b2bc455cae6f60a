package compute

// Look says what "auto" would take and why, without opening a GPU, whose memory belongs to runs.
func Look() (name, why string, threads int) {
	found := cudaHere()
	if found.missing == "" {
		return "xla:cuda", "An NVIDIA GPU and XLA's plugin for it were found.", 0
	}
	e, err := openCPU(upper(found.missing))
	if err != nil {
		return "none", err.Error(), 0
	}
	return e.Name, e.Why, e.Threads
}
