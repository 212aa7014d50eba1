// Command stamps measures how far the stamps of reads are off: it plays streams of the scripted engine, which notes the
// moment before each of its writes, while every core is kept busy, and holds the stamps of the kernel and those of the
// reads against these moments. It prints a table and asserts nothing about time; its test holds that kernel stamps are
// used, in order, and never before the write.
//
// Both kinds are taken by the proxy's own upstream client, in rounds that take turns. An event that shares its read with a
// later one has that one's stamp: it counts as merged, and its error is left out. What is printed is an upper bound: an
// engine that loses its core between its note and its write makes an error that is not ours, which is what the maximum
// mostly is.
package main
