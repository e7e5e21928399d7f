// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package escape

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}

func (t Target) files() []attempt {
	own := func(name string) string { return filepath.Join(t.Work, name) }
	attempts := slices.Concat(
		each("read", t.Secrets, read),
		each("write", t.Secrets, func(path string) error { return open(path, os.O_WRONLY) }),
		each("truncate", t.Secrets, func(path string) error { return os.Truncate(path, 0) }),
		each("truncate by opening", t.Secrets, func(path string) error { return open(path, os.O_RDONLY|os.O_TRUNC) }),
		each("remove", t.Secrets, os.Remove),
		each("hard link", t.Secrets, func(path string) error { return os.Link(path, own("hard")) }),
		each("rename into work", t.Secrets, func(path string) error { return os.Rename(path, own("renamed")) }),
		each("read through a symbolic link", t.Secrets, func(path string) error {
			return errors.Join(os.RemoveAll(own("soft")), os.Symlink(path, own("soft")), read(own("soft")))
		}),
		each("read through a link to its folder", t.Secrets, func(path string) error {
			return errors.Join(os.RemoveAll(own("dir")), os.Symlink(filepath.Dir(path), own("dir")), read(own("dir/"+filepath.Base(path))))
		}),
		each("read by way of /proc/self/root", t.Secrets, func(path string) error { return read("/proc/self/root" + path) }),
		each("open anew from a path descriptor", t.Secrets, reopen),
		each("open by handle", t.Secrets, byHandle),
		each("read after chroot", t.Secrets, chroot),
		each("read by a program in memory", t.Secrets, fromMemory()),
		each("read in a user namespace", t.Secrets, func(path string) error { return inNamespaces(path, "cat", path) }),
		each("bind mount over work", t.Hidden, func(path string) error { return inNamespaces(path, "mount", "--bind", path, t.Work) }),
		each("change the mode of", t.Secrets, func(path string) error { return os.Chmod(path, 0o777) }),
		each("change the mode by a link to", t.Secrets, func(path string) error {
			return errors.Join(os.RemoveAll(own("soft")), os.Symlink(path, own("soft")), os.Chmod(own("soft"), 0o777))
		}),
		each("change the mode by a path descriptor of", t.Secrets, byDescriptor),
		each("change the mode in a race of", t.Secrets, t.race),
		each("change the owner of", t.Secrets, func(path string) error { return os.Chown(path, os.Getuid(), os.Getgid()) }),
		each("change the times of", t.Secrets, func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }),
		each("change an attribute of", t.Secrets, func(path string) error {
			err := unix.Setxattr(path, "user.escaped", []byte("x"), 0)
			if errors.Is(err, unix.EOPNOTSUPP) {
				return errDenied // as on a file system that has none
			}
			return err
		}),
		each("change the mode of the folder", t.Hidden, func(path string) error { return os.Chmod(path, 0o777) }),
		each("list", t.Hidden, func(path string) error { _, err := os.ReadDir(path); return err }),
		each("create in", t.Hidden, func(path string) error { return open(filepath.Join(path, "new"), os.O_CREATE|os.O_WRONLY) }),
		each("watch", t.Hidden, watch),
		each("move work to", t.Hidden, func(path string) error { return os.Rename(t.Work, filepath.Join(path, "moved")) }),
		each("move a file to", t.Hidden, func(path string) error {
			return errors.Join(os.WriteFile(own("mine"), nil, 0o600), os.Rename(own("mine"), filepath.Join(path, "moved")))
		}),
		[]attempt{
			{"read /etc/shadow", func() error { return read("/etc/shadow") }},
			{"write to /usr", func() error { return open("/usr/escaped", os.O_CREATE|os.O_WRONLY) }},
			{"make a file that runs with the rights of its owner", func() error {
				return errors.Join(os.WriteFile(own("owned"), nil, 0o700), unix.Chmod(own("owned"), 0o4755))
			}},
			{"change the mode of /usr", func() error { return os.Chmod("/usr", 0o755) }},
			{"change the mode of /dev/null", func() error { return os.Chmod("/dev/null", 0o666) }},
			{"write to /tmp", func() error { return open("/tmp/escaped", os.O_CREATE|os.O_WRONLY) }},
			{"write to /dev/shm", func() error { return open("/dev/shm/escaped", os.O_CREATE|os.O_WRONLY) }},
			{"set a kernel parameter", func() error { return open("/proc/sys/kernel/core_pattern", os.O_WRONLY) }},
			{"choose the next pid", func() error { return open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY) }},
			{"watch all files", func() error {
				fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID|unix.FAN_CLOEXEC, unix.O_RDONLY)
				if err == nil {
					unix.Close(fd)
				}
				return err
			}},
			{"type into the terminal", typeIn},
			{"make a device", func() error { return unix.Mknod(own("device"), unix.S_IFCHR|0o600, 0x103) }},
		},
	)
	attempts = append(attempts, each("run with the rights of its owner", t.Owned, asOwner)...)
	if t.Later != "" {
		attempts = append(attempts, attempt{"read a file that was made later: " + t.Later, t.later})
	}
	return attempts
}

func open(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

// later waits until the file exists, which a program may observe.
func (t Target) later() error {
	if err := os.WriteFile(filepath.Join(t.Work, "begun"), nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(t.Later); err == nil {
			return read(t.Later)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(10 * time.Millisecond) // the sandbox refuses to let a program watch the folder
	}
}

func reopen(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return read(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// byDescriptor changes the mode of a file that it has open as a path.
func byDescriptor(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o777)
	if err == nil {
		return nil
	}
	return unix.Fchmodat(fd, "", 0o777, unix.AT_EMPTY_PATH)
}

// race changes the mode of a file of its own, whose name is a link to another one at times.
func (t Target) race(path string) error {
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	name, mine, swapped := filepath.Join(t.Work, "swapped"), filepath.Join(t.Work, "race"), filepath.Join(t.Work, "swap")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			_ = errors.Join(os.Symlink([]string{mine, path}[i%2], swapped), os.Rename(swapped, name))
		}
	}()
	for more := true; more; {
		_ = unix.Chmod(name, 0o711)
		select {
		case <-done:
			more = false
		default:
		}
	}
	after, err := os.Stat(path)
	if err == nil && after.Mode() == before.Mode() {
		return errDenied
	}
	return err
}

func byHandle(path string) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return errDenied // not every file system supports it
	}
	mount, err := unix.Open("/usr", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	fd, err := unix.OpenByHandleAt(mount, h, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func chroot(path string) error {
	if err := unix.Chroot(filepath.Dir(path)); err != nil {
		return err
	}
	return read("/" + filepath.Base(path))
}

// watch asks to be told which files others make in a folder.
func watch(dir string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE)
	return err
}

// typeIn puts a character into the input of the terminal from which the server was started, for its shell.
func typeIn() error {
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	switch {
	case err == nil:
		defer tty.Close()
		files = append(files, tty)
	case errors.Is(err, unix.ENXIO): // the process has none
	case !denied(err):
		return err
	}
	for _, f := range files {
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSTI, '\n'); !errors.Is(err, unix.ENOTTY) && !denied(err) {
			return err
		}
	}
	return errDenied
}

// inNamespaces runs a program as root in namespaces of its own.
func inNamespaces(what string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %s", errDenied, what, out)
	}
	return err
}
