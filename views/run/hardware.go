package run

// hardware returns the charts of the run's resource use: its process, and its GPU as reported by nvidia-smi.
func (v RunView) hardware() []Panel {
	const group = "Machine"
	zero := 0.0
	process := []Panel{
		{Group: group, Title: "CPU cores busy", Unit: "of the machine's", Series: []string{"process/cpu"}, Floor: &zero, About: "Cores used by the run's process, averaged over five seconds."},
		{Group: group, Title: "Memory", Unit: "GiB", Series: []string{"process/memory"}, Floor: &zero, About: "Used by the run's process."},
	}
	if v.Run.Engine != "xla:cuda" && (v.Run.Engine != "" || v.Run.Config.Engine != "xla:cuda") {
		return process
	}
	return append(process, []Panel{
		{Group: group, Title: "GPU busy", Unit: "% of time", Series: []string{"gpu/utilization"}, Floor: &zero, About: "Share of time with a kernel running; far below 100 means the CPU is the bottleneck."},
		{Group: group, Title: "GPU memory", Unit: "GiB", Series: []string{"gpu/memory"}, Floor: &zero, About: "Total GPU memory in use, by all processes."},
		{Group: group, Title: "GPU temperature", Unit: "°C", Series: []string{"gpu/temperature"}},
		{Group: group, Title: "GPU power", Unit: "W", Series: []string{"gpu/power"}, Floor: &zero},
	}...)
}
