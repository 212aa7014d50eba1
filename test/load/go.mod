module github.com/benchproxy/benchproxy/test/load

go 1.26.0

require (
	github.com/benchproxy/benchproxy v0.0.0
	golang.org/x/sys v0.50.0
)

replace github.com/benchproxy/benchproxy => ../..
