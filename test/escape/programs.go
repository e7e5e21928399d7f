// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package escape

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Arguments with which a program that calls Main says whom it runs as, and whether it can read a file.
const (
	asUser = "report-user"
	asked  = "report-read"
)

// helps does what an attempt asks of this program in another process, and reports whether it was asked.
func helps(out io.Writer) bool {
	switch {
	case len(os.Args) == 2 && os.Args[1] == asUser:
		_, _ = fmt.Fprintln(out, os.Geteuid())
	case len(os.Args) == 3 && os.Args[1] == asked:
		_, _ = fmt.Fprintln(out, "read:", read(os.Args[2]))
	default:
		return false
	}
	return true
}

// asOwner executes a program that would run as its owner.
func asOwner(path string) error {
	out, err := exec.Command(path, asUser).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if user := strings.TrimSpace(string(out)); user != fmt.Sprint(os.Geteuid()) {
		return nil
	}
	return errDenied
}

// Owned makes a copy of a program that runs as another user than the one given, and returns its path. Only root can.
func Owned(t testing.TB, program string, uid int) []string {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(program), &fs); err != nil || fs.Flags&unix.ST_NOSUID != 0 {
		t.Fatalf("%s is on a file system that ignores the owners of programs (%v): set TMPDIR", program, err)
	}
	other := 0
	if uid == 0 {
		other = 65534
	}
	content, err := os.ReadFile(program)
	path := program + "-of-another"
	if err := errors.Join(err, os.WriteFile(path, content, 0o755), os.Chown(path, other, other), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// Impossible are the ways that cannot be tried here: by the user who runs the tests, and on kernels that leave them open.
func (t Target) Impossible() []string {
	var ways []string
	if os.Getuid() != 0 {
		ways = append(ways, "run with the rights of its owner")
	}
	if !t.Signals {
		ways = append(ways, "signal", "signal the group of", "signal by descriptor")
	}
	return ways
}

// memoryName is that of the program in memory.
const memoryName = "escape"

// fromMemory returns an attempt to read a file by a program that is in no folder: a copy of this one.
func fromMemory() func(path string) error {
	var copied *os.File
	return func(path string) error {
		if copied == nil {
			program, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				return errors.New("not known: " + err.Error())
			}
			fd, err := unix.MemfdCreate(memoryName, unix.MFD_CLOEXEC)
			if err != nil {
				return err
			}
			copied = os.NewFile(uintptr(fd), memoryName)
			if _, err := copied.Write(program); err != nil {
				return err
			}
		}
		out, err := exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), copied.Fd()), asked, path).CombinedOutput()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %s", err, out)
		case strings.Contains(string(out), "read: <nil>"):
			return nil
		case !strings.Contains(string(out), "permission denied"):
			return errors.New("not known: " + string(out))
		}
		return errDenied
	}
}
