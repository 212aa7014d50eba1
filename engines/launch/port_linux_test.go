package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestBusyPort(t *testing.T) {
	port, ln := squat(t)
	defer ln.Close()
	me := fmt.Sprintf("pid %d (", os.Getpid())
	t.Run("next", func(t *testing.T) {
		s := fakeSpec(t)
		s.Port, s.Busy = port, engines.BusyNext
		var told []string
		s.Warn = func(text string) { told = append(told, text) }
		p := startFake(t, s)
		waitReady(t, p)
		if p.Port() <= port || p.Port() >= port+portsToTry {
			t.Errorf("port %d after %d", p.Port(), port)
		}
		wantWords(t, strings.Join(told, "\n"), fmt.Sprintf("port %d is in use by %s", port, me))
	})
	t.Run("fail", func(t *testing.T) {
		nothingLeft(t)
		s := fakeSpec(t)
		s.Port, s.Busy = port, engines.BusyFail
		_, err := Start(t.Context(), s)
		var e *exchange.Error
		if !errors.Is(err, ErrPortBusy) || !errors.As(err, &e) || e.Hint == "" {
			t.Fatalf("got %v", err)
		}
		wantWords(t, err.Error(), "the port is in use by "+me)
	})
}

// TestSquatterIsNamed holds that an answer of somebody else's is never taken for the engine's, whatever it is.
func TestSquatterIsNamed(t *testing.T) {
	for name, flags := range map[string][]string{"answers 200": nil, "answers 503": {"-loading", "1h"}, "never answers": {"-mute"}} {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			s := fakeSpec(t, "-slow", "1h")
			s.Times.Probe, s.Times.PortFree = 200*time.Millisecond, 200*time.Millisecond
			p := startFake(t, s)
			squatter := exec.Command(fakeEngine, append([]string{"-port", strconv.Itoa(p.Port())}, flags...)...)
			if err := squatter.Start(); err != nil {
				t.Fatal(err)
			}
			st, _ := waitFailed(t, p)
			wantWords(t, st.Reason, fmt.Sprintf("port %d answers, and it belongs to pid %d (%s", p.Port(), squatter.Process.Pid, fakeEngine))
			if err := squatter.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = squatter.Wait() // it was killed
		})
	}
}

// TestPortLostToAnother holds that an engine that could not get its port is told with who has it.
func TestPortLostToAnother(t *testing.T) {
	s := fakeSpec(t, "-slow", "500ms")
	p := startFake(t, s)
	ln, err := net.Listen("tcp", net.JoinHostPort(DefaultHost, strconv.Itoa(p.Port())))
	if err != nil {
		t.Fatal(err)
	}
	st, text := waitFailed(t, p)
	wantWords(t, st.Reason, fmt.Sprintf("pid %d (", os.Getpid()))
	wantWords(t, text, strconv.Itoa(p.Port()))
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPortOwner(t *testing.T) {
	port, ln := squat(t)
	o, known := portOwner(DefaultHost, port)
	if !known || o.pid != os.Getpid() || o.command == "" {
		t.Errorf("owner %+v, %v", o, known)
	}
	if o, _ := portOwner("127.0.0.2", port); o.pid != 0 {
		t.Errorf("of another address: %+v", o)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if o, known := portOwner(DefaultHost, port); !known || o.pid != 0 {
		t.Errorf("of a free port: %+v, %v", o, known)
	}
	all, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if o, _ := portOwner(DefaultHost, all.Addr().(*net.TCPAddr).Port); o.pid != os.Getpid() {
		t.Errorf("of a listener on all addresses: %+v", o)
	}
}

func TestListeners(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0000000000000000 100 0 0 10 0
   1: 00000000:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1388 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 333 1 0000000000000000 100 0 0 10 0
   3: 00000000000000000000000001000000:1388 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 444 1
   4: 0000000000000000FFFF00000100007F:138A 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 555 1
   5: nonsense
`
	for _, c := range []struct {
		host string
		port int
		want []listener
	}{
		{"127.0.0.1", 5000, []listener{{"111", "1000"}}},
		{"127.0.0.1", 5001, []listener{{"222", "0"}}},
		{"::1", 5000, []listener{{"444", "0"}}},
		{"127.0.0.1", 5002, []listener{{"555", "0"}}},
		{"localhost", 5000, []listener{{"111", "1000"}, {"444", "0"}}},
		{"127.0.0.1", 5003, nil},
	} {
		got := listeners([]byte(table), c.host, c.port)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(listener{})); diff != "" {
			t.Errorf("%s:%d (-want +got):\n%s", c.host, c.port, diff)
		}
	}
}

func TestOwnerText(t *testing.T) {
	for want, o := range map[string]owner{
		"pid 7 (x -y)":           {pid: 7, command: "x -y"},
		"pid 7":                  {pid: 7},
		"a process of user root": {user: "root"},
		"a process that cannot be seen from here": {},
	} {
		if o.String() != want {
			t.Errorf("%q is not %q", o, want)
		}
	}
}
