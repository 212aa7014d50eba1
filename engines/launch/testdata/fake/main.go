// Command fake is an engine for tests of launching. It behaves as its flags say.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"syscall"
	"time"
)

var (
	port     = flag.String("port", "", "to listen on")
	host     = flag.String("host", "127.0.0.1", "to listen on")
	slow     = flag.Duration("slow", 0, "before it listens")
	loading  = flag.Duration("loading", 0, "during which it answers 503")
	die      = flag.Int("die", -1, "exit code, at once")
	crash    = flag.String("crash", "", "signal to end itself by, at once")
	dieAfter = flag.Duration("die-after", 0, "after it said that it is ready")
	deaf     = flag.Bool("deaf", false, "ignore SIGTERM and SIGINT")
	mute     = flag.Bool("mute", false, "accept and never answer")
	flood    = flag.Int("flood", 0, "MB of output at the start")
	say      = flag.String("say", "", "lines to print, separated by |")
	child    = flag.String("child", "", "start a grandchild that sleeps, as again says")
	serve    = flag.String("serve", "", "let a child hold the port instead, as again says")
	linger   = flag.Duration("linger", 0, "of the parent of a daemon, before it ends")
	between  = flag.String("between", "", "be the parent of a daemon or a ghost")
	list     = flag.Bool("list-devices", false, "print devices and exit")
)

func main() {
	flag.Parse()
	if *between != "" {
		daemonize()
		return
	}
	if *list {
		fmt.Println("Available devices:")
		if d := os.Getenv("FAKE_DEVICES"); d != "" {
			fmt.Println("  " + d)
		}
		return
	}
	if *deaf {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	}
	for line := range strings.SplitSeq(*say, "|") {
		fmt.Println(line)
	}
	if *child != "" {
		again(*child, "-deaf", "-slow", "1h", "-linger", linger.String())
	}
	pour(*flood)
	switch {
	case *die >= 0:
		fmt.Fprintln(os.Stderr, "fatal: cannot go on")
		os.Exit(*die)
	case *crash != "":
		end(*crash)
	}
	time.Sleep(*slow)
	if *serve != "" {
		again(*serve, "-port", *port, "-deaf", "-linger", linger.String())
		select {}
	}
	run()
}

// again starts this program once more: in the group, in a session of its own, as a daemon (in a session of its own, with
// an empty environment, of a parent that has ended), or as a ghost, which is a daemon without the output.
func again(where string, args ...string) {
	cmd := exec.Command(os.Args[0], args...)
	if where == "daemon" || where == "ghost" {
		cmd.Args = append([]string{os.Args[0], "-between", where}, args...)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: where == "session"}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println("child", cmd.Process.Pid)
	go func() { _ = cmd.Wait() }()
}

// daemonize is what the parent of a daemon does.
func daemonize() {
	cmd := exec.Command(os.Args[0], os.Args[3:]...)
	cmd.Env = []string{"A=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if *between == "daemon" {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	time.Sleep(*linger)
}

func end(name string) {
	panic(syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + name + " $$"}, os.Environ()))
}

// pour prints megabytes in lines.
func pour(mb int) {
	line := strings.Repeat("load_tensors: layer 17 assigned to device ", 3) + "\n"
	block := strings.Repeat(line, 1<<20/len(line))
	for range mb {
		os.Stdout.WriteString(block)
	}
}

func run() {
	ln, err := net.Listen("tcp", net.JoinHostPort(*host, *port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bind:", err)
		os.Exit(1)
	}
	if *mute {
		for {
			if _, err := ln.Accept(); err != nil {
				return
			}
		}
	}
	began := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(began) < *loading {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if *dieAfter > 0 {
			time.AfterFunc(*dieAfter, func() { os.Exit(3) })
		}
		fmt.Fprintf(w, `{"status":"ok"}`)
	})
	mux.HandleFunc("GET /env", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, os.Getenv(r.URL.Query().Get("name"))) })
	fmt.Println("listening on", ln.Addr())
	_ = http.Serve(ln, mux)
}
