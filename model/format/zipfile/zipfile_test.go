package zipfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"slotscope/model/expect"
)

// file is a file of an archive.
type file struct {
	name    string
	content string
	method  uint16
	mode    fs.FileMode
}

func packed(t testing.TB, comment string, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: f.method}
		if f.mode != 0 {
			h.SetMode(f.mode)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, f.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.SetComment(comment); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// contents reads every readable file of an archive.
func contents(content []byte) (names []string, files map[string]string, err error) {
	a, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, nil, err
	}
	files = map[string]string{}
	err = a.Files(func(name []byte, e Entry) error {
		names = append(names, string(name))
		if b, err := a.Read(e, 1<<20); err == nil {
			files[string(name)] = string(b)
		}
		return nil
	})
	return names, files, err
}

var some = []file{
	{name: "a/stored.txt", content: "as it is", method: zip.Store},
	{name: "a/deflated.txt", content: strings.Repeat("once more ", 1000), method: zip.Deflate},
	{name: "folder/"},
	{name: "empty", method: zip.Deflate},
	{name: "link", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777},
	{name: "script", content: "true", mode: 0o755},
}

func TestFiles(t *testing.T) {
	want := map[string]string{"a/stored.txt": some[0].content, "a/deflated.txt": some[1].content, "empty": "", "script": "true"}
	for what, content := range map[string][]byte{
		"plain":           packed(t, "", some...),
		"with a comment":  packed(t, "PK\x05\x06 is what its end looks like", some...),
		"after a program": append([]byte("#!/bin/sh\n"), packed(t, "", some...)...),
	} {
		names, files, err := contents(content)
		if err != nil || !maps.Equal(files, want) || !slices.Equal(names, []string{"a/stored.txt", "a/deflated.txt", "empty", "script"}) {
			t.Errorf("%s: %q %v: %v", what, names, files, err)
		}
	}
}

// sixtyFour rewrites the directory of an archive of one file with 64-bit numbers.
func sixtyFour(content []byte) []byte {
	le := binary.LittleEndian
	at := bytes.Index(content, []byte(fileSignature))
	entry, end := bytes.Clone(content[at:len(content)-endLength]), bytes.Clone(content[len(content)-endLength:])
	name := int(le.Uint16(entry[28:]))
	extra := le.AppendUint16(nil, 1)
	extra = le.AppendUint16(extra, 24)
	extra = le.AppendUint64(extra, uint64(le.Uint32(entry[24:])))
	extra = le.AppendUint64(extra, uint64(le.Uint32(entry[20:])))
	extra = le.AppendUint64(extra, uint64(le.Uint32(entry[42:])))
	for _, field := range []int{20, 24, 42} {
		le.PutUint32(entry[field:], 0xffffffff)
	}
	le.PutUint16(entry[30:], uint16(len(extra)))
	entry = append(entry[:fileLength+name], extra...)
	out := append(bytes.Clone(content[:at]), entry...)
	end64 := make([]byte, end64Length)
	copy(end64, end64Signature)
	le.PutUint64(end64[32:], 1)
	le.PutUint64(end64[40:], uint64(len(entry)))
	le.PutUint64(end64[48:], uint64(at))
	locator := make([]byte, locator64Length)
	copy(locator, locator64Signature)
	le.PutUint64(locator[8:], uint64(len(out)))
	le.PutUint32(locator[16:], 1)
	le.PutUint32(end[12:], 0xffffffff)
	le.PutUint32(end[16:], 0xffffffff)
	return slices.Concat(out, end64, locator, end)
}

func Test64Bits(t *testing.T) {
	content := sixtyFour(packed(t, "", some[1]))
	if _, err := zip.NewReader(bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatalf("the test archive is invalid: %v", err)
	}
	_, files, err := contents(content)
	if err != nil || files["a/deflated.txt"] != some[1].content {
		t.Errorf("%v: %v", files, err)
	}
}

// TestManyMore: old programs write the number of files modulo 2¹⁶.
func TestManyMore(t *testing.T) {
	var files []file
	for i := range 65540 {
		files = append(files, file{name: fmt.Sprint(i), content: "x"})
	}
	content := packed(t, "", files...)
	names, _, err := contents(content)
	if err != nil || len(names) != len(files) {
		t.Errorf("%d of %d: %v", len(names), len(files), err)
	}
	at := bytes.LastIndex(content, []byte(end64Signature))
	old := slices.Concat(content[:at], content[len(content)-endLength:])
	le := binary.LittleEndian
	end64, end := content[at:], old[at:]
	le.PutUint16(end[10:], uint16(len(files)&0xffff))
	le.PutUint32(end[12:], uint32(le.Uint64(end64[40:])))
	le.PutUint32(end[16:], uint32(le.Uint64(end64[48:])))
	if names, _, err = contents(old); err != nil || len(names) != len(files) {
		t.Errorf("by an old program: %d of %d: %v", len(names), len(files), err)
	}
}

// TestRefused: files that are not archives, truncated archives and false numbers are errors.
func TestRefused(t *testing.T) {
	whole := packed(t, "", some[1])
	directory := bytes.Index(whole, []byte(fileSignature))
	changed := func(at int, b ...byte) []byte {
		c := bytes.Clone(whole)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		what    string
		content []byte
		says    string
	}{
		{"nothing", nil, "not a zip archive"},
		{"text", []byte("this is a text of more than twenty-two bytes"), "not a zip archive"},
		{"a cut end", whole[:len(whole)-5], "incomplete"},
		{"a directory beyond the file", changed(len(whole)-6, 0xff, 0xff, 0xff, 0x7f), "the directory claims"},
		{"a directory of another number of files", changed(len(whole)-12, 7), "1 of 7 files"},
		{"a damaged directory", changed(directory, 'X'), "0 of 1 files"},
		{"another checksum", changed(directory+16, 1, 2, 3, 4), "checksum"},
		{"a bomb", changed(directory+24, 0, 0, 0xf0, 0), "decompresses from"},
		{"more than is said", changed(directory+24, 5, 0, 0, 0), "more than the 5 bytes"},
		{"less than is said", changed(directory+24, 0xff, 0x3f, 0, 0), "incomplete"},
		{"a file that begins elsewhere", changed(directory+42, 1), "no file at the place"},
		{"a file beyond the archive", changed(directory+20, 0, 0, 0x0f), "truncated before the end"},
		{"another method", changed(directory+10, 12), "bzip2 (not supported"},
		{"a password", changed(directory+8, 1), "encrypted"},
		{"stored, and yet shorter", changed(directory+10, 0), "stored with sizes"},
	} {
		a, err := Open(bytes.NewReader(c.content), int64(len(c.content)))
		if err == nil {
			err = a.Files(func(_ []byte, e Entry) error {
				_, err := a.Read(e, 1<<20)
				return err
			})
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	a, err := Open(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	err = a.Files(func(_ []byte, e Entry) error {
		_, err := a.Read(e, 100)
		return err
	})
	expect.Says(t, err, "10000 bytes", "limit of 100")
}

// TestMemory: the memory for reading a directory does not grow with the number of files.
func TestMemory(t *testing.T) {
	var files []file
	for i := range 30000 {
		files = append(files, file{name: fmt.Sprintf("images/%06d.png", i), content: "x"})
	}
	content := packed(t, "", files...)
	a, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := a.Files(func([]byte, Entry) error { return nil }); err != nil || a.Len() != len(files) {
		t.Fatal(a.Len(), err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("reading a directory of %d files took %d bytes", len(files), grown)
	}
}

// FuzzFiles: no archive makes the reader panic, and it reads the same contents as archive/zip.
func FuzzFiles(f *testing.F) {
	f.Add(packed(f, "", some...))
	f.Add(packed(f, "a comment", some[0]))
	f.Add(sixtyFour(packed(f, "", some[1])))
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := Open(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		others, _ := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		_ = a.Files(func(name []byte, e Entry) error {
			b, err := a.Read(e, 1<<20)
			if err != nil {
				return nil
			}
			if crc32.ChecksumIEEE(b) != e.sum || len(b) != int(e.unpacked) {
				t.Fatalf("%q decompresses to other content", name)
			}
			if others != nil {
				agrees(t, others, string(name), b)
			}
			return nil
		})
	})
}

// agrees checks that archive/zip finds this content under this name, if it reads any.
func agrees(t *testing.T, z *zip.Reader, name string, content []byte) {
	found, readable := false, false
	for _, f := range z.File {
		if f.Name != name {
			continue
		}
		r, err := f.Open()
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(r, 1<<21))
		if err == nil {
			readable = true
			found = found || bytes.Equal(b, content)
		}
	}
	if readable && !found {
		t.Fatalf("%q has other content", name)
	}
}
