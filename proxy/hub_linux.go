//go:build linux

package proxy

import (
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hub watches all client connections for their peer's close with one epoll instance and one goroutine: no cost per
// request, and pipelined bytes do not hide the close.
type hub struct {
	registry
	epfd int
	wake int // eventfd that ends run
	done sync.WaitGroup

	ctl    sync.Mutex // epoll_ctl, and epfd staying open for it
	closed bool
}

// newHub makes a hub that opens its epoll instance with the first socket: in-memory connections need none.
func newHub() *hub {
	return &hub{registry: registry{conns: map[uint64]*clientConn{}}, epfd: -1}
}

// open makes the epoll instance and starts the watching goroutine; the caller holds ctl.
func (h *hub) open() error {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("create epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epfd)
		return fmt.Errorf("create eventfd: %w", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN} // id 0 is no connection's
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, wake, &ev); err != nil {
		_, _ = unix.Close(epfd), unix.Close(wake)
		return fmt.Errorf("register eventfd: %w", err)
	}
	h.epfd, h.wake = epfd, wake
	h.done.Go(h.run)
	return nil
}

// run hands out events until Close.
func (h *hub) run() {
	events := make([]unix.EpollEvent, 256)
	for {
		n, err := unix.EpollWait(h.epfd, events, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range events[:max(n, 0)] {
			id := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
			if id == 0 {
				return
			}
			if c := h.find(id); c != nil {
				c.lost()
			}
		}
	}
}

// watch registers c once for its whole life; false means that it cannot be watched.
func (h *hub) watch(c *clientConn) bool {
	ev := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(uint32(c.id)), Pad: int32(uint32(c.id >> 32))}
	return h.control(c, unix.EPOLL_CTL_ADD, &ev) == nil
}

// remove ends the watch; the descriptor must still be open.
func (h *hub) remove(c *clientConn) {
	_ = h.control(c, unix.EPOLL_CTL_DEL, nil)
}

func (h *hub) control(c *clientConn, op int, ev *unix.EpollEvent) error {
	rc, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	h.ctl.Lock()
	defer h.ctl.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	if h.epfd < 0 {
		if err := h.open(); err != nil {
			return err
		}
	}
	var opErr error
	if err := rc.Control(func(fd uintptr) { opErr = unix.EpollCtl(h.epfd, op, int(fd), ev) }); err != nil {
		return err
	}
	return opErr
}

// Close ends the watching goroutine.
func (h *hub) Close() error {
	h.ctl.Lock()
	defer h.ctl.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.epfd < 0 {
		return nil
	}
	var one [8]byte
	one[0] = 1
	_, _ = unix.Write(h.wake, one[:])
	h.done.Wait()
	_ = unix.Close(h.wake)
	return unix.Close(h.epfd)
}
