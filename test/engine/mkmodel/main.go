// Command mkmodel writes a tiny random model: mkmodel [-seed N] FILE.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/benchproxy/benchproxy/test/engine/tinymodel"
)

func main() {
	c := tinymodel.Tiny()
	flag.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the weights and the vocabulary")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: mkmodel [-seed N] FILE")
		os.Exit(2)
	}
	if err := write(flag.Arg(0), c); err != nil {
		fmt.Fprintln(os.Stderr, "mkmodel:", err)
		os.Exit(1)
	}
}

func write(path string, c tinymodel.Config) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(tinymodel.Write(f, c), f.Close())
}
