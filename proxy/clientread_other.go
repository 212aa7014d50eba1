//go:build !unix

package proxy

// requestWait does nothing here: the library waits for a request with a read of one byte.
type requestWait struct{}

func (q *requestWait) firstByte(*clientConn, []byte) (n int, ok bool, err error) {
	return 0, false, nil
}

func (q *requestWait) take([]byte) int { return 0 }
