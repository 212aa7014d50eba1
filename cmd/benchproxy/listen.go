package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"syscall"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// portsToTry is how far a busy default port moves.
const portsToTry = 20

// listen opens addr. A busy port moves on to the next free one unless the user asked for exactly that address; the
// address that came of it is in the listener.
func listen(addr string, explicit bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("listen address %q: %v", addr, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, usagef("listen address %q: the port is not a number from 0 to 65535", addr)
	}
	for i := range uint64(portsToTry) {
		ln, err := net.Listen("tcp", net.JoinHostPort(host, strconv.FormatUint(n+i, 10)))
		if err == nil {
			return ln, nil
		}
		if explicit || n == 0 || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, &exchange.Error{Op: "listen on", Object: addr, Side: exchange.SideProxy, Cause: err,
				Hint: "stop what uses the address, or name another one"}
		}
		if n+i == 65535 {
			break
		}
	}
	return nil, &exchange.Error{Op: "listen on", Object: addr, Side: exchange.SideProxy,
		Cause: fmt.Errorf("this port and the %d after it are in use", portsToTry-1), Hint: "name a free one"}
}

// nextPort is the address one port up, for the next of several listeners.
func nextPort(ln net.Listener) string {
	a := ln.Addr().(*net.TCPAddr)
	return net.JoinHostPort(a.IP.String(), strconv.Itoa(a.Port+1))
}

// leadsTo reports whether requests to the URL target arrive at addr, as far as can be told without asking for a name.
func leadsTo(target string, addr net.Addr) bool {
	u, err := url.Parse(target)
	a, isTCP := addr.(*net.TCPAddr)
	if err != nil || !isTCP || cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]) != strconv.Itoa(a.Port) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	if a.IP.IsLoopback() || a.IP.IsUnspecified() {
		return local
	}
	return a.IP.Equal(ip)
}

// loopback reports whether addr can be reached from this machine only.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
