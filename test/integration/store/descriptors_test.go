// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// What TestHelperDescriptors gets from the environment: the folder, the port, and how many files it may open.
const envFolder, envPort, envFiles = "PLATFORM_TEST_FOLDER", "PLATFORM_TEST_PORT", "PLATFORM_TEST_FILES"

// TestHelperDescriptors is a server in a process of its own that may open few files, with the log of the program. The limit of files
// of a Go program can only be set by itself, because it raises what it inherits.
func TestHelperDescriptors(t *testing.T) {
	dir := os.Getenv(envFolder)
	if dir == "" {
		t.Skip("this is the server of the tests of descriptors")
	}
	o := standalone.NewOptions()
	o.DataDir, o.RESTBindAddress, o.Out = dir, "127.0.0.1:0", os.Stdout
	o.Port = kit.Must[int](t)(strconv.Atoi(os.Getenv(envPort)))
	o.Controllers = func(ctx context.Context, _ *rest.Config) error {
		<-ctx.Done()
		return nil
	}
	if err := server.SetUpLog(t.Context(), true, sparse.New(clock.RealClock{})); err != nil {
		t.Fatal(err)
	}
	limitFiles(t, os.Getpid(), kit.Must[int](t)(strconv.Atoi(os.Getenv(envFiles))))
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	if err := standalone.Run(ctx, *o); err != nil {
		t.Fatal(err)
	}
}

// limitFiles sets how many files a process may open in addition to those that it has open.
func limitFiles(t *testing.T, pid, more int) {
	t.Helper()
	open := kit.Must[[]os.DirEntry](t)(os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)))
	limit := unix.Rlimit{}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = uint64(len(open) + more)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// limited is a server that may open few files.
type limited struct {
	*kit.Process
	url, kubeconfig string

	client *http.Client
}

// startLimited starts a server that may open so many files.
func startLimited(t *testing.T, files int) *limited {
	t.Helper()
	dir, port := t.TempDir(), kit.FreePort(t)
	env := []string{envFolder + "=" + dir, envPort + "=" + port, envFiles + "=" + strconv.Itoa(files)}
	s := &limited{url: "https://127.0.0.1:" + port, kubeconfig: filepath.Join(dir, "kubeconfig"), client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}}
	s.Process = kit.Start(t, env, os.Args[0], "-test.run=^TestHelperDescriptors$", "-test.v")
	return s
}

// get requests a path as whoever asks for JSON.
func (s *limited) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil))
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, string(kit.Must[[]byte](t)(io.ReadAll(resp.Body)))
}

// A server that starts with too few descriptors stays alive on its port and says why it is not ready, there and in its log, once. It
// starts when the limit is raised.
func TestStartWithFewDescriptors(t *testing.T) {
	t.Parallel()
	for _, files := range []int{8, 20} { // the store could not be opened; and it could, and the rest of the server could not start
		t.Run(strconv.Itoa(files), func(t *testing.T) {
			t.Parallel()
			s := startLimited(t, files)
			s.Await(t, "too many open files")
			if code, body := s.get(t, "/livez"); code != http.StatusOK {
				t.Errorf("alive: %d %s", code, body)
			}
			if code, body := s.get(t, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "raise the limit of open files") {
				t.Errorf("ready: %d %s", code, body)
			}
			limitFiles(t, s.Pid(), 1000)
			s.Await(t, "is ready after")
			for _, path := range []string{"/livez", "/readyz"} {
				if code, body := s.get(t, path); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			if n := strings.Count(s.Output(), "too many open files"); n != 1 {
				t.Errorf("%d lines say so", n)
			}
			if err := s.Stop(); err != nil {
				t.Errorf("the server ended with: %v", err)
			}
		})
	}
}

// A server that runs out of descriptors stays alive, is not ready, and says why. It answers on the connections that it has. A write
// that needs a new file of the store waits, and ends well when the limit is raised.
func TestRunOutOfDescriptors(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := startLimited(t, 1000)
	s.Await(t, "is ready after")
	admin := kit.Must[*rest.Config](t)(clientcmd.BuildConfigFromFlags("", s.kubeconfig))
	maps := kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(admin)).CoreV1().ConfigMaps("default")
	s.client = kit.Must[*http.Client](t)(rest.HTTPClientFor(admin)) // the connection of maps
	add := func() error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"text": strings.Repeat("x", 500<<10)}}
		_, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
		return err
	}
	if err := add(); err != nil {
		t.Fatal(err)
	}
	limitFiles(t, s.Pid(), -16) // the store closes a file before it opens another
	written := make(chan error, 1)
	go func() {
		var err error
		for range 20 { // more than a memtable
			err = errors.Join(err, add())
		}
		written <- err
	}()
	s.Await(t, "The store can open no more files")
	if code, body := s.get(t, "/livez"); code != http.StatusOK {
		t.Errorf("alive: %d %s", code, body)
	}
	if code, body := s.get(t, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "too many open files") {
		t.Errorf("ready: %d %s", code, body)
	}
	limitFiles(t, s.Pid(), 1000)
	if err := <-written; err != nil {
		t.Error(err)
	}
	if code, body := s.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("ready: %d %s", code, body)
	}
	if n := strings.Count(s.Output(), "too many open files"); n > 10 {
		t.Errorf("%d lines say so", n)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("the server ended with: %v", err)
	}
}
