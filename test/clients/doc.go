// Package clients holds the test that an unmodified client of the field works through `benchproxy record`, with the
// scripted engine behind it whose truth every number is held to. It is a module of its own, so that the client's
// dependencies stay out of the product's. Run it with scripts/clients-test.sh.
package clients
