package run

// hardware are the charts of what the run takes of its machine: its process, and the GPU that it has, as nvidia-smi tells.
func (v RunView) hardware() []Panel {
	const group = "Machine"
	zero := 0.0
	process := []Panel{
		{Group: group, Title: "Processors busy", Unit: "of the machine's", Series: []string{"process/cpu"}, Floor: &zero, About: "That the run's process kept busy, on average over five seconds."},
		{Group: group, Title: "Memory", Unit: "GiB", Series: []string{"process/memory"}, Floor: &zero, About: "That the run's process holds."},
	}
	if v.Run.Engine != "xla:cuda" && (v.Run.Engine != "" || v.Run.Config.Engine != "xla:cuda") {
		return process
	}
	return append(process, []Panel{
		{Group: group, Title: "GPU busy", Unit: "% of time", Series: []string{"gpu/utilization"}, Floor: &zero, About: "Share of time with a kernel running; far below 100 the processor that feeds it is the bottleneck."},
		{Group: group, Title: "GPU memory", Unit: "GiB", Series: []string{"gpu/memory"}, Floor: &zero, About: "In use on the whole GPU, by every process."},
		{Group: group, Title: "GPU temperature", Unit: "°C", Series: []string{"gpu/temperature"}},
		{Group: group, Title: "GPU power", Unit: "W", Series: []string{"gpu/power"}, Floor: &zero},
	}...)
}
