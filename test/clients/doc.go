// Package clients holds the tests that the unmodified clients of the field, for Go and with node those of npm, work
// through `benchproxy record`: each gets what it gets from the engine directly, every byte is stored, and every number
// agrees with the truth of the scripted engine behind. It is a module of its own, so that the clients' dependencies stay
// out of the product's. Run it with scripts/clients-test.sh.
package clients
