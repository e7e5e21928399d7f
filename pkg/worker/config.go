// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool/exec"
)

// maxCredentials bounds the credentials document, in bytes.
const maxCredentials = 4 << 20

// Config is everything a worker is started with.
type Config struct {
	TaskName, TaskNamespace, TaskUID string
	Attempt                          int
	// ServerURL and CAFile say where the API is and how its certificate is checked.
	ServerURL, CAFile string
	// TokenPath is read again as it changes; it wins over Credentials.Token.
	TokenPath   string
	Credentials runspec.Credentials
	// WorkDir, TempDir and ArtifactsDir are the run's folders. ArtifactsDir may be empty.
	WorkDir, TempDir, ArtifactsDir string
	TerminationLog                 string
	HostCommands                   bool
	// FetchAllow are the host:port that web_fetch may reach although they are private.
	FetchAllow []string
	// SearchURL is the search service of web_search, empty for none.
	SearchURL string
	// CodeLimits are the limits of code_exec; zero fields have defaults.
	CodeLimits exec.Limits
	// Getenv reads the worker's environment, for the variables of container tasks.
	Getenv func(string) string
}

// ErrUsage is in the chain of the error for a worker that was started wrongly.
var ErrUsage = errors.New("worker: started wrongly")

// LoadConfig reads the contract of package runspec.
func LoadConfig(getenv func(string) string, stdin io.Reader) (*Config, error) {
	c := &Config{
		TaskName: getenv(runspec.EnvTaskName), TaskNamespace: getenv(runspec.EnvTaskNamespace), TaskUID: getenv(runspec.EnvTaskUID),
		ServerURL: getenv(runspec.EnvControllerURL), CAFile: getenv(runspec.EnvCAFile), TokenPath: getenv(runspec.EnvTokenPath),
		WorkDir: getenv(runspec.EnvWorkDir), ArtifactsDir: getenv(runspec.EnvArtifactsDir), TempDir: os.TempDir(),
		TerminationLog: getenv(runspec.EnvTerminationLog), HostCommands: getenv(runspec.EnvHostCommands) == "true",
		SearchURL: getenv(runspec.EnvSearchURL), Getenv: getenv,
	}
	for name, value := range map[string]string{
		runspec.EnvTaskName: c.TaskName, runspec.EnvTaskNamespace: c.TaskNamespace, runspec.EnvTaskUID: c.TaskUID,
		runspec.EnvControllerURL: c.ServerURL, runspec.EnvWorkDir: c.WorkDir,
	} {
		if value == "" {
			return nil, fmt.Errorf("%w: %s is not set", ErrUsage, name)
		}
	}
	var err error
	if c.Attempt, err = strconv.Atoi(getenv(runspec.EnvAttempt)); err != nil || c.Attempt < 1 {
		return nil, fmt.Errorf("%w: %s is not a number from 1", ErrUsage, runspec.EnvAttempt)
	}
	if c.FetchAllow, err = egress.ParseAllow(getenv(runspec.EnvWebFetchAllow)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvWebFetchAllow, err)
	}
	if c.CodeLimits, err = codeLimits(getenv); err != nil {
		return nil, err
	}
	if c.Credentials, err = readCredentials(getenv(runspec.EnvCredentials), stdin); err != nil {
		return nil, err
	}
	if c.TokenPath == "" && c.Credentials.Token == "" {
		return nil, fmt.Errorf("%w: there is no token", ErrUsage)
	}
	return c, nil
}

// codeLimits reads the operator's limits of code_exec.
func codeLimits(getenv func(string) string) (exec.Limits, error) {
	number := func(name string) (uint64, error) {
		s := getenv(name)
		if s == "" {
			return 0, nil
		}
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%w: %s is not a positive number", ErrUsage, name)
		}
		return n, nil
	}
	cpu, err1 := number(runspec.EnvCodeCPUSeconds)
	memory, err2 := number(runspec.EnvCodeMemoryKB)
	processes, err3 := number(runspec.EnvCodeMaxProcesses)
	return exec.Limits{CPU: time.Duration(cpu) * time.Second, MemoryBytes: memory << 10, Processes: processes},
		errors.Join(err1, err2, err3)
}

// readCredentials reads the document from standard input or a file. Its
// content is in no error.
func readCredentials(from string, stdin io.Reader) (runspec.Credentials, error) {
	var c runspec.Credentials
	switch from {
	case "":
		return c, nil
	case runspec.CredentialsStdin:
	default:
		f, err := os.Open(from)
		if err != nil {
			return c, fmt.Errorf("%w: credentials: %w", ErrUsage, err)
		}
		defer func() { _ = f.Close() }()
		stdin = f
	}
	raw, err := io.ReadAll(io.LimitReader(stdin, maxCredentials))
	if err != nil {
		return c, fmt.Errorf("%w: credentials: %w", ErrUsage, err)
	}
	if json.Unmarshal(raw, &c) != nil {
		return runspec.Credentials{}, fmt.Errorf("%w: credentials are not the expected JSON document", ErrUsage)
	}
	return c, nil
}
