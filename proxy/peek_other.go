//go:build !unix

package proxy

import (
	"net"
	"time"
)

// alive reports whether an unused connection may carry another request. Without a way to look into the socket it
// listens for a moment.
func alive(c net.Conn) bool { return aliveByDeadline(c) }

// peekWait is how long aliveByDeadline listens.
const peekWait = time.Millisecond
