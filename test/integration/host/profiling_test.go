// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/kit"
)

// TestProfiling: every long-running program serves its profiles at the address of its flag, nowhere else, and only on
// loopback.
func TestProfiling(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := kit.StartServer(t, t.TempDir())
	ca := filepath.Join(s.DataDir, "pki", "ca.crt")
	routes := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(routes, []byte("namespaces: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := []string{ // it waits for a server that does not exist
		runspec.EnvTaskName + "=t", runspec.EnvTaskNamespace + "=default", runspec.EnvTaskUID + "=u", runspec.EnvAttempt + "=1",
		runspec.EnvControllerURL + "=https://127.0.0.1:1", runspec.EnvCAFile + "=" + ca, runspec.EnvWorkDir + "=" + t.TempDir(),
		runspec.EnvTokenPath + "=" + s.Kubeconfig,
	}
	for _, p := range []struct {
		name string
		env  []string
		args []string
	}{
		{"platform-standalone", nil, []string{"--data-dir", t.TempDir(), "--secure-port=0", "--rest-bind-address=", "-v=0"}},
		{"platform-apiserver", nil, []string{"--data-dir", t.TempDir(), "--kubeconfig", s.Kubeconfig, "--namespace=default", "--secure-port=0"}},
		{"platform-controller", nil, []string{"--kubeconfig", s.Kubeconfig, "--worker-image=w", "--leader-elect=false", "--health-probe-bind-address="}},
		{"platform-router", nil, []string{"--kubeconfig", s.Kubeconfig, "--routes-file", routes, "--bind-address=127.0.0.1:0"}},
		{"platform-worker", worker, nil},
		{"platform-worker-command", worker, nil},
		{"platform", nil, []string{"console", "--no-open", "--kubeconfig", s.Kubeconfig}},
	} {
		t.Run(p.name, func(t *testing.T) {
			address := net.JoinHostPort("127.0.0.1", kit.FreePort(t))
			started := kit.Start(t, p.env, kit.Bin(t, p.name), append(p.args, "--"+profiling.Flag, address)...)
			started.Await(t, "Profiles are served")
			if command := profile(t, "http://"+address+"/debug/pprof/cmdline"); !strings.Contains(command, p.name) {
				t.Errorf("the profile of the command line is %q", command)
			}
			if goroutines := profile(t, "http://"+address+"/debug/pprof/goroutine?debug=1"); !strings.Contains(goroutines, "goroutine profile: total") {
				t.Errorf("the profile of goroutines is %.100q", goroutines)
			}
			refused := kit.Run(t, p.env, kit.Bin(t, p.name), append(p.args, "--"+profiling.Flag, "0.0.0.0:0")...)
			if refused.Code == 0 || !strings.Contains(refused.Output, "not a loopback address") {
				t.Errorf("an address of the network: exit code %d, %s", refused.Code, refused.Output)
			}
		})
	}
	if r := s.Shell(t, "kubectl get --raw /debug/pprof/"); r.Code == 0 {
		t.Errorf("the secure port serves profiles to the administrator: %s", r.Output)
	}
}

func profile(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, resp.Status, err)
	}
	return string(body)
}
