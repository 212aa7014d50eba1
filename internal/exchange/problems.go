package exchange

import "fmt"

// Problems are the ways in which a sealed exchange contradicts itself: bodies, digests and reads that do not fit
// together, and instants in an order that no clock gives. What is stored must have none.
func Problems(x *Exchange) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for i, b := range []*Body{&x.Request.Body, &x.Response.Body} {
		name := [...]string{"request", "response"}[i]
		kept := Body{Size: b.Kept, Kept: b.Kept, Chunks: b.Chunks}
		held := int64(len(kept.Bytes()))
		switch {
		case held != b.Kept || b.Kept > b.Size:
			add("%s body: %d bytes held, %d kept, %d in all", name, held, b.Kept, b.Size)
		case b.Whole() && kept.Sum() != b.Digest:
			add("%s body does not have its digest", name)
		case !b.Whole() && x.State != StateTruncated:
			add("%s body is cut and the record does not say so", name)
		}
	}
	sum, last := int64(0), int64(0)
	for i, r := range x.Timeline.Reads {
		if r.At < last || r.Size < 0 {
			add("read %d: stamp %d after %d, size %d", i, r.At, last, r.Size)
			break
		}
		sum, last = sum+int64(r.Size), r.At
	}
	if x.State == StateStored && sum != x.Response.Body.Size {
		add("reads sum up to %d bytes, the body has %d", sum, x.Response.Body.Size)
	}
	return append(problems, markProblems(&x.Timeline)...)
}

// markProblems are marks out of order. Only orders that every clock keeps are held: a client may leave, and an engine
// may answer, at any time.
func markProblems(t *Timeline) (problems []string) {
	type named struct {
		name string
		mark Mark
	}
	chains := [][]named{
		{{"accepted", t.Accepted}, {"request_read", t.RequestRead}, {"send_start", t.SendStart}, {"send_done", t.SendDone}},
		{{"upstream_dialed", t.Dialed}, {"send_start", t.SendStart}, {"header_read", t.HeaderRead}},
		{{"first_read", t.FirstRead}, {"last_read", t.LastRead}, {"body_end", t.BodyEnd}},
		{{"accepted", t.Accepted}, {"client_done", t.ClientDone}},
	}
	for _, chain := range chains {
		last, name := int64(0), "the origin"
		for _, m := range chain {
			ns, ok := m.mark.NS()
			if !ok {
				continue
			}
			if ns < last {
				problems = append(problems, fmt.Sprintf("%s is before %s", m.name, name))
			}
			last, name = ns, m.name
		}
	}
	return problems
}
