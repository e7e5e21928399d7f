// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runner/container"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// projected writes files as the kubelet does: into a folder that is reached through a link, with a link for the
// first part of each path.
func projected(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	now := filepath.Join(dir, "..2026_01_01")
	for name, content := range files {
		path := filepath.Join(now, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(name, "/")
		if err := os.Symlink(filepath.Join("..data", first), filepath.Join(dir, first)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..2026_01_01", filepath.Join(dir, "..data")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return dir
}

// TestCredentialsFolder: a Job's credentials are files that kubelet projects.
func TestCredentialsFolder(t *testing.T) {
	run := projected(t, map[string]string{"providers/agents/openai": "key-of-openai", "providers/other/openai": "key-of-azure", "tools/agents/weather": "key-of-weather", "search": "key-of-search", "configmaps/agents/texts/prompt": "a prompt"})
	mounted := projected(t, map[string]string{"password": "value-that-is-mounted\n"})
	change := map[string]string{
		runspec.EnvCredentials: run, runspec.EnvTokenPath: "/token", runspec.EnvSecretDirs: mounted + ":/none",
		runspec.EnvSecretEnv: "KEY,NONE", "KEY": "value-of-key",
	}
	c, err := LoadConfig(environment(change), strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	want := runspec.Credentials{
		ProviderKeys: map[string]string{"agents/openai": "key-of-openai", "other/openai": "key-of-azure"}, ToolKeys: map[string]string{"agents/weather": "key-of-weather"},
		SearchKey: "key-of-search", Env: map[string]string{"KEY": "value-of-key"},
		ConfigMaps: map[string]string{"agents/texts/prompt": "a prompt"},
	}
	if d := cmp.Diff(want, c.Credentials); d != "" {
		t.Error(d)
	}
	said := secretsOf(c).scrub("key-of-openai key-of-azure key-of-weather key-of-search value-of-key value-that-is-mounted and this: a prompt")
	if strings.Count(said, "[REDACTED]") != 6 || !strings.HasSuffix(said, "and this: a prompt") {
		t.Errorf("scrubbed: %s", said)
	}
	change[runspec.EnvCredentials] = projected(t, nil)
	if c, err := LoadConfig(environment(change), strings.NewReader("")); err != nil || len(c.Credentials.ProviderKeys)+len(c.Credentials.ConfigMaps) > 0 || c.Credentials.SearchKey != "" {
		t.Errorf("an empty folder: %+v, %v", c, err)
	}
}

// TestGivenSecretsAreRemoved: in every form in which a program can repeat them.
func TestGivenSecretsAreRemoved(t *testing.T) {
	const quoted, lines = `p"a\s<s>&word`, "first: 0ne-two-3hree\nName: plain\nc2Vjb25kLWxpbmUtb2YtYS1rZXk3\n"
	c := &Config{}
	c.Credentials.Env = map[string]string{"A": "abcdef", "B": "abcdef-prod-9f", "C": quoted, "D": lines}
	s := secretsOf(c)
	raw, err := json.Marshal(map[string]string{"password": quoted, "lines": lines})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"x abcdef-prod-9f abcdef":           "x [REDACTED] [REDACTED]",
		"x " + quoted:                       "x [REDACTED]",
		string(raw):                         `{"lines":"[REDACTED]","password":"[REDACTED]"}`,
		`{"c":"p\"a\\s<s>&word"}`:           `{"c":"[REDACTED]"}`,
		"2: c2Vjb25kLWxpbmUtb2YtYS1rZXk3\n": "2: [REDACTED]\n",
		"Name: plain\n":                     "Name: plain\n",
	} {
		if got := s.scrub(text); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestTransactionTokenFile: a Pod has its task's transaction token in a file. The worker reads it and keeps it out of what it
// sends. The programs of a model cannot read it; a command, for which it is, can.
func TestTransactionTokenFile(t *testing.T) {
	file := filepath.Join(projected(t, map[string]string{"token": "value-of-token\n"}), "token")
	change := map[string]string{runspec.EnvSubjectTokenFile: file, runspec.EnvTokenPath: "/token", runspec.EnvCredentials: projected(t, nil)}
	for _, contained := range []bool{false, true} {
		change[runspec.EnvContained] = fmt.Sprint(contained)
		c, err := LoadConfig(environment(change), strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		if c.Credentials.TransactionToken != "value-of-token" || secretsOf(c).scrub("value-of-token") != "[REDACTED]" {
			t.Errorf("read %q", c.Credentials.TransactionToken)
		}
		if hidden := slices.Contains(c.policy(containerTask("true")).Hide, filepath.Dir(file)); hidden == contained {
			t.Errorf("contained: %t, hidden: %t", contained, hidden)
		}
	}
	change[runspec.EnvSubjectTokenFile] = filepath.Join(t.TempDir(), "none")
	if _, err := LoadConfig(environment(change), strings.NewReader("")); err == nil {
		t.Error("a run began without its token")
	}
}

// TestContainedCommand: in the task's own container a command needs no permission of the operator, has the
// container's environment, and does not get the worker's own variables.
func TestContainedCommand(t *testing.T) {
	w := newTestWorker(t, func(c *Config) {
		c.Contained = true
		c.Credentials.Env = map[string]string{"KEY": "value-of-key"}
		c.Environ = func() []string {
			return []string{
				"PATH=" + os.Getenv("PATH"), "FROM_IMAGE=1", "KEY=value-of-key", runspec.EnvTaskName + "=forged",
				runspec.EnvSecretEnv + "=KEY", runspec.EnvTerminationLog + "=/log", runspec.EnvSearchURL + "=https://search",
			}
		}
	})
	task := containerTask(`echo $FROM_IMAGE $PLATFORM_TASK_NAME ${#KEY}; pwd; env | grep -E "SECRET_ENV|TERMINATION|SEARCH" ; echo $KEY`)
	task.Spec.Image = "alpine"
	task.Spec.Env = []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	d, err := container.Runner.Run(t.Context(), w.given(task))
	if err != nil || !strings.HasPrefix(d.Text, "1 t 12\n"+here+"\n") || strings.Count(d.Text, "\n") != 3 {
		t.Errorf("%q, %v", d.Text, err)
	}
	if log := logged(w); strings.Contains(log, "value-of-key") || strings.Contains(log, "is not used") {
		t.Errorf("log %s", log)
	}
	t.Chdir("/")
	if d, err := container.Runner.Run(t.Context(), w.given(containerTask("pwd"))); err != nil || d.Text != w.config.WorkDir+"\n" {
		t.Errorf("without a folder of the image: %q, %v", d.Text, err)
	}
}

// TestInstall copies the program that runs.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // a container may be started again
		if err := Install(dir); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(self)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(filepath.Join(dir, runspec.ProgramName))
	if err != nil || got.Size() != want.Size() || got.Mode().Perm()&0o555 != 0o555 {
		t.Errorf("installed %v, %v", got, err)
	}
	if err := Install(filepath.Join(dir, "none")); err == nil {
		t.Error("installed into no folder")
	}
}

// TestKeysOfPods: in a Pod, where a command may use the whole container, it cannot read the token of its worker, the keys of
// Providers, what the worker has yet to deliver, nor the worker's memory. Without the sandbox it can.
func TestKeysOfPods(t *testing.T) {
	t.Parallel()
	if err := sandbox.Probe().Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	tokens := projected(t, map[string]string{"token": "value-of-token"})
	keys := projected(t, map[string]string{"providers/agents/openai": "value-of-key"})
	queue, ended := t.TempDir(), filepath.Join(t.TempDir(), "log")
	for _, path := range []string{filepath.Join(queue, "events"), ended} {
		if err := os.WriteFile(path, []byte("value-of-file"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{filepath.Join(tokens, "token"), filepath.Join(tokens, "..data", "token"), filepath.Join(keys, "providers/agents/openai"), filepath.Join(queue, "events"), ended, fmt.Sprintf("/proc/%d/environ", os.Getpid())}
	for _, off := range []bool{false, true} {
		w := newTestWorker(t, func(c *Config) {
			c.Contained, c.Sandbox.Off = true, off
			c.Environ = func() []string { return []string{"PATH=" + os.Getenv("PATH")} }
			c.TokenPath, c.credentialsDir, c.SpoolDir, c.TerminationLog = files[0], keys, queue, ended
		})
		task := containerTask("cd " + t.TempDir() + `; for f in ` + strings.Join(files, " ") + `; do head -c 1 "$f" > one && echo "OPEN $f"; ln -sf "$f" link; head -c 1 link > one && echo "OPEN link to $f"; done; echo done`)
		task.Spec.Image = "alpine"
		d, err := container.Runner.Run(t.Context(), w.given(task))
		if err != nil || !strings.HasSuffix(d.Text, "done\n") {
			t.Fatalf("%q, %v", d.Text, err)
		}
		if n := strings.Count(d.Text, "OPEN"); off != (n > 0) || off && n != 2*len(files) {
			t.Errorf("sandbox off: %t, %d of %d ways are open:\n%s", off, n, 2*len(files), d.Text)
		}
	}
}

// TestNetworkOfDelegatedCommands: in a Pod the command of a person's task has the network. One that an agent delegated has what
// programs of that agent have: none, or the proxy.
func TestNetworkOfDelegatedCommands(t *testing.T) { //nolint:paralleltest // the end of a command takes all children of the process with it
	if err := sandbox.Probe().CheckProxy(); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for name, tc := range map[string]struct {
		delegation *v1alpha1.TaskDelegation
		connects   bool
		proxy      bool
	}{
		"of a person":     {nil, true, false},
		"older record":    {&v1alpha1.TaskDelegation{}, false, false},
		"without network": {&v1alpha1.TaskDelegation{Network: v1alpha1.SandboxNetworkNone}, false, false},
		"public":          {&v1alpha1.TaskDelegation{Network: v1alpha1.SandboxNetworkPublic}, false, true},
	} {
		w := newTestWorker(t, func(c *Config) {
			c.Contained = true
			c.Environ = func() []string { return []string{"PATH=" + os.Getenv("PATH"), "http_proxy=http://of-the-image"} }
		})
		task := containerTask(`(: < /dev/tcp/` + strings.Replace(l.Addr().String(), ":", "/", 1) + `) && echo connected; address=${http_proxy#*@}
[ "$address" = "$http_proxy" ] || { exec 3<>"/dev/tcp/${address/://}" && printf 'GET http://example.com/ HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3; }; echo done`)
		task.Spec.Image, task.Status.Delegation = "alpine", tc.delegation
		d, err := container.Runner.Run(t.Context(), w.given(task))
		if err != nil || !strings.HasSuffix(d.Text, "done\n") || strings.Contains(d.Text, "connected") != tc.connects || strings.Contains(d.Text, "407 Proxy Authentication Required") != tc.proxy {
			t.Errorf("%s: %q, %v", name, d.Text, err)
		}
	}
}
