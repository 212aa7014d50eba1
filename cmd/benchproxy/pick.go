package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// pickModel is the model that requests to an engine are to name: the one that was asked for, else the one it serves. Where
// it lists several and says of none that it is loaded, a person at a terminal is asked; elsewhere the error, which wraps
// exchange.ErrUsage, lists them.
func (p *program) pickModel(ctx context.Context, d *exchange.Deployment, asked string) (string, error) {
	model, err := engines.PickModel(d, asked)
	if err == nil || len(d.Models) == 0 || !p.interactive() {
		return model, err
	}
	fmt.Fprintln(p.Stderr, "The engine lists several models and does not say which is loaded:")
	for i, name := range d.Models {
		fmt.Fprintf(p.Stderr, "%4d  %s\n", i+1, printable(name))
	}
	for range 3 {
		fmt.Fprintf(p.Stderr, "Which one, by number or name? ")
		line, ok := lineReader{from: p.Stdin, line: make(chan string, 1)}.next(ctx)
		if !ok {
			break
		}
		if model, ok := chosen(d.Models, line); ok {
			return model, nil
		}
	}
	fmt.Fprintln(p.Stderr)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return "", err
}

// chosen is the model that a line names. A name wins over the number it may look like.
func chosen(models []string, line string) (string, bool) {
	line = strings.TrimSpace(line)
	if slices.Contains(models, line) {
		return line, true
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(models) {
		return models[n-1], true
	}
	return "", false
}

// interactive reports whether a person can be asked: input and messages are a terminal.
func (p *program) interactive() bool {
	in, isFile := p.Stdin.(io.Writer)
	if !isFile {
		return false
	}
	_, reads := p.TTY(in)
	_, shows := p.TTY(p.Stderr)
	return reads && shows
}

// lineReader reads one line. A terminal cannot be told to give up a read: one that nobody waits for any more ends with
// the process.
type lineReader struct {
	from io.Reader
	line chan string // closed at the end of the input
}

// next is the next line of the input; ok is false at its end and when ctx ends first.
func (r lineReader) next(ctx context.Context) (line string, ok bool) {
	go r.Run()
	select {
	case line, ok = <-r.line:
	case <-ctx.Done():
	}
	return line, ok
}

// Run reads byte by byte, so that what follows the line is left for the next reader.
func (r lineReader) Run() {
	defer close(r.line)
	line, err := bufio.NewReaderSize(oneByte{r.from}, 16).ReadString('\n')
	if err == nil || line != "" {
		r.line <- line
	}
}

// oneByte gives a byte a read.
type oneByte struct{ io.Reader }

// Read reads at most one byte.
func (o oneByte) Read(b []byte) (int, error) { return o.Reader.Read(b[:min(1, len(b))]) }
