package host

import (
	"fmt"
	"os"
)

// running is a link to the running program on Linux. It leads to the same program after its file was removed or replaced.
const running = "/proc/self/exe"

// Self returns a path from which this process can start the same program again, even if its file was removed or replaced since it was
// started. Other processes must not use the path; see File.
func Self() (string, error) {
	path, kept, err := program()
	if err == nil && !kept {
		path = running
	}
	return path, err
}

// File returns the path of this program's file for other processes. It is an error if the file was removed or replaced.
func File() (string, error) {
	path, kept, err := program()
	if err == nil && !kept {
		return "", fmt.Errorf("the program file %s was removed or replaced since this process was started; start it again from the new file", path)
	}
	return path, err
}

// program returns the path from which this program was started, and whether it still leads to it.
func program() (path string, kept bool, err error) {
	path, err = os.Executable()
	if err != nil {
		return "", false, fmt.Errorf("locate this executable: %w", err)
	}
	self, err := os.Stat(running)
	if err != nil {
		return path, true, nil // not Linux
	}
	file, err := os.Stat(path)
	return path, err == nil && os.SameFile(self, file), nil
}
