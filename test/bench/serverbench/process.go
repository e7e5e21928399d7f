// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverbench measures the built standalone server from outside: the time
// from start to ready, idle memory, and event appends through the whole HTTP path,
// compared with the raw fsync rate of the same disk.
package serverbench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is a running platform-standalone.
type server struct {
	cmd   *exec.Cmd
	dir   string
	ready time.Duration // from exec to the ready message
}

// start runs the server of bin on dir and waits for its ready message.
func start(ctx context.Context, bin, dir string, args ...string) (*server, error) {
	args = append([]string{"--data-dir", dir, "--secure-port", "0", "--rest-bind-address", "", "--allow-host-commands"}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "platform-standalone"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = nil
	from := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready") {
			s := &server{cmd: cmd, dir: dir, ready: time.Since(from)}
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return s, nil
		}
	}
	return nil, fmt.Errorf("the server ended before it was ready: %w", cmd.Wait())
}

// stop ends the server and waits for it.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// rss is the resident memory of the server in MiB.
func (s *server) rss() (float64, error) { return s.memory("VmRSS") }

// peak is the largest resident memory since resetPeak, in MiB.
func (s *server) peak() (float64, error) { return s.memory("VmHWM") }

// resetPeak restarts the measurement of peak.
func (s *server) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0)
}

// memory reads a figure of the server in MiB.
func (s *server) memory(figure string) (float64, error) { return memory(s.cmd.Process.Pid, figure) }

// memory reads a figure of a process in MiB.
func memory(pid int, figure string) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", figure, pid)
}

// client returns an HTTP client with a connection of its own, for the administrator or, with a token, for its owner.
func (s *server) client(token string) (*http.Client, string, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "kubeconfig"))
	if err != nil {
		return nil, "", err
	}
	if token != "" {
		cfg = rest.AnonymousClientConfig(cfg)
		cfg.BearerToken = token
	}
	// A transport that is wrapped is not shared.
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return rt }
	c, err := rest.HTTPClientFor(cfg)
	return c, cfg.Host, err
}
