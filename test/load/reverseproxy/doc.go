// Command reverseproxy is net/http/httputil.ReverseProxy as anyone would put it in front of an engine: what `make bench`
// compares benchproxy with. It prints its address on standard output and serves until it is killed.
package main
