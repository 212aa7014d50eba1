package launch

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/redact"
)

// processes are the ids of all processes that can be seen.
func processes() []int {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil { // the pattern is right
		return nil
	}
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(filepath.Base(n)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// readProcess reads what the kernel says about a process. ok is false when there is none.
func readProcess(pid int) (p process, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	open, shut := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')') // the name may hold blanks and parentheses
	if open < 0 || shut < open {
		return p, false
	}
	fields := strings.Fields(string(raw[shut+1:]))
	if len(fields) < 22 {
		return p, false
	}
	p = process{pid: pid, name: string(raw[open+1 : shut]), start: fields[19], dead: fields[0] == "Z" || fields[0] == "X"}
	p.parent, _ = strconv.Atoi(fields[1]) // the kernel writes numbers
	p.pgrp, _ = strconv.Atoi(fields[2])
	return p, true
}

// startOf is what tells a process from a later one of the same number.
func startOf(pid int) (string, bool) {
	p, ok := readProcess(pid)
	return p.start, ok && !p.dead
}

// carries reports whether the environment of a process has our marker.
func carries(pid int, marker string) bool {
	if marker == "" {
		return false
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(env), "\x00"), markerName+"="+marker)
}

// commandOf is the command line of a process, secrets masked, or the name of it when it has none.
func commandOf(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && len(bytes.Trim(raw, "\x00")) > 0 {
		return shellLine(redact.Args(strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")))
	}
	p, _ := readProcess(pid)
	return p.name
}

// portOwner finds the process that listens on a port. known is false when the kernel tells nothing.
func portOwner(host string, port int) (o owner, known bool) {
	var inodes []string
	uid, read := "", false
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue // no such protocol
		}
		read = true
		for _, l := range listeners(raw, host, port) {
			inodes, uid = append(inodes, l.inode), l.uid
		}
	}
	if len(inodes) == 0 {
		return o, read
	}
	for _, pid := range processes() {
		if holds(pid, inodes) {
			return owner{pid: pid, command: commandOf(pid)}, true
		}
	}
	if u, err := user.LookupId(uid); err == nil {
		uid = u.Username
	}
	return owner{user: uid}, true
}

// listener is a line of the kernel's table of connections.
type listener struct{ inode, uid string }

// listeners are those of a table that would get a connection to host and port.
func listeners(table []byte, host string, port int) []listener {
	var out []listener
	sc := bufio.NewScanner(bytes.NewReader(table))
	sc.Scan() // names of the columns
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 10 || f[3] != "0A" { // 0A is listening
			continue
		}
		addr, at, ok := tableAddress(f[1])
		if ok && at == port && reaches(addr, host) {
			out = append(out, listener{inode: f[9], uid: f[7]})
		}
	}
	return out
}

// tableAddress reads "0100007F:1388": the address in groups of four bytes, the last byte first, and the port.
func tableAddress(s string) (addr netip.Addr, port int, ok bool) {
	a, p, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(a)
	n, err2 := strconv.ParseUint(p, 16, 16)
	if err != nil || err2 != nil || len(raw)%4 != 0 {
		return addr, 0, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	addr, ok = netip.AddrFromSlice(raw)
	return addr.Unmap(), int(n), ok
}

// reaches reports whether a connection to host can arrive at a socket bound to addr. A host that is a name can be anything.
func reaches(addr netip.Addr, host string) bool {
	want, err := netip.ParseAddr(host)
	return err != nil || addr.IsUnspecified() || want.IsUnspecified() || addr == want.Unmap()
}

// holds reports whether a process has one of the sockets open.
func holds(pid int, inodes []string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false // somebody else's, or gone
	}
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok && slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			return true
		}
	}
	return false
}

// residentBytes is the memory of a process that is in RAM, without what it shares with others where that is told.
func residentBytes(pid int) (int64, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(raw))
	if len(f) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
