package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// childEnv are the variables through which clients find their server, pointed at the proxy at addr (host:port).
func childEnv(base string) []string {
	return []string{
		"OPENAI_BASE_URL=" + base + "/v1",
		"OPENAI_API_BASE=" + base + "/v1",
		"ANTHROPIC_BASE_URL=" + base,
		"OLLAMA_HOST=" + base,
		"GOOGLE_GEMINI_BASE_URL=" + base,
	}
}

// child is the client command that record runs.
type child struct {
	cmd  *exec.Cmd
	done chan error
}

// startChild starts argv with the environment of e and vars over it. The standard streams are ours.
func startChild(e env, argv, vars []string) (*child, error) {
	c := &child{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan error, 1)}
	c.cmd.Env = append(e.Environ(), vars...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = e.Stdin, e.Stdout, e.Stderr
	if err := c.cmd.Start(); err != nil {
		return nil, &exchange.Error{Op: "start client", Object: argv[0], Side: exchange.SideClient, Cause: err,
			Hint: "check the command after \"--\""}
	}
	c.await()
	return c, nil
}

// await starts waiting for the client; Run takes the result.
func (c *child) await() {
	go func() { c.done <- c.cmd.Wait() }()
}

// Run waits for the client and returns its exit code as an error. The first signal is passed on, unless the terminal
// sent it to the client as well; the client then decides when it ends, and a second one ends it at once.
func (c *child) Run(_ context.Context, signals <-chan os.Signal) error {
	killed := false
	for {
		select {
		case err := <-c.done:
			return childResult(err)
		case s := <-signals:
			if killed {
				_ = c.cmd.Process.Kill() // it may have ended by itself
				continue
			}
			killed = true
			if s != os.Interrupt {
				_ = c.cmd.Process.Signal(s) // as above
			}
		}
	}
}

func childResult(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return childExit{code: 128 + int(ws.Signal())}
		}
		return childExit{code: exit.ExitCode()}
	}
	return fmt.Errorf("wait for client: %w", err)
}
