// Package browser holds the pages of benchproxy to their promises in a real Chromium: they follow a stream while it runs,
// nothing recorded runs, loads or steers anything, a run of 100,000 exchanges pages quickly, and the keys work.
//
// Everything runs as a process of its own on loopback. scripts/browser-test.sh builds the program and names it in
// TEST_BENCHPROXY, a store made by mkstore in TEST_STORE, and a directory for pictures of the pages in TEST_PICTURES;
// without them the tests fail.
package browser
