// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/escape"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

func TestMain(m *testing.M) {
	if escape.Main(os.Stdout) {
		return
	}
	code := m.Run()
	if err := teamsAreGone(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// nobody is a user that owns nothing.
const nobody = 65534

// asNobody makes the harness start the server as another user, and returns the flags for that.
func asNobody(t *testing.T) []string {
	t.Helper()
	built, bin := filepath.Dir(kit.Bin(t, "platform-standalone")), t.TempDir()
	setpriv := fmt.Sprintf("setpriv --reuid=%d --regid=%d --clear-groups", nobody, nobody)
	if out, err := exec.Command("sh", "-c", setpriv+" test -x "+built+"/platform-worker").CombinedOutput(); err != nil {
		t.Skipf("another user cannot run the programs of %s: %v %s", built, err, out)
	}
	for _, name := range []string{"kubectl", "scriptedmodel", "platform"} {
		if err := os.Symlink(filepath.Join(built, name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	start := "#!/bin/sh\nexec " + setpriv + " " + built + "/platform-standalone \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "platform-standalone"), []byte(start), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLATFORM_BIN", bin)
	return []string{"--worker-binary", filepath.Join(built, "platform-worker")}
}

// TestSandbox tries all known escapes from a run, by a container task and by an agent's program, as root and as another
// user.
func TestSandbox(t *testing.T) {
	if err := sandbox.Probe().Check(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	users := []int{os.Getuid()}
	if os.Getuid() == 0 {
		users = append(users, nobody)
	}
	for _, uid := range users {
		t.Run(fmt.Sprintf("uid-%d", uid), func(t *testing.T) { //nolint:paralleltest // the programs differ by environment
			dir, err := os.MkdirTemp("", "e2e-sandbox") //nolint:usetesting // another user must be able to reach it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			program, data := installEscape(t, dir), filepath.Join(dir, "data")
			if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(data, 0o700), os.Chown(data, uid, uid)); err != nil {
				t.Fatal(err)
			}
			var owned []string
			if os.Getuid() == 0 {
				owned = escape.Owned(t, program, uid)
			}
			args := []string{"--allow-host-commands", "--sandbox-read-path", filepath.Dir(program)}
			if uid != os.Getuid() {
				args = append(args, asNobody(t)...)
			}
			escapes(t, local{kit.StartServer(t, data, args...)}, program, owned)
		})
	}
}

// installEscape puts the program that tries to escape into a folder of its own.
func installEscape(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	program := filepath.Join(dir, "bin", "escape")
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	return program
}

// sockets are a named and an abstract socket of another program.
func sockets(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	for _, address := range []string{filepath.Join(dir, "socket"), "@" + filepath.Base(dir)} {
		l, err := net.Listen("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		all = append(all, address)
	}
	return all
}

func escapes(t *testing.T, p local, program string, owned []string) {
	command(t, p, "other", "echo other > kept; echo begun; sleep 600", nil)
	kept := awaitFile(t, filepath.Join(p.DataDir, "runs", "*", "1", "work", "kept"))
	pki := filepath.Join(p.DataDir, "pki")
	target := escape.Target{
		Secrets: []string{p.Kubeconfig, kept, filepath.Join(filepath.Dir(filepath.Dir(kept)), "run.json")},
		Hidden:  []string{p.DataDir, pki, filepath.Join(p.DataDir, "runs"), filepath.Join(p.DataDir, "store"), filepath.Dir(kept)},
		Later:   filepath.Join(pki, "later"), Processes: []int{p.Pid()}, Signals: sandbox.Probe().Landlock >= 6,
		Owned: owned, Sockets: sockets(t, filepath.Dir(p.DataDir)),
	}
	keys, err := filepath.Glob(filepath.Join(pki, "*"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("no keys in %s: %v", pki, err)
	}
	target.Secrets = append(target.Secrets, keys...)
	for _, address := range regexp.MustCompile(`https?://[0-9.]+:[0-9]+`).FindAllString(p.Output(), -1) {
		if u, err := url.Parse(address); err == nil && u.Port() != "" {
			target.Ports = append(target.Ports, u.Host, "[::1]:"+u.Port())
		}
	}
	if len(target.Ports) < 4 {
		t.Fatalf("the server listens on %v:\n%s", target.Ports, p.Output())
	}
	raw, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("container", func(t *testing.T) {
		command(t, p, "escapes", "", map[string]any{"command": []string{program, escape.Argument, string(raw)}, "args": []string{}})
		awaitFile(t, filepath.Join(p.DataDir, "runs", "*", "1", "work", "begun"))
		if err := os.WriteFile(target.Later, []byte("later"), 0o644); err != nil {
			t.Fatal(err)
		}
		nothingOpen(t, p, "escapes")
	})
	t.Run("code_exec", func(t *testing.T) {
		call, err := json.Marshal(map[string]any{"language": "bash", "timeout": 60, "code": fmt.Sprintf("exec %s %s '%s'", program, escape.Argument, raw)})
		if err != nil {
			t.Fatal(err)
		}
		url := startModelWith(t, p, &script.Script{Models: []string{"scripted-1"}, Turns: []script.Turn{
			{Match: script.Match{Turn: 1}, Reply: script.Reply{ToolCalls: []script.ToolCall{{Name: "code_exec", Arguments: call}}}},
			{Match: script.Match{Turn: 2}, Reply: script.Reply{Text: "{{ .Results.code_exec.data.output }}"}},
		}})
		applyTeam(t, p, url)
		applyTask(t, p, "escapes-too", "escape")
		nothingOpen(t, p, "escapes-too")
	})
	events := p.MustShell(t, "kubectl get executionevents --field-selector taskName=escapes,type=WorkerStarted -o json")
	if !strings.Contains(events, `"sandbox": "Landlock `) {
		t.Errorf("the sandbox is not in the run's events: %s", events)
	}
}

// nothingOpen reads the result of a task that tried to escape.
func nothingOpen(t *testing.T, p local, name string) {
	t.Helper()
	p.MustShell(t, "kubectl wait --for=condition=Complete --timeout=300s task/"+name)
	out := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/"+name+"/result"))
	var result struct {
		Result string `json:"result"`
	}
	if err := json.Unmarshal([]byte(out), &result); err == nil && result.Result != "" {
		out = result.Result
	}
	if open, tried := escape.Open(out); !tried || len(open) > 0 {
		t.Errorf("open: %s\nof\n%s", strings.Join(open, "\n"), out)
	}
	if left := escape.Missing(out, escape.Target{Signals: sandbox.Probe().Landlock >= 6}.Impossible()...); len(left) > 0 {
		t.Errorf("not tried:\n%s\nof\n%s", strings.Join(left, "\n"), out)
	}
}

// awaitFile returns the first file of a pattern as soon as there is one.
func awaitFile(t *testing.T, pattern string) string {
	t.Helper()
	var found []string
	kit.Await(t, pattern, func() bool {
		var err error
		if found, err = filepath.Glob(pattern); err != nil {
			t.Fatal(err)
		}
		return len(found) > 0
	})
	return found[0]
}

// TestSandboxOff: the operator can turn the sandbox off, and that is reported.
func TestSandboxOff(t *testing.T) {
	t.Parallel()
	p := local{kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--sandbox=off")}
	p.Await(t, "THE SANDBOX IS OFF")
	command(t, p, "reads", "cat "+p.Kubeconfig, nil)
	p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=300s task/reads")
	if events := p.MustShell(t, "kubectl get executionevents --field-selector taskName=reads,type=WorkerStarted -o json"); !strings.Contains(events, `"sandbox": "off"`) {
		t.Errorf("the run's events do not say that there was no sandbox: %s", events)
	}
}
