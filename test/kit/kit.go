// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit runs the built programs as real processes on loopback for the
// end-to-end and robustness tests: the standalone server, the scripted model
// and kubectl. Every process is stopped by its own pid, also if the test binary
// is killed.
package kit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/platform-ai/platform/pkg/server/panics"
)

// Bin returns the path of a built program. The folder comes from PLATFORM_BIN,
// which make sets; without it the test is skipped.
func Bin(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("PLATFORM_BIN")
	if dir == "" {
		t.Skip("needs the built programs: make test")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("program %s is not built: %v", name, err)
	}
	return path
}

// Process is a running program whose standard output is read line by line.
type Process struct {
	cmd    *exec.Cmd
	output *log
	done   chan struct{} // closed when the process has ended and was reaped
	err    error         // its exit, set before done is closed
}

// Start runs a program. Its output goes to the test's log when the test failed, which it does if a request made the program panic.
func Start(t testing.TB, env []string, name string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(name, args...), output: newLog(), done: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), env...), ifKilled(t))
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		p.output.close()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Stop()
		if PanicIn(p.output.String()) {
			t.Errorf("a request made %s panic", filepath.Base(name))
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(name), p.output.String())
		}
	})
	return p
}

// PanicIn reports whether the output of a server says that a request panicked.
func PanicIn(output string) bool {
	return strings.Contains(output, panics.Message) || strings.Contains(output, "Observed a panic")
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output returns all that the process has printed so far.
func (p *Process) Output() string { return p.output.String() }

// Await returns the first line of output that holds text.
func (p *Process) Await(t testing.TB, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	line, err := p.output.await(ctx, text)
	if err != nil {
		t.Fatalf("%s printed no %q: %v\n%s", filepath.Base(p.cmd.Path), text, err, p.output.String())
	}
	return line
}

// Stop ends the process with SIGTERM, waits for it and returns how it ended.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	return p.err
}

// Kill ends the process with SIGKILL and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Wait returns how the process ended.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Server is a running platform-standalone.
type Server struct {
	*Process
	DataDir    string
	Kubeconfig string
	args       []string
	port       string // the same after a restart, because clients know it
	home       string // of kubectl: its discovery cache
}

// StartServer starts platform-standalone on dir, on a port of its own, and waits until it is ready.
func StartServer(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	s := &Server{DataDir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), args: args, port: FreePort(t), home: t.TempDir()}
	EndRunsAfter(t, dir) // after the server's own end
	bin := Bin(t, "platform-standalone")
	t.Cleanup(func() { // first as people do: it removes the control groups of the runs, too
		_ = exec.Command(bin, "runs", "end", "--data-dir", dir).Run()
	})
	s.start(t)
	return s
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	args := append([]string{"--data-dir", s.DataDir, "--secure-port", s.port, "--rest-bind-address", "127.0.0.1:0"}, s.args...)
	s.Process = Start(t, nil, Bin(t, "platform-standalone"), args...)
	s.Await(t, "is ready after") // not "ready": an address may be "already in use"
}

// FreePort finds a port below the range that the system assigns to clients.
// Otherwise a client that keeps connecting to a server that is down could be
// assigned the server's own port.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port")
	return ""
}

// Restart starts the server again on its folder after it was stopped or killed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.start(t)
}

// WhenAvailable returns what run returns. On a busy machine kube-apiserver may find an API server behind it unavailable for seconds and
// refuse what it would pass on; run is then called once more, after await.
func WhenAvailable(t testing.TB, run func() Result, await func()) Result {
	t.Helper()
	r := run()
	if r.Code != 0 && strings.Contains(r.Output, "the server is currently unable to handle the request") {
		t.Logf("the server was unavailable; once more: %s", r.Output)
		await()
		r = run()
	}
	return r
}

// Result is what one command did.
type Result struct {
	Output string // standard output and error, as a terminal shows them
	Code   int
}

// Run runs a program to its end in the given environment, which is that of the test if env is nil.
func Run(t testing.TB, env []string, name string, args ...string) Result {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...) // also in clean-ups
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(slices.Clip(env), ifKilled(t))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return Result{Output: out.String(), Code: cmd.ProcessState.ExitCode()}
}

// Must returns the output of a command that has to succeed. If it failed, the test ends.
func (r Result) Must(t testing.TB, command string) string {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("%s: exit %d: %s", command, r.Code, r.Output)
	}
	return r.Output
}

// Shell runs a line of shell with the built programs first on the PATH and the
// server's kubeconfig.
func (s *Server) Shell(t testing.TB, line string) Result {
	t.Helper()
	return Run(t, s.Env(t), "bash", "-c", line)
}

// MustShell is Shell for a line that must succeed; it returns the output.
func (s *Server) MustShell(t testing.TB, line string) string {
	t.Helper()
	return s.Shell(t, line).Must(t, line)
}

// Env is the environment of a client of the server.
func (s *Server) Env(t testing.TB) []string {
	t.Helper()
	return append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HOME="+s.home,
		"PATH="+filepath.Dir(Bin(t, "kubectl"))+":"+os.Getenv("PATH"))
}

// log keeps what a process prints and lets a reader wait for a line.
type log struct {
	mu     sync.Mutex // guards the rest
	buf    bytes.Buffer
	change chan struct{} // closed and replaced on each write
	ended  bool
}

var _ io.Writer = (*log)(nil)

func newLog() *log { return &log{change: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
	return l.buf.Write(p)
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

func (l *log) wake() {
	close(l.change)
	l.change = make(chan struct{})
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *log) await(ctx context.Context, text string) (string, error) {
	for {
		l.mu.Lock()
		all, change, ended := l.buf.String(), l.change, l.ended
		l.mu.Unlock()
		for line := range strings.Lines(all) {
			whole := ended || strings.HasSuffix(line, "\n") // programs print lines in pieces
			if whole && strings.Contains(line, text) {
				return strings.TrimSuffix(line, "\n"), nil
			}
		}
		if ended {
			return "", errors.New("the process ended")
		}
		select {
		case <-change:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
