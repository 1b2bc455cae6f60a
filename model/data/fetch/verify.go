package fetch

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// Differs is an error that says how a file differs from the published one.
type Differs string

func (d Differs) Error() string { return string(d) }

// Verify compares the file at path with its known size and checksum, if any. The error wraps a Differs if the file is not the
// published one.
func Verify(ctx context.Context, path string, w Want, progress Progress) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	if w.Bytes > 0 && stat.Size() != w.Bytes {
		return sizeDiffers(path, stat.Size(), w.Bytes)
	}
	name, want, sum := "SHA-256", w.SHA256, sha256.New()
	if want == "" {
		name, want, sum = "MD5", w.MD5, md5.New()
	}
	if want == "" {
		return nil
	}
	got, err := sumOf(ctx, f, sum, stat.Size(), progress)
	if err != nil {
		return fmt.Errorf("checking %s: %w", path, err)
	}
	if got != want {
		return Differs(fmt.Sprintf("%s is not the published file: its %s is %s, not %s", path, name, got, want))
	}
	return nil
}

func sizeDiffers(path string, got, want int64) Differs {
	if got < want {
		return Differs(fmt.Sprintf("%s has %d bytes, but the published file has %d; the download may be incomplete", path, got, want))
	}
	return Differs(fmt.Sprintf("%s is not the published file: it has %d bytes, not %d", path, got, want))
}

func sumOf(ctx context.Context, r io.Reader, sum hash.Hash, of int64, progress Progress) (string, error) {
	buf := make([]byte, 1<<20)
	for done := int64(0); ; {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := r.Read(buf)
		sum.Write(buf[:n])
		done += int64(n)
		progress(done, of)
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
