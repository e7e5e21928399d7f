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

	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Seal keeps the programs of this and other runs, and all else of the same user, out of the worker's memory. A worker that
// gets its credentials through standard input is sealed when they are there: until then it holds no secret, and an
// executor that takes back a start which was interrupted recognises it by its environment.
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

// readSandbox reads what the operator says. Nothing said is the whole sandbox.
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

// policy is what programs of the run may reach. On this machine that is the system, to read, and the run's own folders.
// In a pod it is the container, whose image nobody knows, without what is the worker's own in it; the network is that of
// the pod.
func (c *Config) policy() sandbox.Policy {
	p := sandbox.Policy{Off: c.Sandbox.Off, Hide: c.Sandbox.Hide}
	if c.pod() {
		p.Network, p.Write = true, []string{"/"}
		p.Hide = append([]string{"/proc"}, p.Hide...)
		for _, path := range []string{c.credentialsDir, c.TerminationLog, c.SpoolDir} {
			if path != "" {
				p.Hide = append(p.Hide, path)
			}
		}
		if c.TokenPath != "" { // its folder is replaced as a whole when it is renewed
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

// pod reports whether the worker runs in a pod of its own.
func (c *Config) pod() bool { return c.Contained || c.TokenPath != "" }
