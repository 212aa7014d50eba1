package sim

import (
	"compress/gzip"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// stepWriter collects what the compressor writes for one step.
type stepWriter struct{ buf []byte }

func (w *stepWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}

// take is what came since the last call.
func (w *stepWriter) take() []byte {
	b := w.buf
	w.buf = nil
	return b
}

// compress gzips the body, flushed after each step so that every event can be read when it arrives.
func (s *Script) compress() {
	var out stepWriter
	z := gzip.NewWriter(&out)
	steps := make([]Step, len(s.Steps))
	for i, st := range s.Steps {
		// Writing to memory cannot fail.
		_, _ = z.Write(st.Data)
		_ = z.Flush()
		if i == len(s.Steps)-1 {
			_ = z.Close()
		}
		st.Data = out.take()
		steps[i] = st
	}
	s.Steps = steps
	s.Headers = append(s.Headers[:len(s.Headers):len(s.Headers)], exchange.Header{Name: "Content-Encoding", Value: "gzip"})
}
