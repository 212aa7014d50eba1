// Package streaming sets up the standard library's reverse proxy for streams: nothing buffered, nothing decoded, as many
// idle connections to the engine as it likes.
package streaming
