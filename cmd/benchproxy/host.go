package main

import (
	"github.com/benchproxy/benchproxy/engines/host"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// thisHost is the machine we run on.
func thisHost() exchange.Host { return host.Read("/") }
