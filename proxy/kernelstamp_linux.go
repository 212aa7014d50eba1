package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelConn is a TCP connection that reads through recvmsg, which tells when the newest segment of a read reached the
// kernel. The stamp does not suffer from the time until a goroutine runs again. One goroutine reads at a time.
type kernelConn struct {
	*net.TCPConn
	rc      syscall.RawConn
	receive func(fd uintptr) bool // made once: a closure per read would be an allocation per read
	look    func(fd uintptr)      // the same, of alive

	silent bool // what look saw
	msg    unix.Msghdr
	iov    unix.Iovec
	oob    [64]byte
	n      int
	errno  syscall.Errno
	at     int64 // stamp of the last read that brought bytes, Unix ns; 0 when the kernel gave none
}

// stamping keeps the kernel stamping. It begins a moment after the first socket of the machine asks for stamps and ends
// with the last: without this the first reads of a connection could have none. It is a socket that receives nothing.
type stamping struct{ fd int }

func keepStamping() stamping {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return stamping{-1} // reads are then stamped as the kernel sees fit, and say how
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	return stamping{fd}
}

// end lets the kernel stop.
func (s *stamping) end() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// stampedByKernel asks the kernel for receive stamps on c. It gives c back, and nil, where there are none to be had.
func stampedByKernel(c net.Conn) (net.Conn, *kernelConn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c, nil
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return c, nil
	}
	var set error
	err = rc.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || set != nil {
		return c, nil
	}
	k := &kernelConn{TCPConn: tcp, rc: rc}
	k.msg.Iov = &k.iov
	k.msg.SetIovlen(1)
	k.receive, k.look = k.recvmsg, k.peek
	return k, k
}

// recvmsg is one attempt to read into the prepared vector; false waits until the socket can be read.
func (k *kernelConn) recvmsg(fd uintptr) bool {
	for {
		k.msg.Control = &k.oob[0]
		k.msg.SetControllen(len(k.oob))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&k.msg)), 0)
		k.n, k.errno = int(n), errno
		if errno != unix.EINTR {
			return errno != unix.EAGAIN
		}
	}
}

// Read reads like TCPConn.Read and keeps the kernel's stamp.
func (k *kernelConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	k.iov.Base = &p[0]
	k.iov.SetLen(len(p))
	err := k.rc.Read(k.receive)
	k.iov.Base = nil // p is the caller's
	switch {
	case err != nil:
		return 0, err
	case k.errno != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: k.LocalAddr(), Addr: k.RemoteAddr(), Err: os.NewSyscallError("recvmsg", k.errno)}
	case k.n == 0:
		return 0, io.EOF
	}
	k.at = k.stamp()
	return k.n, nil
}

// stamp takes the receive stamp from the control message of the last read. There is one kind of message we asked for.
func (k *kernelConn) stamp() int64 {
	const header = unix.SizeofCmsghdr
	if k.msg.Controllen < header+16 {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&k.oob[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	sec := int64(binary.NativeEndian.Uint64(k.oob[header:]))
	nsec := int64(binary.NativeEndian.Uint64(k.oob[header+8:]))
	return sec*1e9 + nsec
}

// taken is the stamp of the last read that brought bytes, Unix ns; ok is false when the kernel gave none.
func (k *kernelConn) taken() (unix int64, ok bool) { return k.at, k.at != 0 }

// alive is the test of an unused connection, see there, without garbage.
func (k *kernelConn) alive() bool {
	return k.rc.Control(k.look) == nil && k.silent
}

func (k *kernelConn) peek(fd uintptr) {
	var b [1]byte
	_, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	k.silent = errno == unix.EAGAIN
}
