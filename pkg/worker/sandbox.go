// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Seal keeps all other processes of the same user, including the programs of this and other runs, out of the worker's
// memory. A worker that gets its credentials through standard input is sealed only when they arrive: until then it
// holds no secret, and an executor that undoes an interrupted start must be able to recognise the worker by its
// environment.
func Seal(getenv func(string) string, stdin *os.File) error {
	if getenv(runspec.EnvCredentials) == runspec.CredentialsStdin {
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(stdin.Fd()), Events: unix.POLLIN}}, -1)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("wait for credentials: %w", err)
			}
		}
	}
	return sandbox.Seal()
}

// readSandbox parses the operator's configuration. An empty text means the default, a complete sandbox.
func readSandbox(text string) (runspec.Sandbox, error) {
	var s runspec.Sandbox
	if text == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvSandbox, err)
	}
	return s, nil
}

// policy returns what programs of the run may reach. Outside of a pod that is the system, read-only, and the run's
// own folders. In a pod it is the whole container, whose image is not known, except for the worker's own files. The command of
// a person's task in the worker's own container has the network of the pod; other programs, among them commands that an agent
// delegated, have none, unless their run adds a proxy.
func (c *Config) policy(t *v1alpha1.Task) sandbox.Policy {
	p := sandbox.Policy{Off: c.Sandbox.Off, Hide: c.Sandbox.Hide, Groups: cgroup.PlaceOf(c.Sandbox.Groups, c.TaskUID, c.Attempt)}
	if c.pod() {
		p.Network, p.Write = c.Contained && t.Status.Delegation == nil, []string{"/"}
		p.Hide = append([]string{"/proc"}, p.Hide...)
		for _, path := range []string{c.credentialsDir, c.TerminationLog, c.SpoolDir, c.workspaceBaseline} {
			if path != "" {
				p.Hide = append(p.Hide, path)
			}
		}
		if c.transactionFile != "" && !c.Contained { // a command is what the token is for; a model's programs are not
			p.Hide = append(p.Hide, filepath.Dir(c.transactionFile))
		}
		if c.TokenPath != "" { // hide the folder: it is replaced as a whole when the token is renewed
			p.Hide = append(p.Hide, filepath.Dir(c.TokenPath))
		}
		return p
	}
	p.Read = append(sandbox.System(), c.Sandbox.Read...)
	p.Write = []string{c.WorkDir, c.TempDir}
	if c.ArtifactsDir != "" {
		p.Write = append(p.Write, c.ArtifactsDir)
	}
	return p
}

// pod reports whether the worker runs in its own pod.
func (c *Config) pod() bool { return c.Contained || c.TokenPath != "" }
