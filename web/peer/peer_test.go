//go:build linux

package peer

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// row formats a socket as the kernel does.
func row(s socket) string {
	return fmt.Sprintf("   0: %s %s %02X 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 0000000000000000 20 4 30 10 -1",
		rowEndpoint(s.local), rowEndpoint(s.remote), s.state, s.uid, s.inode)
}

func rowEndpoint(p netip.AddrPort) string {
	raw := p.Addr().AsSlice()
	var b strings.Builder
	for i := 0; i < len(raw); i += 4 {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(raw[i:]))
	}
	return fmt.Sprintf("%s:%04X", b.String(), p.Port())
}

func TestFind(t *testing.T) {
	client, server := netip.MustParseAddrPort("127.0.0.1:54321"), netip.MustParseAddrPort("127.0.0.1:8080")
	mapped := func(p netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16(p.Addr().As16()), p.Port())
	}
	const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	for _, c := range []struct {
		name string
		row  socket
		ok   bool
	}{
		{"connected", socket{client, server, established, 1000, 77}, true},
		{"half closed", socket{client, server, finWait2, 1000, 77}, true},
		{"as IPv6", socket{mapped(client), mapped(server), established, 1000, 77}, true},
		{"the server's own end", socket{server, client, established, 1000, 77}, false},
		{"another port", socket{netip.MustParseAddrPort("127.0.0.1:54322"), server, established, 1000, 77}, false},
		{"closed by its process", socket{client, server, finWait2, 0, 0}, false},
		{"still connecting", socket{client, server, 2, 1000, 77}, false},
		{"time wait", socket{client, server, 6, 0, 0}, false},
	} {
		r := &reading{owners: map[ends]uint32{}}
		r.add(strings.NewReader(heading + row(c.row) + "\n"))
		uid, ok := r.owners[ends{client, server}]
		if ok != c.ok || ok && uid != 1000 {
			t.Errorf("%s: user %d, %v; want %v", c.name, uid, ok, c.ok)
		}
	}
}

// TestOwner distinguishes connections of this user from those of another user.
func TestOwner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/net/tcp of Linux")
	}
	if !Known() {
		t.Fatal("the owner of this user's own connection is unknown")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connect := func(dial func() (net.Conn, error)) (uid uint32, err error) {
		client, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		return Owner(server)
	}
	dial := func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	if uid, err := connect(dial); err != nil || int(uid) != os.Geteuid() {
		t.Errorf("own connection: user %d, %v", uid, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	const stranger = 12345
	as := func(uid int) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			runtime.LockOSThread() // the file system user, which owns new sockets, is set per thread
			defer runtime.UnlockOSThread()
			syscall.Setfsuid(uid)
			defer syscall.Setfsuid(0)
			return dial()
		}
	}
	if uid, err := connect(as(stranger)); err != nil || uid != stranger {
		t.Errorf("another user's connection: user %d, %v", uid, err)
	}
	if uid, err := connect(as(unmapped)); err == nil {
		t.Errorf("a user outside the container is reported as %d", uid)
	}
}

// TestOwnerOfClosed: a client that closed its socket is unknown, although its row shows root.
func TestOwnerOfClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client.Close()
	if uid, err := Owner(server); err == nil {
		t.Errorf("a closed client is reported as user %d", uid)
	}
}

// FuzzParse: no line crashes the parser, and every accepted row round-trips through the kernel's format.
func FuzzParse(f *testing.F) {
	f.Add("   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 920242 1 00000000d6fea09f 100 0 0 10 0")
	f.Add("   5: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 20 4 30 10 -1")
	f.Add("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode")
	f.Add("1: 0:0 0:0 1 0 0 0 0 0 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, ok := parse(line)
		if !ok {
			return
		}
		if again, ok := parse(row(s)); !ok || again != s {
			t.Errorf("%q is %+v, written again %q it is %+v, %v", line, s, row(s), again, ok)
		}
	})
}
