// Package peer finds the user who owns the other end of a TCP connection on this machine, from /proc/net/tcp and /proc/net/tcp6.
package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
)

// tables list every TCP socket of this network namespace, IPv4 and IPv6.
var tables = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// unmapped is the ID that Linux shows for users outside the reader's user namespace.
const unmapped = 65534

// Owner returns the user ID of the process at the other end of c. It fails on systems other than Linux, for clients on another machine or
// in another network namespace, and for clients that have closed their socket.
func Owner(c net.Conn) (uid uint32, err error) {
	client, ok := endpoint(c.RemoteAddr())
	server, served := endpoint(c.LocalAddr())
	if !ok || !served {
		return 0, fmt.Errorf("%v is not a TCP connection", c.RemoteAddr())
	}
	uid, err = look(client, server)
	if err == nil && uid == 0 { // a socket closed while its row was written can show root: read again
		uid, err = look(client, server)
	}
	if err == nil && uid == unmapped {
		err = fmt.Errorf("user %d represents every user outside this container", unmapped)
	}
	return uid, err
}

// Known reports whether Owner works on this system. It connects to itself and looks up the owner.
func Known() bool {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return false
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		return false
	}
	defer server.Close()
	uid, err := Owner(server)
	return err == nil && int64(uid) == int64(os.Geteuid())
}

// endpoint converts a TCP address, with IPv4-mapped IPv6 addresses as IPv4.
func endpoint(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	p := tcp.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port()), p.IsValid()
}

func look(client, server netip.AddrPort) (uid uint32, err error) {
	seen := readings.now()
	if uid, ok := seen.owners[ends{client, server}]; ok {
		return uid, nil
	}
	if seen.err != nil {
		return 0, seen.err
	}
	return 0, fmt.Errorf("no socket on this machine connects %v to %v", client, server)
}

// ends are the endpoints of a connection, seen from one end.
type ends struct{ local, remote netip.AddrPort }

// reading is the content of the tables at one moment.
type reading struct {
	ready  chan struct{}
	owners map[ends]uint32
	err    error
}

// reader shares one reading of the tables among concurrent callers. The cost of a reading grows with the number of sockets, and a client
// that opens many sockets at once causes as many calls.
type reader struct {
	mu   sync.Mutex
	next *reading // not started yet
	turn sync.Mutex
}

var readings reader

// now returns a reading that starts after the call.
func (r *reader) now() *reading {
	r.mu.Lock()
	this := r.next
	if this == nil {
		this = &reading{ready: make(chan struct{}), owners: map[ends]uint32{}}
		r.next = this
		go r.read(this)
	}
	r.mu.Unlock()
	<-this.ready
	return this
}

// read reads the tables after the previous reading has ended.
func (r *reader) read(this *reading) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	defer close(this.ready)
	for _, table := range tables {
		f, err := os.Open(table)
		if err != nil {
			this.err = err
			continue
		}
		this.add(f)
		f.Close()
	}
}

// add adds the owners of the open sockets in a table.
func (r *reading) add(table io.Reader) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		if s, ok := parse(lines.Text()); ok && s.open() {
			r.owners[ends{s.local, s.remote}] = s.uid
		}
	}
}

// socket is a row of /proc/net/tcp.
type socket struct {
	local, remote netip.AddrPort
	state         uint8 // see include/net/tcp_states.h
	uid           uint32
	inode         uint64
}

// States in which a process may hold a socket that is or was connected.
const (
	established = 1
	finWait1    = 4
	finWait2    = 5
)

// open reports whether a process still holds the socket. A closed socket has no inode and is shown as owned by root.
func (s socket) open() bool {
	return s.inode != 0 && (s.state == established || s.state == finWait1 || s.state == finWait2)
}

// parse parses a row: "sl: local remote state queues timer retransmits uid timeout inode …", addresses and states in hexadecimal. ok is
// false for the heading and for damaged rows.
func parse(line string) (s socket, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 || !strings.HasSuffix(f[0], ":") {
		return s, false
	}
	var good [2]bool
	s.local, good[0] = parseEndpoint(f[1])
	s.remote, good[1] = parseEndpoint(f[2])
	state, err := strconv.ParseUint(f[3], 16, 8)
	uid, err2 := strconv.ParseUint(f[7], 10, 32)
	inode, err3 := strconv.ParseUint(f[9], 10, 64)
	s.state, s.uid, s.inode = uint8(state), uint32(uid), inode
	return s, good[0] && good[1] && err == nil && err2 == nil && err3 == nil
}

// parseEndpoint parses "0100007F:1F90": 32-bit words of the address in native byte order, then the port.
func parseEndpoint(text string) (netip.AddrPort, bool) {
	address, portText, _ := strings.Cut(text, ":")
	port, err := strconv.ParseUint(portText, 16, 16)
	raw, hexErr := hex.DecodeString(address)
	if err != nil || hexErr != nil || len(portText) != 4 || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), true
}
