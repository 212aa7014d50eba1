//go:build !linux

package proxy

import "net"

// kernelConn does not exist where the kernel gives no receive stamps.
type kernelConn struct{}

// stamping does nothing there.
type stamping struct{}

func keepStamping() stamping { return stamping{} }

func (s *stamping) end() {}

func stampedByKernel(c net.Conn) (net.Conn, *kernelConn) { return c, nil }

func (k *kernelConn) taken() (unix int64, ok bool) { return 0, false }

func (k *kernelConn) alive() bool { return false }
