// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestAttributes: a program changes mode, owner and times of its own files, however it names them, and of no others.
func TestAttributes(t *testing.T) {
	for name, tc := range map[string]struct{ line, want string }{
		"mode":             {`touch f && chmod 711 f && stat -c %a f`, "711\n"},
		"relative":         {`mkdir d && touch d/f && cd d && chmod 640 ../d/f && stat -c %a f`, "640\n"},
		"whole path":       {`touch f && chmod 640 "$HOME/f" && stat -c %a f`, "640\n"},
		"folder":           {`mkdir d && chmod 2750 d && stat -c %a d`, "2750\n"},
		"link":             {`touch f && ln -s f l && chmod 604 l && stat -c %a f`, "604\n"},
		"link to another":  {`ln -s /proc/1 l; chmod 777 l 2>&1; ln -s "$0" m; chmod 777 m 2>&1`, "chmod: changing permissions of 'l': Operation not permitted\nchmod: changing permissions of 'm': Operation not permitted\n"},
		"missing":          {`chmod 777 none 2>&1; chmod 777 "" 2>&1`, "chmod: cannot access 'none': No such file or directory\nchmod: cannot access '': No such file or directory\n"},
		"times":            {`touch f && touch -d @1000.5 f && stat -c %.1Y f && touch f && test $(stat -c %Y f) -gt 1000`, "1000.5\n"},
		"times of a link":  {`touch -d @5 f && ln -s f l && touch -h -d @1000 l && stat -c %Y l f`, "1000\n5\n"},
		"owner as it is":   {`touch f && chown "$(id -u):$(id -g)" f && chown -h "$(id -u)" f && echo same`, "same\n"},
		"owner is another": {`touch f && chown 12345 f 2>&1`, "chown: changing ownership of 'f': Operation not permitted\n"},
		"copy":             {`touch -d @1000 f && chmod 751 f && cp -a f g && install -m 755 f h && stat -c '%a %Y' g && stat -c %a h`, "751 1000\n755\n"},
		"rights of its owner": {`touch f && chmod 4711 f 2>&1; chmod 2711 f && stat -c %a f; mkdir d && chmod 4711 d && stat -c %a d; python3 -c '
import os
for flags in os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY:
    try: os.open("." if flags & os.O_TMPFILE == os.O_TMPFILE else "g", flags, 0o4711); print("made")
    except PermissionError: print("denied")
try: os.mknod("g", 0o104711); print("made")
except PermissionError: print("denied")
'`, "chmod: changing permissions of 'f': Operation not permitted\n2711\n4711\ndenied\ndenied\ndenied\n"},
		"older calls": {`test $(uname -m) = x86_64 || { echo '3 4 5.5 6.5 7'; exit; }; python3 -c '
import ctypes, os
c, t = ctypes.CDLL(None), lambda *v: (ctypes.c_long * len(v))(*v)
open("f", "w")
c.syscall(132, b"f", t(3, 4)); s = os.stat("f"); print(int(s.st_atime), int(s.st_mtime), end=" ")
c.syscall(235, b"f", t(5, 500000, 6, 500000)); s = os.stat("f"); print(s.st_atime, s.st_mtime, end=" ")
c.syscall(261, os.open(".", os.O_RDONLY), b"f", t(7, 0, 7, 0)); print(int(os.stat("f").st_mtime))
'`, "3 4 5.5 6.5 7\n"},
		"files of the worker": {`ln -s /proc/self/fd l; for d in //proc/self/fd /proc/self/../self/fd l; do for n in 0 1 2 3 4 5 6 7 8 9; do chmod 777 $d/$n 2> /dev/null && echo $d/$n; done; done; echo end`, "end\n"},
		"of all kinds": {`python3 -c '
import os
fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o600)
os.fchmod(fd, 0o640); print(oct(os.stat("f").st_mode & 0o777))
os.chmod(f"/proc/self/fd/{fd}", 0o604); print(oct(os.stat("f").st_mode & 0o777))
os.chmod("f", 0o611, dir_fd=os.open(".", os.O_RDONLY)); print(oct(os.stat("f").st_mode & 0o777))
os.utime(fd, (1, 2)); print(os.stat("f").st_mtime)
os.fchown(fd, -1, -1)
os.unlink("f"); os.fchmod(fd, 0o666); print(oct(os.fstat(fd).st_mode & 0o777))
for path in "/usr/bin/env", "/dev/null":
    try: os.fchmod(os.open(path, os.O_RDONLY), 0o755); print("changed")
    except PermissionError: print("denied")
try: os.fchmod(99, 0o755)
except OSError as e: print(e.strerror)
'`, "0o640\n0o604\n0o611\n2.0\n0o666\ndenied\ndenied\nBad file descriptor\n"},
	} {
		for _, uid := range users() {
			t.Run(fmt.Sprintf("%s-uid-%d", name, uid), func(t *testing.T) {
				g := newGround(t, uid)
				p := g.policy()
				kernels(t)
				if strings.Contains(tc.line, "python3") {
					g.needs(t, p, "python3")
				}
				outside := g.target.Secrets[0]
				if out, _ := g.run(t, p, "/bin/sh", "-c", tc.line, outside); out != tc.want {
					t.Errorf("got  %q\nwant %q", out, tc.want)
				}
				if st, err := os.Stat(outside); err != nil || st.Mode() != 0o755 {
					t.Errorf("the file of another is %v, %v", st.Mode(), err)
				}
			})
		}
	}
}

// BenchmarkAttributes changes the mode of a file in a sandbox, and without one.
func BenchmarkAttributes(b *testing.B) {
	for name, off := range map[string]bool{"sandbox": false, "off": true} {
		b.Run(name, func(b *testing.B) {
			work := b.TempDir()
			line := fmt.Sprintf(`python3 -c 'import os; open("f", "w")
for i in range(%d): os.chmod("f", 0o600)'`, b.N)
			l, err := Prepare(Program{Path: "/bin/sh", Args: []string{"sh", "-c", line}, Env: os.Environ(), Policy: Policy{Off: off, Read: System(), Write: []string{work}}})
			if err != nil {
				b.Fatal(err)
			}
			l.Dir = work
			for _, step := range []func() error{l.Start, l.Confirm, l.Wait} {
				if err := step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
