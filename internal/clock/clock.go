package clock

import "time"

// Now is the current instant, with its monotonic reading.
func Now() time.Time { return time.Now() }

// Since is the time elapsed since t, on the monotonic clock when t carries a reading of it.
func Since(t time.Time) time.Duration { return time.Since(t) }

// Until is the time left until t, on the monotonic clock when t carries a reading of it.
func Until(t time.Time) time.Duration { return time.Until(t) }

// Origin is the zero of one timeline: a wall instant and the monotonic reading taken with it.
type Origin struct{ t time.Time }

// Start makes the present instant an origin.
func Start() Origin { return Origin{t: time.Now()} }

// At makes t, which must come from Now, an origin.
func At(t time.Time) Origin { return Origin{t: t} }

// NS is the number of nanoseconds since the origin, on the monotonic clock.
func (o Origin) NS() int64 { return int64(time.Since(o.t)) }

// Of places t, which must come from Now, on the origin's monotonic scale.
func (o Origin) Of(t time.Time) int64 { return int64(t.Sub(o.t)) }

// FromUnix places an instant of the wall clock, in Unix nanoseconds, on the origin's monotonic scale. It compares it with
// the wall clock of this very moment, so that a step of the wall clock since the origin does not matter. now is the
// present on the same scale.
func (o Origin) FromUnix(unix int64) (ns, now int64) {
	t := time.Now()
	now = int64(t.Sub(o.t))
	return now - (t.UnixNano() - unix), now
}

// Wall is the origin on the wall clock, in UTC and without a monotonic reading: what may be stored.
func (o Origin) Wall() time.Time { return o.t.UTC().Round(0) }
