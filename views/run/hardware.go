package run

// hardware are the charts of the GPU that the run has, as nvidia-smi tells; none where it has none.
func (v RunView) hardware() []Panel {
	if v.Run.Engine != "xla:cuda" && (v.Run.Engine != "" || v.Run.Config.Engine != "xla:cuda") {
		return nil
	}
	const group = "GPU"
	zero := 0.0
	return []Panel{
		{Group: group, Title: "GPU busy", Unit: "% of time", Series: []string{"gpu/utilization"}, Floor: &zero, About: "Share of time with a kernel running; far below 100 the processor that feeds it is the bottleneck."},
		{Group: group, Title: "GPU memory", Unit: "GiB", Series: []string{"gpu/memory"}, Floor: &zero, About: "In use on the whole GPU, by every process."},
		{Group: group, Title: "GPU temperature", Unit: "°C", Series: []string{"gpu/temperature"}},
		{Group: group, Title: "GPU power", Unit: "W", Series: []string{"gpu/power"}, Floor: &zero},
	}
}
