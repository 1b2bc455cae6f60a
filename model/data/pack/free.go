package pack

import (
	"os"

	"golang.org/x/sys/unix"
)

// Free is how many bytes the disk of a folder has for this program; known is false where the system does not say.
func Free(dir *os.Root) (bytes int64, known bool) {
	d, err := dir.Open(".")
	if err != nil {
		return 0, false
	}
	defer d.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
