// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestClusterFlags(t *testing.T) {
	o := NewClusterOptions()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	err := fs.Parse([]string{
		"--worker-image=w", "--ai-worker-image=a", "--watch-namespace=x", "--watch-namespace=y", "--leader-elect=false", "--unreachable-timeout=5s",
		"--web-fetch-allow=10.0.0.1:80", "--max-running-tasks=3",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !o.LeaderElect && len(o.WatchNamespaces) == 2 && o.Runs.WorkerImage == "w" && o.Runs.AIImage == "a" && o.Runs.UnreachableTimeout == 5*time.Second &&
		o.Runs.StartTimeout == 5*time.Minute && o.MaxRunning == 3 && len(o.Runs.WebFetchAllow) == 1 && o.HealthProbeBindAddress == ":8081" {
		return
	}
	t.Errorf("%+v", o)
}

func TestClusterOfIPv6(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	if url := NewClusterOptions().Runs.APIURL; !strings.HasPrefix(url, "https://[$(KUBERNETES_SERVICE_HOST)]:") {
		t.Error(url)
	}
}

func TestClusterNeedsAnImage(t *testing.T) {
	if err := RunCluster(t.Context(), *NewClusterOptions()); err == nil || !strings.Contains(err.Error(), "--worker-image") {
		t.Errorf("got %v", err)
	}
}

// TestClusterNeedsPinnedImages: an image of coding agents that can be replaced is refused before anything is done.
func TestClusterNeedsPinnedImages(t *testing.T) {
	o := NewClusterOptions()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse([]string{"--worker-image=w", "--acp-codex-runtime-image=registry.example/codex:1"}); err != nil {
		t.Fatal(err)
	}
	if err := RunCluster(t.Context(), *o); err == nil || !strings.Contains(err.Error(), `--acp-codex-runtime-image: "registry.example/codex:1": must be pinned`) {
		t.Errorf("got %v", err)
	}
}

// reserve returns an address that no other process is assigned while the test runs, but on which the test can listen:
// a socket that does not listen is bound to it.
func reserve(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	})
	local := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Bind(fd, local)); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// TestProbes: a process that waits for the API, here one that is never served, is alive and not ready.
func TestProbes(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := reserve(t)
	o := NewClusterOptions()
	o.Kubeconfig, o.HealthProbeBindAddress, o.Runs.WorkerImage = kubeconfig, address, "w"
	done := make(chan error, 1)
	go func() { done <- RunCluster(t.Context(), *o) }()
	get := func(path string) int {
		for {
			response, err := http.Get("http://" + address + path)
			if err == nil {
				_ = response.Body.Close()
				return response.StatusCode
			}
			select {
			case err := <-done:
				t.Fatalf("it ended: %v", err)
			default:
			}
		}
	}
	if code := get("/healthz"); code != http.StatusOK {
		t.Errorf("alive: %d", code)
	}
	if code := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("ready: %d", code)
	}
}

// TestProbesOff: without an address there are no probes, and an invalid one is an error.
func TestProbesOff(t *testing.T) {
	p, err := serveProbes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p.close()
	if _, err := serveProbes(t.Context(), "256.0.0.1:x"); err == nil {
		t.Error("served at no address")
	}
}
