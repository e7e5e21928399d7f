// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package escape

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func (t Target) processes() []attempt {
	var attempts []attempt
	for _, name := range []string{"mem", "environ", "maps", "cmdline", "status", "stat", "auxv", "mountinfo"} {
		attempts = append(attempts, each("read /proc/PID/"+name+" of", t.Processes, func(pid int) error {
			return read(fmt.Sprintf("/proc/%d/%s", pid, name))
		})...)
	}
	for _, name := range []string{"", "fd", "task", "cwd", "root"} {
		attempts = append(attempts, each("list /proc/PID/"+name+" of", t.Processes, func(pid int) error {
			_, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, name))
			return err
		})...)
	}
	attempts = append(attempts, slices.Concat(
		each("trace", t.Processes, func(pid int) error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			return unix.PtraceSeize(pid)
		}),
		each("read the memory of", t.Processes, func(pid int) error {
			b := make([]byte, 8)
			local := []unix.Iovec{{Base: &b[0], Len: 8}}
			_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}, 0)
			return err
		}),
		each("write into the memory of", t.Processes, func(pid int) error {
			b := make([]byte, 8)
			local := []unix.Iovec{{Base: &b[0], Len: 8}}
			_, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: 8, Len: 8}}, 0)
			return err
		}),
		each("compare with", t.Processes, func(pid int) error {
			_, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), kcmpVM, 0, 0, 0)
			return nilOf(errno)
		}),
		each("take a descriptor of", t.Processes, func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.PidfdGetfd(fd, 1, 0)
			return err
		}),
		[]attempt{{"list all processes", func() error { _, err := os.ReadDir("/proc"); return err }}},
	)...)
	if t.Signals {
		attempts = append(attempts, each("signal", t.Processes, func(pid int) error { return unix.Kill(pid, unix.SIGCONT) })...)
		attempts = append(attempts, each("signal the group of", t.Processes, func(pid int) error {
			group, err := unix.Getpgid(pid)
			if err != nil {
				return err
			}
			if err = unix.Kill(-group, unix.SIGCONT); group == 1 && errors.Is(err, unix.ESRCH) {
				return unix.EPERM // -1 is everyone that may be signalled but 1 itself: there is no one
			}
			return err
		})...)
		attempts = append(attempts, each("signal by descriptor", t.Processes, func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		})...)
	}
	return attempts
}

// kcmpVM compares address spaces.
const kcmpVM = 1

func (t Target) sockets() []attempt {
	dial := func(network string) func(string) error {
		return func(address string) error {
			c, err := net.DialTimeout(network, address, time.Minute)
			if err == nil {
				c.Close()
			}
			return err
		}
	}
	return slices.Concat(
		each("connect to", t.Ports, dial("tcp")),
		each("send to", t.Ports, dial("udp")),
		each("connect by MPTCP to", t.Ports, func(address string) error { return connect(address, unix.IPPROTO_MPTCP, false) }),
		each("connect by TCP fast open to", t.Ports, func(address string) error { return connect(address, unix.IPPROTO_TCP, true) }),
		each("connect to", t.Sockets, dial("unix")),
		each("connect a pair anew to", t.Sockets, func(path string) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return unix.Connect(pair[0], &unix.SockaddrUnix{Name: path})
		}),
		[]attempt{
			{"listen", func() error {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err == nil {
					l.Close()
				}
				return err
			}},
			{"listen without a port of its own", func() error {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				defer func() { _ = unix.Close(fd) }()
				return unix.Listen(fd, 1)
			}},
			{"talk to the kernel by netlink", func() error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) }},
			{"talk to the hypervisor", func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) }},
			{"use the kernel's ciphers", func() error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET) }},
			{"see packets", func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW) }},
			{"set up io_uring", func() error {
				var params [128]byte
				_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
				return nilOf(errno)
			}},
		},
	)
}

// connect connects a socket of a protocol, or, fast, sends data with which the connection is to be made.
func connect(address string, protocol int, fast bool) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	family, peer := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		family, peer = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if fast {
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, peer)
	}
	return unix.Connect(fd, peer)
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func nilOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// status are lines that /proc/self/status must have.
var status = map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapAmb": "0000000000000000"}

func (t Target) privileges() []attempt {
	return append(t.kernel(), []attempt{
		{"have privileges", func() error {
			b, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return errors.New("not known: " + err.Error())
			}
			for line := range strings.Lines(string(b)) {
				name, value, _ := strings.Cut(line, ":")
				if want, ok := status[name]; ok && strings.TrimSpace(value) != want {
					return fmt.Errorf("%s is %s", name, value)
				}
			}
			return errDenied
		}},
		{"hide from the worker", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		{"become another user", func() error { return unix.Setresuid(65533, 65533, 65533) }},
		{"read keys of the session", func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err }},
		{"use an inherited descriptor", func() error {
			entries, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				return errors.New("not known: " + err.Error())
			}
			for _, e := range entries {
				to, err := os.Readlink("/proc/self/fd/" + e.Name())
				known := strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "anon_inode:") || to == os.DevNull || strings.HasSuffix(to, "/fd") ||
					strings.HasPrefix(to, "/memfd:"+memoryName) || strings.HasPrefix(to, "/sys/fs/cgroup/") && strings.Contains(to, "/cpu.") // opened by the runtime of Go itself
				if err == nil && !known {
					return fmt.Errorf("descriptor %s is %s", e.Name(), to)
				}
			}
			return errDenied
		}},
		{"see the worker's variables", func() error {
			for _, v := range os.Environ() {
				for _, name := range []string{"PLATFORM_SANDBOX=", "PLATFORM_CREDENTIALS=", "PLATFORM_TERMINATION_LOG="} {
					if strings.HasPrefix(v, name) {
						return nil
					}
				}
			}
			return errDenied
		}},
	}...)
}
