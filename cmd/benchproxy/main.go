package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// env is everything a command may know of the process around it, so that tests can stand in for it.
type env struct {
	Args    []string // without the program name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Environ func() []string
	Signals <-chan os.Signal // interrupt, terminate and hang-up
	TTY     func(io.Writer) (width int, ok bool)
	Height  func(io.Writer) int // rows of a terminal, 0 where they are not known; nil for that everywhere
	Resumed <-chan os.Signal    // the process goes on after it was stopped; nil where that is not told
}

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup stays in force; else the end of the terminal would leave the run open
		signal.Notify(signals, syscall.SIGHUP)
	}
	code := run(context.Background(), env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Environ: os.Environ, Signals: signals, TTY: terminal, Height: terminalHeight, Resumed: resumptions(),
	})
	os.Exit(code)
}

// terminal reports whether w is a terminal and how many columns it has.
func terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// terminalHeight is how many rows w has, when it is a terminal.
func terminalHeight(w io.Writer) int {
	f, isFile := w.(*os.File)
	if !isFile {
		return 0
	}
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return height
}
