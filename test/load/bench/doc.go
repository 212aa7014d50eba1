// Command bench measures what benchproxy adds to an engine's answers, beside the engine alone and beside other proxies:
// net/http/httputil.ReverseProxy and, when their programs are named, nginx and haproxy. scripts/bench.sh and
// scripts/bench-peers.sh build or fetch what it needs and start it.
//
// Engine and proxies are processes of their own; the clients are in this one. Every round plays every scenario on every
// target, in an order drawn for the round, and every figure is the median over rounds with its range. What is added is
// the target's percentile minus that of the direct path in the same round. An event's time runs from the engine's own
// stamp before its write to the client's stamp after the read that brought it. Processor time is that of all processes
// of a target, until all it recorded is stored; for benchproxy it holds one or two requests to its admin listener, which
// tell that.
//
// Ratios are of medians, with intervals (ratio.go). A budget is judged only where direct itself was steady (budget.go);
// the verdicts make the exit code with -judge and never otherwise.
package main
