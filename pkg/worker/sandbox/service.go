// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Service is a port of this machine's loopback on which a program without Network may serve, for programs that talk with themselves in
// that way.
//
// Landlock's rule for a port has no address, so with it a program could serve the network. Therefore the kernel asks this process about
// the calls bind and listen. The program never binds a socket: for a bind to this address and port it gets this socket in the place of
// its own, which listens already, and listen then has nothing to do. All else is refused.
type Service struct {
	socket *os.File
	port   uint16
	// link is what an entry of /proc says of a descriptor of the socket.
	link string
}

// backlog is how many connections may wait for a program that serves.
const backlog = 128

// NewService takes a free port.
func NewService() (*Service, error) {
	fail := func(err error) (*Service, error) { return nil, fmt.Errorf("a port for a program: %w", err) }
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	s := &Service{socket: os.NewFile(uintptr(fd), "service")}
	if err := s.listen(fd); err != nil {
		s.Close()
		return fail(err)
	}
	return s, nil
}

func (s *Service) listen(fd int) error {
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}); err != nil {
		return err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	s.port = uint16(address.(*unix.SockaddrInet4).Port)
	s.link, err = os.Readlink(descriptor(fd))
	return err
}

var loopback = [4]byte{127, 0, 0, 1}

// Port is the port, at 127.0.0.1.
func (s *Service) Port() uint16 { return s.port }

// Close gives the port up. Programs that have the socket keep it.
func (s *Service) Close() { _ = s.socket.Close() }

// serviceRules let the kernel ask about sockets that are to serve.
func serviceRules() []rule {
	return []rule{{call: unix.SYS_BIND, ask: true}, {call: unix.SYS_LISTEN, ask: true}}
}

// addDescriptor is struct seccomp_notif_addfd.
type addDescriptor struct {
	id                       uint64
	flags, from, to, toFlags uint32
}

// bind answers a call that binds a socket.
func (s *Service) bind(n notification, listener int) error {
	// struct sockaddr_in: the family, the port and the address, in the order of the network
	const size = 8
	var raw [size]byte
	if uint32(n.args[2]) < size {
		return unix.EINVAL
	}
	if err := n.read(n.args[1], raw[:]); err != nil {
		return err
	}
	if binary.NativeEndian.Uint16(raw[:]) != unix.AF_INET || binary.BigEndian.Uint16(raw[2:]) != s.port || [4]byte(raw[4:]) != loopback {
		return unix.EACCES
	}
	conn, err := s.socket.SyscallConn()
	if err != nil {
		return err
	}
	errno := unix.EACCES // the port was given up
	_ = conn.Control(func(fd uintptr) {
		add := addDescriptor{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, from: uint32(fd), to: uint32(n.args[0]), toFlags: unix.O_CLOEXEC}
		errno = ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add)) //nolint:gosec // a struct for the kernel
	})
	if errno != 0 {
		return errno
	}
	return nil
}

// isServing answers a call that makes a socket listen: this one does.
func (s *Service) isServing(n notification) error {
	if link, err := os.Readlink(n.proc(fmt.Sprintf("fd/%d", uint32(n.args[0])))); err != nil || link != s.link {
		return unix.EACCES
	}
	return nil
}
