package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/proxy"
)

// probeCapabilities asks the model of each engine that can be reached, one engine after the other. What keeps it from being
// asked is the engine's own error; this one is of the command.
func (p *program) probeCapabilities(c *cli.Context, found []asked) error {
	ups, err := p.probeTargets(c, c.Args().Slice())
	if err != nil {
		return err
	}
	_, tls, err := tlsConfigs(c)
	if err != nil {
		return err
	}
	for i := range found {
		a := &found[i]
		if !a.Reachable {
			continue
		}
		if a.err = askModel(c.Context, a, ups[i], proxy.UpstreamOptions{TLS: tls}, c.String("model")); a.err != nil {
			a.Error = a.err.Error()
		}
		if err := context.Cause(c.Context); err != nil {
			return err
		}
	}
	return nil
}

func askModel(ctx context.Context, a *asked, u upstream, reach proxy.UpstreamOptions, model string) error {
	model, err := engines.PickModel(&a.Deployment, model)
	if err != nil {
		return fmt.Errorf("%s: %w (--model)", a.Name, err)
	}
	var o engines.Options
	if u.credentials != nil {
		o.Headers = u.credentials()
	}
	url, client := probeAddress(u.url, reach)
	send, err := engines.ChatSender(engines.Client(client), url, o)
	if err != nil {
		return err
	}
	found, err := engines.ProbeCapabilities(ctx, model, send)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	a.Capabilities = &found
	return nil
}

// printCapabilities shows what the answers of an engine's model showed.
func printCapabilities(w io.Writer, a asked) {
	if a.Capabilities == nil {
		return
	}
	fmt.Fprintf(w, "\n%s\n", printable(a.Name))
	var rows []namedValue
	a.Capabilities.Each(func(name string, found engines.Capability) {
		word := "not shown"
		if found.Supported != nil {
			word = map[bool]string{true: "yes", false: "no"}[*found.Supported]
		}
		rows = append(rows, namedValue{name, word + ": " + found.Evidence})
	})
	printRows(w, rows)
}
