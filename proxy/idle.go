package proxy

// Idle reports whether no exchange runs, and gives a channel that is closed when that changes: as soon as an exchange
// begins, or as soon as the last one was sealed. Nothing waits for those who wait on it: an exchange closes the channel and
// goes on.
func (s *Session) Idle() (idle bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turned == nil {
		s.turned = make(chan struct{})
	}
	return len(s.running) == 0, s.turned
}

// turn tells those who asked Idle that its answer is another now; mu is held.
func (s *Session) turn() {
	if s.turned != nil {
		close(s.turned)
		s.turned = nil
	}
}
