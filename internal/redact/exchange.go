package redact

import (
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Exchange masks every credential of x: request target and head, response head and trailers, interventions, upstream
// URL and cause, and marks it. The proxy calls it once, before the exchange leaves it; what masks again to be sure asks
// for the mark first. Fields are replaced, never written into, so a shallow copy of a sealed exchange can be masked
// without touching the original.
func Exchange(x *exchange.Exchange) {
	x.Masked = true
	x.Request.Target = Target(x.Request.Target)
	x.Request.Head = Head(x.Request.Head)
	x.Request.Headers = Headers(x.Request.Headers)
	x.Response.Head = Head(x.Response.Head)
	x.Response.Headers = Headers(x.Response.Headers)
	x.Response.Trailers = Headers(x.Response.Trailers)
	x.Interventions = Interventions(x.Interventions)
	x.UpstreamURL = URL(x.UpstreamURL)
	if x.Cause != nil {
		if text := Text(x.Cause.Text); text != x.Cause.Text {
			cause := *x.Cause
			cause.Text = text
			x.Cause = &cause
		}
	}
}

// Interventions are list with the old and new values of secret headers and fields masked: a copy when there is one,
// else list itself.
func Interventions(list []exchange.Intervention) []exchange.Intervention {
	out, copied := list, false
	for i, v := range list {
		m := v
		m.From, m.To = interventionValue(v, v.From), interventionValue(v, v.To)
		if m == v {
			continue
		}
		if !copied {
			out, copied = append([]exchange.Intervention(nil), list...), true
		}
		out[i] = m
	}
	return out
}

func interventionValue(v exchange.Intervention, value string) string {
	if strings.HasPrefix(v.Kind, "header_") || secretName(v.Name) {
		return HeaderValue(v.Name, value)
	}
	return Text(value)
}
