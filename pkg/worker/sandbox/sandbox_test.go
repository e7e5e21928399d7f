// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/platform-ai/platform/test/escape"
	"github.com/platform-ai/platform/test/kit"
)

func TestMain(m *testing.M) {
	if escape.Main(os.Stdout) {
		return
	}
	os.Exit(m.Run())
}

// nobody is a user that owns nothing.
const nobody = 65534

// ground is a machine to escape to: a data folder with keys, processes, sockets, and the program's own folder.
type ground struct {
	dir, program, data, work string
	builds                   string // GOCACHE
	target                   escape.Target
	uid                      int
}

// newGround makes the ground for a user.
func newGround(t *testing.T, uid int) *ground {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox") //nolint:usetesting // t.TempDir is not for other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	g := &ground{dir: dir, program: filepath.Join(dir, "bin", "program"), data: filepath.Join(dir, "data"), uid: uid}
	g.work = filepath.Join(g.data, "runs", "uid", "1", "work")
	other := filepath.Join(g.data, "runs", "other", "1", "work", "file")
	run := filepath.Dir(g.work)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		g.program: string(self), filepath.Join(g.data, "kubeconfig"): "key", filepath.Join(g.data, "pki", "ca.key"): "key",
		other: "other", filepath.Join(run, "run.json"): "{}", filepath.Join(run, "log"): "log", filepath.Join(g.work, "own"): "own",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	// A process of the same user, which can be read without a sandbox.
	sleep := exec.Command("sleep", "1000")
	sleep.SysProcAttr = g.as()
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleep.Process.Kill(), sleep.Wait() })
	g.target = escape.Target{
		Secrets: []string{filepath.Join(g.data, "kubeconfig"), filepath.Join(g.data, "pki", "ca.key"), other, filepath.Join(run, "run.json"), filepath.Join(run, "log")},
		Hidden:  []string{g.data, filepath.Join(g.data, "pki"), run, filepath.Dir(other)}, Processes: []int{os.Getpid(), sleep.Process.Pid}, Work: g.work,
		Later: filepath.Join(g.data, "pki", "later"),
	}
	for _, l := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"unix", filepath.Join(dir, "socket")}, {"unix", "@" + filepath.Base(dir)},
	} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		if l.network == "tcp" {
			g.target.Ports = append(g.target.Ports, listener.Addr().String())
		} else {
			g.target.Sockets = append(g.target.Sockets, listener.Addr().String())
		}
	}
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, uid), os.Chmod(path, 0o755))
	}); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		g.target.Owned = escape.Owned(t, g.program, uid)
	}
	return g
}

func (g *ground) as() *syscall.SysProcAttr {
	if g.uid == os.Getuid() {
		return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	}
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uint32(g.uid), Gid: uint32(g.uid)}}
}

func (g *ground) policy() Policy {
	return Policy{Read: append(System(), filepath.Dir(g.program)), Write: []string{g.work}, Hide: []string{g.data}}
}

// run runs a program and returns what it prints.
func (g *ground) run(t *testing.T, p Policy, args ...string) (string, error) {
	t.Helper()
	l, err := Prepare(Program{Path: args[0], Args: args, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/local/go/bin:/usr/bin:/bin", "HOME=" + g.work, "TMPDIR=" + g.work, "GOCACHE=" + g.builds}, Policy: p})
	if err != nil {
		return "", err
	}
	defer l.Close()
	var out bytes.Buffer
	l.Dir, l.Stdout, l.Stderr, l.SysProcAttr = g.work, &out, &out, g.as()
	l.WaitDelay = time.Minute
	if err := l.Start(); err != nil {
		return "", err
	}
	if err := l.Confirm(); err != nil {
		err = errors.Join(err, l.Wait()) // until then the output is still being copied
		return out.String(), err
	}
	err = l.Wait()
	return out.String(), err
}

// needs skips a test that needs a program which is not installed; CI has all of them.
func (g *ground) needs(t *testing.T, p Policy, program string) {
	t.Helper()
	if _, err := g.run(t, p, "/bin/sh", "-c", "command -v "+program); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

// shareBuilds lets the go command use this user's build cache: building the runtime again takes half a minute.
func (g *ground) shareBuilds(t *testing.T, p *Policy) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil || g.uid != os.Getuid() {
		t.Skip("go has built nothing for this user")
	}
	g.builds = strings.TrimSpace(string(out))
	p.Write = append(p.Write, g.builds)
}

// users returns the users that the tests run as.
func users() []int {
	if os.Getuid() == 0 {
		return []int{0, nobody}
	}
	return []int{os.Getuid()}
}

// kernels returns the features of this kernel and of all older ones.
func kernels(t *testing.T) []Kernel {
	t.Helper()
	k := Probe()
	if err := k.Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err) // a run of CI that tries no escape must not look as if it had
		}
		t.Skip(err)
	}
	var all []Kernel
	for v := k.Landlock; v > 0; v-- {
		all = append(all, Kernel{Landlock: v, Seccomp: true})
	}
	return all
}

// TestEscapes tries each way to escape, on each version of Landlock, as root and as another user.
func TestEscapes(t *testing.T) {
	for _, k := range kernels(t) {
		for _, uid := range users() {
			t.Run(fmt.Sprintf("landlock-%d-uid-%d", k.Landlock, uid), func(t *testing.T) {
				t.Parallel()
				g := newGround(t, uid)
				g.target.Signals = k.Landlock >= scopeVersion
				p := g.policy()
				p.Kernel = &k
				go func() {
					kit.Await(t, "the program has begun, or is over", func() bool {
						_, err := os.Stat(filepath.Join(g.work, "begun"))
						if err == nil {
							_ = os.WriteFile(g.target.Later, []byte("later"), 0o644)
						}
						return err == nil || t.Context().Err() != nil
					})
				}()
				g.tryAll(t, p)
			})
		}
	}
}

// TestEscapesOfPods tries the same with the policies of a pod, as a user other than root. The command of a person's task may use the
// network there, and what the container's user may write; a model's program only the latter. Nothing else is open.
func TestEscapesOfPods(t *testing.T) {
	kernels(t)
	if os.Getuid() != 0 {
		t.Skip("only root can give the ground to another user")
	}
	files := []string{"write to /tmp", "write to /dev/shm"}
	for name, tc := range map[string]struct {
		network     bool
		open, apart []string
	}{
		"command": {
			true, append([]string{"listen", "listen without a port of its own", "talk to the kernel by netlink", "share memory", "share semaphores", "share a queue", "share a queue of POSIX"}, files...),
			[]string{"connect to 127.0.0.1", "connect to [::1]", "connect to @", "send to", "connect by MPTCP to", "connect by TCP fast open to", "connect a pair anew to", "watch /"},
		},
		"program of a model": {false, files, nil},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // both write to /tmp
			g := newGround(t, nobody)
			g.target.Secrets, g.target.Hidden, g.target.Later = []string{filepath.Join(g.data, "pki", "ca.key")}, []string{filepath.Join(g.data, "pki")}, ""
			if tc.network {
				g.target.Ports, g.target.Sockets = nil, nil
			}
			g.target.Signals = Probe().Landlock >= scopeVersion
			target, err := json.Marshal(g.target)
			if err != nil {
				t.Fatal(err)
			}
			p := g.podPolicy()
			p.Network = tc.network
			out, err := g.run(t, p, g.program, escape.Argument, string(target))
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Cleanup(func() { _, _ = os.Remove("/tmp/escaped"), os.Remove("/dev/shm/escaped") })
			open, tried := escape.Open(out)
			open = slices.DeleteFunc(open, func(l string) bool {
				l = strings.TrimPrefix(l, "OPEN: ")
				return slices.Contains(tc.open, l) || slices.ContainsFunc(tc.apart, func(way string) bool { return strings.HasPrefix(l, way) })
			})
			if !tried || len(open) > 0 {
				t.Errorf("open:\n%s\nof\n%s", strings.Join(open, "\n"), out)
			}
			if left := escape.Missing(out, slices.Concat(tc.open, tc.apart, []string{"read a file that was made later"})...); len(left) > 0 {
				t.Errorf("not tried:\n%s\nof\n%s", strings.Join(left, "\n"), out)
			}
		})
	}
}

// TestProxyPort: a program with a proxy connects to it, and to nothing else.
func TestProxyPort(t *testing.T) {
	for _, k := range kernels(t) {
		for _, uid := range users() {
			t.Run(fmt.Sprintf("landlock-%d-uid-%d", k.Landlock, uid), func(t *testing.T) {
				t.Parallel()
				g := newGround(t, uid)
				g.target.Signals, g.target.Later = k.Landlock >= scopeVersion, ""
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						_, _ = c.Write([]byte("reached\n"))
						_ = c.Close()
					}
				}()
				p := g.policy()
				p.Kernel, p.ProxyPort = &k, uint16(l.Addr().(*net.TCPAddr).Port)
				out, err := g.run(t, p, "/bin/bash", "-c", "cat < /dev/tcp/"+strings.Replace(l.Addr().String(), ":", "/", 1))
				if k.Landlock < networkVersion {
					if !errors.Is(err, ErrUnavailable) || out != "" {
						t.Errorf("%q, %v", out, err)
					}
					return
				}
				if err != nil || out != "reached\n" {
					t.Errorf("%q, %v", out, err)
				}
				g.closed(t, p)
			})
		}
	}
}

// TestService: a program with a port of its own serves there, and nowhere else.
func TestService(t *testing.T) {
	const server = `
import errno, http.server, socket, sys, threading, urllib.request
def tried(name, do):
    try: do(); print(name, "done", flush=True)
    except OSError as e: print(name, errno.errorcode[e.errno], flush=True)
def new(family=socket.AF_INET): return socket.socket(family)
def served(*address):
    s = new(); s.bind(address); s.listen()
port = int(sys.argv[1])
tried("everywhere", lambda: served("0.0.0.0", port))
tried("another port", lambda: served("127.0.0.1", port + 1))
tried("any port", lambda: served("127.0.0.1", 0))
tried("another address", lambda: served("127.0.0.2", port))
tried("IPv6", lambda: new(socket.AF_INET6).bind(("::1", port)))
tried("no address", lambda: new().listen())
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
    def log_message(*_): pass
s = http.server.HTTPServer(("127.0.0.1", port), Hello)
threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode(), flush=True)
`
	for _, k := range kernels(t) {
		for _, uid := range users() {
			t.Run(fmt.Sprintf("landlock-%d-uid-%d", k.Landlock, uid), func(t *testing.T) {
				t.Parallel()
				g := newGround(t, uid)
				g.target.Signals, g.target.Later = k.Landlock >= scopeVersion, ""
				s, err := NewService()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Close)
				p := g.policy()
				p.Kernel, p.Service = &k, s
				if k.Landlock < networkVersion {
					if _, err := g.run(t, p, "/bin/true"); !errors.Is(err, ErrUnavailable) {
						t.Error(err)
					}
					return
				}
				const want = `everywhere EACCES
another port EACCES
any port EACCES
another address EACCES
IPv6 EACCES
no address EACCES
hello
`
				if out, err := g.run(t, p, "/usr/bin/python3", "-c", server, strconv.Itoa(int(s.Port()))); err != nil || out != want {
					t.Errorf("%q, %v", out, err)
				}
				g.closed(t, p)
			})
		}
	}
}

// closed tries all ways out of the sandbox.
func (g *ground) closed(t *testing.T, p Policy) {
	t.Helper()
	target, err := json.Marshal(g.target)
	if err != nil {
		t.Fatal(err)
	}
	out, err := g.run(t, p, g.program, escape.Argument, string(target))
	if open, tried := escape.Open(out); err != nil || !tried || len(open) > 0 {
		t.Errorf("%v, open:\n%s\nof\n%s", err, strings.Join(open, "\n"), out)
	}
}

func (g *ground) tryAll(t *testing.T, p Policy) {
	t.Helper()
	target, err := json.Marshal(g.target)
	if err != nil {
		t.Fatal(err)
	}
	out, err := g.run(t, p, g.program, escape.Argument, string(target))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	open, tried := escape.Open(out)
	if !tried || len(open) > 0 {
		t.Errorf("open:\n%s\nof\n%s", strings.Join(open, "\n"), out)
	}
	if left := escape.Missing(out, g.target.Impossible()...); len(left) > 0 {
		t.Errorf("not tried:\n%s\nof\n%s", strings.Join(left, "\n"), out)
	}
}

// TestAttemptsWork: without a sandbox most of the ways are open, so the attempts are real.
func TestAttemptsWork(t *testing.T) {
	g := newGround(t, os.Getuid())
	g.target.Later, g.target.Signals = "", true
	target, err := json.Marshal(g.target)
	if err != nil {
		t.Fatal(err)
	}
	// Its own work folder is moved and its files are cut: nothing of the ground is as it was.
	out, err := g.run(t, Policy{Off: true}, g.program, escape.Argument, string(target))
	open, tried := escape.Open(out)
	if err != nil || !tried {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"read ", "write ", "truncate ", "hard link", "change the mode of /", "change the mode by a path descriptor of ", "change the mode in a race of ", "change the owner of ", "change the times of ", "change the mode of the folder ", "list /proc/PID/fd", "read /proc/PID/mem", "trace ", "signal ", "run with the rights of its owner", "watch /", "limit ", "slow down ", "schedule ", "choose the processors of ", "share memory", "share a queue", "share semaphores", "share a queue of POSIX", "read the kernel's log", "have a core file written", "compare with ", "connect to " + g.target.Ports[0], "connect to @"} {
		if !slices.ContainsFunc(open, func(l string) bool { return strings.HasPrefix(l, "OPEN: "+want) }) {
			t.Errorf("%q is not open without a sandbox:\n%s", want, out)
		}
	}
}

// podPolicy is what programs may reach in a pod: all but the worker's own files.
func (g *ground) podPolicy() Policy {
	return Policy{Write: []string{"/"}, Hide: []string{"/proc", g.data + "/pki"}, Network: true}
}

// TestProgramsWork: programs can use what they need, on a host and in a pod.
func TestProgramsWork(t *testing.T) {
	for _, work := range escape.Works {
		for i, uid := range append(users(), os.Getuid()) {
			pod := i == len(users())
			t.Run(fmt.Sprintf("%s-uid-%d-pod-%t", work.Name, uid, pod), func(t *testing.T) {
				g := newGround(t, uid)
				p := g.policy()
				if pod {
					p = g.podPolicy()
				}
				if work.Name == "go" {
					g.shareBuilds(t, &p)
				}
				g.needs(t, p, work.Program)
				bash, err := exec.LookPath("bash")
				if err != nil {
					t.Skip(err)
				}
				out, err := g.run(t, p, bash, "-c", work.Line)
				if err != nil || out != work.Want {
					t.Errorf("%v: %q", err, out)
				}
			})
		}
	}
}

// TestFailsClosed: without a part of the kernel nothing is started, unless the sandbox is off.
func TestFailsClosed(t *testing.T) {
	g := newGround(t, os.Getuid())
	for _, k := range []Kernel{{}, {Landlock: 7}, {Seccomp: true}} {
		p := g.policy()
		p.Kernel = &k
		out, err := g.run(t, p, "/bin/sh", "-c", "echo ran")
		if !errors.Is(err, ErrUnavailable) || out != "" {
			t.Errorf("%+v: %q, %v", k, out, err)
		}
		p.Off = true
		if out, err := g.run(t, p, "/bin/sh", "-c", "echo ran"); err != nil || out != "ran\n" {
			t.Errorf("off: %q, %v", out, err)
		}
	}
	// A program that cannot be executed is distinguished from a sandbox that cannot be set up.
	if _, err := g.run(t, g.policy(), filepath.Join(g.data, "kubeconfig")); err == nil || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("got %v", err)
	}
	if out, err := g.run(t, Policy{Read: System(), Write: []string{"/no/such/folder"}}, "/bin/true"); err == nil {
		t.Errorf("got %q", out)
	}
}

// TestDataBelowSystem: the data folder is hidden wherever it lies, and however it is named.
func TestDataBelowSystem(t *testing.T) {
	g := newGround(t, os.Getuid())
	link := filepath.Join(g.dir, "link")
	if err := os.Symlink(g.data, link); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Policy{
		"readable parent":   {Read: append(System(), g.dir), Write: []string{g.work}, Hide: []string{g.data}},
		"by a link":         {Read: append(System(), g.dir), Write: []string{g.work}, Hide: []string{link}},
		"all of a pod":      {Write: []string{"/", g.work}, Hide: []string{"/proc", g.data}},
		"not yet made":      {Read: append(System(), g.dir), Write: []string{g.work}, Hide: []string{filepath.Join(g.data, "later", "x"), g.data}},
		"parent is hidden":  {Read: append(System(), filepath.Join(g.data, "pki"), filepath.Dir(g.program)), Write: []string{g.work}, Hide: []string{g.data}},
		"hidden, not there": {Read: append(System(), g.dir), Write: []string{g.work}, Hide: []string{g.data, "/no/such/folder"}},
	} {
		for _, path := range []string{"kubeconfig", "pki/ca.key", "runs/uid/1/run.json", "runs/other/1/work/file"} {
			if out, err := g.run(t, p, "/bin/cat", filepath.Join(g.data, path)); err == nil || strings.Contains(out, "key") && !strings.Contains(out, "denied") {
				t.Errorf("%s: %s can be read: %q, %v", name, path, out, err)
			}
		}
		if out, err := g.run(t, p, "/bin/cat", filepath.Join(g.work, "own")); err != nil || out != "own" {
			t.Errorf("%s: own file: %q, %v", name, out, err)
		}
	}
}

func TestCheckRead(t *testing.T) {
	g := newGround(t, os.Getuid())
	for path, want := range map[string]string{
		filepath.Dir(g.program): "", g.dir: "", g.data: "holds keys", filepath.Join(g.data, "pki"): "holds keys", "relative": "absolute", "/": "more than", "/proc/self": "more than",
		filepath.Join(g.dir, "none"): "no such file",
	} {
		err := CheckRead([]string{path}, []string{g.data})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	work := b.TempDir()
	for name, p := range map[string]Policy{
		"sandbox": {Read: System(), Write: []string{work}, Hide: []string{"/root"}}, "off": {Off: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l, err := Prepare(Program{Path: "/bin/true", Args: []string{"true"}, Policy: p})
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(l.Start(), l.Confirm(), l.Wait()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("exec alone", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestLastValuesCount: a program gets one value of each variable.
func TestLastValuesCount(t *testing.T) {
	got := lastValues([]string{"A=1", "B=1", "A=2", "C", "B="})
	if want := []string{"A=2", "C", "B="}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
