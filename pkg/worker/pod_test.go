// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runner/container"
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
	if log := w.logged(); strings.Contains(log, "value-of-key") || strings.Contains(log, "is not used") {
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
