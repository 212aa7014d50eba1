// Package tables holds the test that the Parquet tables of `benchproxy store export` are read by a reader that shares no
// code with their writer. It is a module of its own, so that this reader's dependencies stay out of the product's. Run it
// with scripts/tables-test.sh.
package tables
