//go:build !linux

package kernel

func useHugePages([]byte) {}
