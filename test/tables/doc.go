// Package tables holds the tests that the Parquet tables of `benchproxy store export` are read by readers that share no
// code with their writer: arrow-go, and DuckDB, whose queries come to the numbers of the store. It is a module of its own,
// so that these readers' dependencies, and the C++ of DuckDB, stay out of the product's. Run it with scripts/tables-test.sh.
package tables
