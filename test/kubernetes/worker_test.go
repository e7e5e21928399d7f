// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker"
)

// envMode is the environment variable that selects what the test binary does as the worker of a run.
const envMode = "MODE"

// TestMain lets the test binary act as the worker in a container of its own. The
// tests are about the executor, whose contract with a worker is package runspec.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "install":
		if err := worker.Install(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(runspec.EnvTaskUID) != "":
		os.Exit(work(os.Getenv(envMode)))
	default:
		os.Exit(m.Run())
	}
}

func work(mode string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	switch mode {
	case "look":
		return report("Looked", look(), 0)
	case "fail":
		return report("ModelQuotaExhausted", "no more of it", 1)
	case "silent":
		fmt.Fprintln(os.Stderr, "the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD and nothing works")
		return 3
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // the kernel spares the first process of a container
		child := exec.Command(os.Args[0])
		_ = child.Run()
		return 128 + 9
	case "memory":
		var hoard [][]byte
		for {
			b := make([]byte, 4<<20)
			for i := range b {
				b[i] = 1
			}
			hoard = append(hoard, b)
			if len(hoard) > 1<<12 {
				return 4
			}
		}
	case "wait":
		<-stop
		return report("WorkerStopped", "the worker was stopped", 1)
	case "stubborn":
		for range stop {
		}
	}
	return report("Unknown", mode, 2)
}

func report(reason, message string, code int) int {
	raw, err := json.Marshal(runspec.Termination{Reason: reason, Message: message, ExitCode: code})
	if err == nil {
		err = os.WriteFile(os.Getenv(runspec.EnvTerminationLog), raw, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	return code
}

// look reports what a worker finds in its container.
func look() string {
	var found []string
	add := func(name, value string) { found = append(found, name+"="+value) }
	can := func(name, path string, write bool) {
		var err error
		if write {
			err = os.WriteFile(filepath.Join(path, "probe"), nil, 0o600)
		} else {
			_, err = os.ReadFile(path)
		}
		add(name, fmt.Sprint(err == nil))
	}
	add("user", fmt.Sprint(os.Getuid(), ":", os.Getgid()))
	add("task", os.Getenv(runspec.EnvTaskNamespace)+"/"+os.Getenv(runspec.EnvTaskName)+"#"+os.Getenv(runspec.EnvAttempt))
	add("url", os.Getenv(runspec.EnvControllerURL))
	add("key", os.Getenv("KEY"))
	add("program", os.Args[0])
	can("root", "/", true)
	can("workspace", os.Getenv(runspec.EnvWorkDir), true)
	can("artifacts", os.Getenv(runspec.EnvArtifactsDir), true)
	can("home", os.Getenv("HOME"), true)
	can("temp", os.TempDir(), true)
	can("token", os.Getenv(runspec.EnvTokenPath), false)
	can("ca", os.Getenv(runspec.EnvCAFile), false)
	can("default token", "/var/run/secrets/kubernetes.io/serviceaccount/token", false)
	for _, path := range []string{"/secrets/task/k", "/secrets/run/providers/agents/openai"} {
		b, _ := os.ReadFile(path)
		add(path, string(b))
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		for _, name := range []string{"CapEff:", "NoNewPrivs:", "Seccomp:"} {
			if v, ok := strings.CutPrefix(line, name); ok {
				add(strings.TrimSuffix(name, ":"), strings.TrimSpace(v))
			}
		}
	}
	return strings.Join(found, " ")
}
