// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// freezable mounts a file system that can be frozen: then it can be read, and nothing that is written returns.
func freezable(t *testing.T) string {
	t.Helper()
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 128<<20)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"fsfreeze", "--version"}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("a file system cannot be mounted and frozen here, which root may do: %q: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return dir
}

// freeze freezes a file system until thaw is called, or until this process ends in any way.
func freeze(t *testing.T, dir string) (thaw func()) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", `fsfreeze --freeze "$0" && echo frozen; read -r _; fsfreeze --unfreeze "$0"`, dir)
	cmd.Stderr = os.Stderr
	in := kit.Must[io.WriteCloser](t)(cmd.StdinPipe())
	out := kit.Must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Errorf("thaw %s: %v", dir, err)
		}
	})
	t.Cleanup(thaw)
	if _, err := io.ReadFull(out, make([]byte, len("frozen\n"))); err != nil {
		t.Fatalf("freeze %s: %v", dir, err)
	}
	return thaw
}

// slow matches a metric that counts operations of the disk that took too long.
var slow = regexp.MustCompile(`(?m)^platform_store_disk_slow_total (\d+)`)

// A disk that hangs makes a server unready, with the reason, and counts, although nobody writes. The server lives on, and is ready when
// the disk answers.
func TestServerOnADiskThatHangs(t *testing.T) {
	t.Parallel()
	s := kit.StartServer(t, freezable(t))
	admin := kit.Must[*rest.Config](t)(clientcmd.BuildConfigFromFlags("", s.Kubeconfig))
	answers := func(path string, want int, text string) {
		t.Helper()
		if code, body := host.Get(t, admin, path, ""); code != want || !strings.Contains(body, text) {
			t.Errorf("%s: %d, want %d and %q: %s", path, code, want, text, body)
		}
	}
	ready := func() bool {
		code, _ := host.Get(t, admin, "/readyz", "")
		return code == http.StatusOK
	}
	counted := func() int {
		_, body := host.Get(t, admin, "/metrics", "")
		return kit.Must[int](t)(strconv.Atoi(slow.FindStringSubmatch(body)[1]))
	}
	before := counted() // a busy machine may be slow by itself
	thaw := freeze(t, s.DataDir)
	kit.Await(t, "a server that is not ready", func() bool { return !ready() })
	answers("/readyz", http.StatusInternalServerError, "[-]disk failed")
	answers("/readyz/disk", http.StatusInternalServerError, "the disk has not answered for")
	if code, body := host.Get(t, admin, "/readyz", "application/json"); code != http.StatusServiceUnavailable || !strings.Contains(body, "the disk has not answered for") {
		t.Errorf("/readyz of the REST paths: %d %s", code, body)
	}
	answers("/livez", http.StatusOK, "ok")
	if counted() <= before {
		t.Error("the metric does not count it")
	}
	s.Await(t, "The disk does not answer")
	thaw()
	kit.Await(t, "a server that is ready", ready)
	s.MustShell(t, "kubectl create configmap written --from-literal=a=b")
}
