package launch

import (
	"context"

	"github.com/benchproxy/benchproxy/engines"
)

// Server is an engine that can be sent requests: one of our own processes, or one that somebody else runs.
type Server interface {
	// URL is the base URL, without a final slash.
	URL() string
	// Engine is the profile.
	Engine() engines.Profile
	// Status is what is known now. It never waits.
	Status() Status
	// WaitReady returns when the engine can answer requests, or with the reason for which it cannot. The end of ctx ends
	// the wait alone.
	WaitReady(ctx context.Context) error
	// Load makes sure that a model is in memory, as far as the engine can be told to: nil too where the first request
	// loads it. What the engine holds besides is unloaded first where it holds one model at a time.
	Load(ctx context.Context, model string) error
	// Unload frees the memory of a model. An engine without such a call does nothing.
	Unload(ctx context.Context, model string) error
	// Done is closed when the engine has ended for good. It is never closed for one that somebody else runs.
	Done() <-chan struct{}
	// Stop ends a process of ours and waits until nothing is left of it; the end of ctx shortens its grace to nothing.
	// To an engine that somebody else runs it does nothing.
	Stop(ctx context.Context) error
}
