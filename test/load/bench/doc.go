// Command bench measures what benchproxy adds to an engine's answers, beside the engine alone and beside
// net/http/httputil.ReverseProxy, in one run. scripts/bench.sh builds what it needs and starts it.
//
// Engine, proxies and ReverseProxy are processes of their own; the clients are in this one. Every round plays every
// scenario on every target, in an order that turns from round to round, and every figure is the median over rounds with
// its range. What is added is the target's percentile minus that of the direct path in the same round. An event's time
// runs from the engine's own stamp before its write to the client's stamp after the read that brought it.
//
// It judges nothing: it prints the figures, and the budgets beside them.
package main
