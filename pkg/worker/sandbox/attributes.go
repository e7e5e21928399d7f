// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock does not cover the calls that change mode, owner and times of a file, and a filter cannot read the path of a call. So
// the kernel asks this process about them (SECCOMP_RET_USER_NOTIF, see seccomp_unotify(2)), which makes the change itself, on the
// file that it opened and checked: what the program does with its memory meanwhile has no effect.

// change is what a call changes of a file.
type change int

const (
	changeMode change = iota
	changeOwner
	changeTimes
)

// attributeCall is a system call that changes a file. The numbers are indexes of its arguments; absent is one that it lacks.
type attributeCall struct {
	change change
	// dir is the open file itself, or the folder that the path is relative to.
	dir, path int
	// value is the mode, the user, which the group follows, or the address of the times.
	value, flags int
	// link makes the call concern a link instead of its target.
	link bool
	// times is how the times are given.
	times timesFormat
}

// timesFormat is how a call gives the times of access and change.
type timesFormat int

const (
	inNanoseconds  timesFormat = iota // two struct timespec
	inMicroseconds                    // two struct timeval
	inSeconds                         // struct utimbuf
)

const absent = -1

// attributeCalls returns the calls about which the kernel asks.
func attributeCalls() map[uint32]attributeCall {
	calls := olderAttributeCalls()
	maps.Copy(calls, map[uint32]attributeCall{
		unix.SYS_FCHMOD:    {change: changeMode, path: absent, value: 1, flags: absent},
		unix.SYS_FCHMODAT:  {change: changeMode, path: 1, value: 2, flags: absent},
		unix.SYS_FCHMODAT2: {change: changeMode, path: 1, value: 2, flags: 3},
		unix.SYS_FCHOWN:    {change: changeOwner, path: absent, value: 1, flags: absent},
		unix.SYS_FCHOWNAT:  {change: changeOwner, path: 1, value: 2, flags: 4},
		unix.SYS_UTIMENSAT: {change: changeTimes, path: 1, value: 2, flags: 3},
	})
	return calls
}

// attributeRules let the kernel ask about attributeCalls, and refuse attributes with other effects than a file's content as a file
// system without them does: extended ones, some of which are lists of who may access a file, and flags of files.
func attributeRules() []rule {
	var rules []rule
	for call := range attributeCalls() {
		rules = append(rules, rule{call: call, ask: true})
	}
	for _, request := range []uint32{unix.FS_IOC_SETFLAGS, fsIocFSSetXattr, fsIocSetVersion, unix.FS_IOC_ENABLE_VERITY} {
		rules = append(rules, rule{call: unix.SYS_IOCTL, errno: unix.EOPNOTSUPP, when: []condition{{arg: 1, mask: whole, value: request}}})
	}
	// Those of Btrfs, with which a copy of a whole volume can be made from one folder of it. Programs that clone files copy them then.
	rules = append(rules, rule{call: unix.SYS_IOCTL, errno: unix.EOPNOTSUPP, when: []condition{{arg: 1, mask: ioctlType, value: btrfsIoctls}}})
	// A file can get a mode when it is made as well.
	setuid := func(arg int) condition { return condition{arg: arg, mask: unix.S_ISUID, value: unix.S_ISUID} }
	for call, flags := range openCalls() {
		for _, makes := range []uint32{unix.O_CREAT, unix.O_TMPFILE &^ unix.O_DIRECTORY} {
			rules = append(rules, rule{call: call, errno: unix.EPERM, when: []condition{{arg: flags, mask: makes, value: makes}, setuid(flags + 1)}})
		}
	}
	for call, mode := range creations() {
		rules = append(rules, rule{call: call, errno: unix.EPERM, when: []condition{setuid(mode)}})
	}
	rules = append(rules, rule{call: unix.SYS_OPENAT2, errno: unix.ENOSYS}) // its mode is in memory
	return refuse(rules, unix.EOPNOTSUPP,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
	)
}

// Requests to file systems that package unix lacks: FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, and the type of all requests of Btrfs.
const (
	fsIocFSSetXattr = 0x401c5820
	fsIocSetVersion = 0x40087602
	ioctlType       = 0xff00
	btrfsIoctls     = 0x9400
)

// attributes answers the kernel's questions for one program and all that it starts.
type attributes struct {
	calls map[uint32]attributeCall
	// writable are the folders in which the program may change files.
	writable []string
	// service is the port on which the program may serve; nil for none.
	service *Service
}

func newAttributes(grants []grant, service *Service) attributes {
	a := attributes{calls: attributeCalls(), service: service}
	for _, g := range grants {
		if g.write {
			a.writable = append(a.writable, g.path)
		}
	}
	return a
}

// notification is struct seccomp_notif, with the struct seccomp_data of the call.
type notification struct {
	id   uint64
	pid  uint32
	_    uint32
	call int32
	arch uint32
	_    uint64
	args [6]uint64
}

// notificationAnswer is struct seccomp_notif_resp.
type notificationAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve answers questions until no process is left to ask one, and closes the listener.
func (a attributes) serve(listener *os.File) {
	defer func() { _ = listener.Close() }()
	conn, err := listener.SyscallConn()
	if err != nil {
		return
	}
	for more := true; more; {
		// Without a listener, after an error, the calls fail: nothing is allowed because of it.
		if err := conn.Read(func(fd uintptr) bool { return a.next(int(fd), &more) }); err != nil {
			return
		}
	}
}

// next answers one question, if there is one, and returns false if there is none yet. More becomes false if there will be none.
func (a attributes) next(listener int, more *bool) bool {
	ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if _, err := unix.Poll(ready, 0); err != nil {
		return errors.Is(err, unix.EINTR)
	}
	if ready[0].Revents&unix.POLLIN == 0 {
		*more = ready[0].Revents == 0
		return !*more
	}
	n := notification{}
	if ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 { //nolint:gosec // a struct for the kernel
		return true // a signal ended the call
	}
	answer := notificationAnswer{id: n.id}
	valid := func() bool { return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) == 0 } //nolint:gosec // as above
	if err := a.answer(n, listener, valid); err != nil {
		errno := unix.EPERM
		_ = errors.As(err, &errno)
		answer.errno = -int32(errno)
	}
	_ = ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) //nolint:gosec // as above; the process may be gone
	return true
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno
}

// answer does what a call asks for, or returns why not.
func (a attributes) answer(n notification, listener int, valid func() bool) error {
	switch call := uint32(n.call); {
	case a.service != nil && call == unix.SYS_BIND:
		return a.service.bind(n, listener)
	case a.service != nil && call == unix.SYS_LISTEN:
		return a.service.isServing(n)
	}
	return a.perform(n, valid)
}

// perform makes the change that a call is about. Valid reports whether the process that asked still waits, so that its number is
// not that of another by now.
func (a attributes) perform(n notification, valid func() bool) error {
	c, ok := a.calls[uint32(n.call)]
	if !ok {
		return unix.ENOSYS
	}
	times, err := n.times(c)
	if err != nil {
		return err
	}
	fd, err := n.open(c)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !valid() {
		return unix.ESRCH
	}
	var st, program unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Stat(n.proc(""), &program)); err != nil {
		return err
	}
	// As root, this process may change files of all users; the program only those of its own.
	if st.Uid != program.Uid || !a.may(fd, st) {
		return unix.EPERM
	}
	switch opened := descriptor(fd); c.change {
	case changeMode:
		// A file that runs with the rights of the program's user would give them to other users of the machine.
		if mode := uint32(n.args[c.value]) & 0o7777; mode&unix.S_ISUID == 0 || st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return unix.Fchmodat(unix.AT_FDCWD, opened, mode, 0)
		}
		return unix.EPERM
	case changeTimes:
		return unix.UtimesNanoAt(unix.AT_FDCWD, opened, times, 0)
	default: // a program without privileges keeps what it has
		same := func(id uint64, is uint32) bool { return uint32(id) == is || uint32(id) == ^uint32(0) }
		if same(n.args[c.value], st.Uid) && same(n.args[c.value+1], st.Gid) {
			return nil
		}
		return unix.EPERM
	}
}

// times returns the times that a call sets; the present one for both if it gives none.
func (n notification) times(c attributeCall) ([]unix.Timespec, error) {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	if c.change != changeTimes || n.args[c.value] == 0 {
		return []unix.Timespec{now, now}, nil
	}
	const word = 8
	raw := make([]byte, 4*word)
	if c.times == inSeconds {
		raw = raw[:2*word]
	}
	if err := n.read(n.args[c.value], raw); err != nil {
		return nil, err
	}
	at := func(i int) int64 { return int64(binary.NativeEndian.Uint64(raw[i*word:])) }
	switch c.times {
	case inSeconds:
		return []unix.Timespec{{Sec: at(0)}, {Sec: at(1)}}, nil
	case inMicroseconds:
		if at(1) < 0 || at(1) > 999_999 || at(3) < 0 || at(3) > 999_999 {
			return nil, unix.EINVAL
		}
		return []unix.Timespec{{Sec: at(0), Nsec: at(1) * 1000}, {Sec: at(2), Nsec: at(3) * 1000}}, nil
	default:
		return []unix.Timespec{{Sec: at(0), Nsec: at(1)}, {Sec: at(2), Nsec: at(3)}}, nil
	}
}

// may reports whether the program may change an open file: one in its folders, and no device.
func (a attributes) may(fd int, st unix.Stat_t) bool {
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFCHR || kind == unix.S_IFBLK {
		return false
	}
	path, err := os.Readlink(descriptor(fd))
	return err == nil && slices.ContainsFunc(a.writable, func(w string) bool { return within(path, w) })
}

// descriptor is the path of a file that this process has open.
func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// open opens the file of a call as a path only, which needs no right to it and has no effect on it.
func (n notification) open(c attributeCall) (int, error) {
	flags, dir, path := uint64(0), int32(unix.AT_FDCWD), ""
	if c.flags != absent {
		flags = n.args[c.flags]
	}
	if c.dir != absent {
		dir = int32(n.args[c.dir])
	}
	switch {
	case c.path == absent || c.change == changeTimes && c.dir != absent && n.args[c.path] == 0: // the open file itself
	default:
		var err error
		if path, err = n.text(n.args[c.path]); err != nil {
			return 0, err
		}
		if path == "" && flags&unix.AT_EMPTY_PATH == 0 {
			return 0, unix.ENOENT
		}
	}
	if fd, ok := ownDescriptor(path); ok {
		dir, path = fd, ""
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if c.link || flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	if filepath.IsAbs(path) {
		return unix.Openat2(unix.AT_FDCWD, path, &how)
	}
	base := n.proc("cwd")
	if dir != unix.AT_FDCWD {
		base = n.proc(fmt.Sprintf("fd/%d", dir))
	}
	fd, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT) && dir != unix.AT_FDCWD:
		return 0, unix.EBADF
	case err != nil || path == "":
		return fd, err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Openat2(fd, path, &how)
}

// proc returns a path in the entry of the asking thread in /proc.
func (n notification) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", n.pid, name) }

// ownDescriptor returns the open file that a path names through /proc, as C libraries name one. Other paths through such links mean
// files of this process here, so they are not followed.
func ownDescriptor(path string) (int32, bool) {
	for _, dir := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if name, ok := strings.CutPrefix(path, dir); ok {
			fd, err := strconv.ParseInt(name, 10, 32)
			return int32(fd), err == nil && fd >= 0
		}
	}
	return 0, false
}

// text reads a text that ends with a zero byte.
func (n notification) text(address uint64) (string, error) {
	var all []byte
	for len(all) < unix.PathMax {
		at := address + uint64(len(all))
		page := make([]byte, os.Getpagesize()-int(at%uint64(os.Getpagesize()))) // the next page may not be there
		if err := n.read(at, page); err != nil {
			return "", err
		}
		if end := slices.Index(page, 0); end >= 0 {
			return string(append(all, page[:end]...)), nil
		}
		all = append(all, page...)
	}
	return "", unix.ENAMETOOLONG
}

// read reads memory of the process that asks. Filters of container runtimes refuse process_vm_readv, so it is read as a file.
func (n notification) read(address uint64, into []byte) error {
	fd, err := unix.Open(n.proc("mem"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if got, err := unix.Pread(fd, into, int64(address)); err != nil || got < len(into) {
		return unix.EFAULT
	}
	return nil
}
