// Package load holds benchproxy to its promises under load and under a violent end: a thousand streams at once through
// `record`, and a proxy killed in the middle of two hundred.
//
// Everything runs as a process of its own, built as it is released, on loopback. scripts/load-test.sh builds the program
// and names it in TEST_BENCHPROXY; without it the tests fail. They read /proc, so they run on Linux.
//
// The packages below: rig starts the programs, talks to them and reads what they cost; bench is `make bench`; stamps is
// scripts/bench-stamps.sh; reverseproxy is the proxy that bench compares with.
package load
