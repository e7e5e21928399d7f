// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// maxCredentials bounds the credentials document, in bytes. One ConfigMap can have up to 1 MiB.
const maxCredentials = 64 << 20

// Config is everything a worker is started with.
type Config struct {
	TaskName, TaskNamespace, TaskUID string
	Attempt                          int
	// ServerURL and CAFile say where the API is and how its certificate is checked.
	ServerURL, CAFile string
	// TokenPath is the path of a file with the token, which is read again as it changes. It overrides
	// Credentials.Token.
	TokenPath string
	// Config is the part of the configuration that runners get.
	runner.Config
	TerminationLog string
	// SpoolDir is the folder of the spool; empty for none. Deliver says that the worker only sends
	// what is in the spool.
	SpoolDir string
	Deliver  bool
	// DeliveryTime is how long the delivery may go on after the worker was asked to stop.
	DeliveryTime time.Duration
	// Sandbox configures the sandbox of the run's programs.
	Sandbox runspec.Sandbox
	// credentialsDir is where Credentials were read from; empty if it was standard input.
	credentialsDir string
	// repositoryAllow lists host:port from which a repository may be fetched although its address is private, and
	// workspaceProgram is the program that does it. workspaceAnswer is the file with its report if it has done it before the worker
	// was started; empty if it has not.
	repositoryAllow                   []string
	workspaceProgram, workspaceAnswer string
	// workspaceBaseline is the folder with the commit that the repository's files were made from; empty for one in the spool.
	workspaceBaseline string
	// transactionFile has the task's transaction token; empty for none.
	transactionFile string
	// SecretDirs are folders whose files are secrets.
	SecretDirs []string
}

// ErrUsage is in the chain of the error of a worker that was started with an invalid configuration.
var ErrUsage = errors.New("the worker was started with an invalid configuration")

// errNotBegun means that the process that started the worker ended before it gave the credentials.
var errNotBegun = fmt.Errorf("%w: no credentials were received", ErrUsage)

// readRemote reads the registered runtime of a run; nil if it has none.
func readRemote(text string) (*runspec.Remote, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the run has none
	}
	r := &runspec.Remote{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvRemote, err)
	}
	return r, nil
}

// LoadConfig reads the configuration that package runspec defines.
func LoadConfig(getenv func(string) string, stdin io.Reader) (*Config, error) {
	c := &Config{
		TaskName: getenv(runspec.EnvTaskName), TaskNamespace: getenv(runspec.EnvTaskNamespace), TaskUID: getenv(runspec.EnvTaskUID),
		ServerURL: getenv(runspec.EnvControllerURL), CAFile: getenv(runspec.EnvCAFile), TokenPath: getenv(runspec.EnvTokenPath),
		TerminationLog: getenv(runspec.EnvTerminationLog), SecretDirs: split(getenv(runspec.EnvSecretDirs), ":"),
		SpoolDir: getenv(runspec.EnvSpoolDir), Deliver: getenv(runspec.EnvDeliver) == "true",
		Config: runner.Config{
			WorkDir: getenv(runspec.EnvWorkDir), ArtifactsDir: getenv(runspec.EnvArtifactsDir), TempDir: os.TempDir(),
			HostCommands: getenv(runspec.EnvHostCommands) == "true", Contained: getenv(runspec.EnvContained) == "true",
			SearchURL: getenv(runspec.EnvSearchURL), Getenv: getenv, Environ: os.Environ,
		},
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
		return nil, fmt.Errorf("%w: %s must be a number from 1", ErrUsage, runspec.EnvAttempt)
	}
	if d := getenv(runspec.EnvDeliveryTime); d != "" {
		if c.DeliveryTime, err = time.ParseDuration(d); err != nil || c.DeliveryTime < 0 {
			return nil, fmt.Errorf("%w: %s must be a duration such as 5m", ErrUsage, runspec.EnvDeliveryTime)
		}
	}
	if err = c.readLists(getenv); err != nil {
		return nil, err
	}
	if c.Remote, err = readRemote(getenv(runspec.EnvRemote)); err != nil {
		return nil, err
	}
	c.workspaceProgram, c.workspaceAnswer = getenv(runspec.EnvWorkspaceProgram), getenv(runspec.EnvWorkspaceAnswer)
	c.workspaceBaseline = getenv(runspec.EnvWorkspaceBaseline)
	if c.CodeLimits, err = codeLimits(getenv); err != nil {
		return nil, err
	}
	if c.Sandbox, err = readSandbox(getenv(runspec.EnvSandbox)); err != nil {
		return nil, err
	}
	c.CodeLimits.DeletedBytes = cmp.Or(c.Sandbox.DiskBytes, runspec.DefaultDiskBytes)
	if from := getenv(runspec.EnvCredentials); from != runspec.CredentialsStdin {
		c.credentialsDir = from
	}
	if c.Credentials, err = readCredentials(getenv(runspec.EnvCredentials), stdin); err != nil {
		return nil, err
	}
	if hosts := getenv(runspec.EnvSecretHosts); hosts != "" && c.credentialsDir != "" {
		// Without its rules a key could be sent anywhere.
		if err := json.Unmarshal([]byte(hosts), &c.Credentials.Hosts); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvSecretHosts, err)
		}
	}
	if c.transactionFile = getenv(runspec.EnvSubjectTokenFile); c.transactionFile != "" && c.TokenPath != "" {
		token, err := os.ReadFile(c.transactionFile)
		if err != nil {
			return nil, fmt.Errorf("%w: transaction token: %w", ErrUsage, err)
		}
		c.Credentials.TransactionToken = strings.TrimSpace(string(token))
	}
	c.Credentials.Env = withSecretEnv(c.Credentials.Env, getenv)
	if c.TokenPath == "" && c.Credentials.Token == "" {
		return nil, fmt.Errorf("%w: the credentials lack a token", ErrUsage)
	}
	return c, nil
}

// codeLimits reads the operator's limits of code_exec.
func codeLimits(getenv func(string) string) (sandbox.Limits, error) {
	number := func(name string) (uint64, error) {
		s := getenv(name)
		if s == "" {
			return 0, nil
		}
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%w: %s must be a positive number", ErrUsage, name)
		}
		return n, nil
	}
	cpu, err1 := number(runspec.EnvCodeCPUSeconds)
	memory, err2 := number(runspec.EnvCodeMemoryKB)
	processes, err3 := number(runspec.EnvCodeMaxProcesses)
	return sandbox.Limits{CPU: time.Duration(cpu) * time.Second, MemoryBytes: memory << 10, Processes: processes},
		errors.Join(err1, err2, err3)
}

// split is like strings.Split, without empty parts.
// readLists reads the operator's lists of what a run may reach.
func (c *Config) readLists(getenv func(string) string) (err error) {
	if c.FetchAllow, err = egress.ParseAllow(getenv(runspec.EnvWebFetchAllow)); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvWebFetchAllow, err)
	}
	if c.repositoryAllow, err = egress.ParseAllow(getenv(runspec.EnvRepositoryAllow)); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvRepositoryAllow, err)
	}
	c.Agents.Path, c.Agents.Image = getenv("PATH"), getenv(runspec.EnvAgentImage)
	if c.Agents.Given, err = agentprogram.ParseGiven(split(getenv(runspec.EnvAgentPrograms), ",")); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUsage, runspec.EnvAgentPrograms, err)
	}
	return nil
}

func split(list, by string) []string {
	return slices.DeleteFunc(strings.Split(list, by), func(s string) bool { return s == "" })
}

// withSecretEnv adds the values of environment variables that are secret.
func withSecretEnv(values map[string]string, getenv func(string) string) map[string]string {
	for _, name := range split(getenv(runspec.EnvSecretEnv), ",") {
		if values == nil {
			values = map[string]string{}
		}
		if v := getenv(name); v != "" {
			values[name] = v
		}
	}
	return values
}

// readCredentials reads the document from standard input or a file, or the files of a folder.
// Errors never contain their content.
func readCredentials(from string, stdin io.Reader) (runspec.Credentials, error) {
	var c runspec.Credentials
	switch from {
	case "":
		return c, nil
	case runspec.CredentialsStdin:
	default:
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			return readCredentialsDir(from)
		}
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
	if len(raw) == 0 && from == runspec.CredentialsStdin {
		return c, errNotBegun
	}
	if json.Unmarshal(raw, &c) != nil {
		return runspec.Credentials{}, fmt.Errorf("%w: credentials are not the expected JSON document", ErrUsage)
	}
	return c, nil
}

func readCredentialsDir(dir string) (runspec.Credentials, error) {
	c := runspec.Credentials{ProviderKeys: map[string]string{}, ToolKeys: map[string]string{}, ConfigMaps: map[string]string{}}
	err1 := readTree(filepath.Join(dir, runspec.CredentialProviders), "", c.ProviderKeys)
	err2 := readTree(filepath.Join(dir, runspec.CredentialTools), "", c.ToolKeys)
	err3 := readTree(filepath.Join(dir, runspec.CredentialConfigMaps), "", c.ConfigMaps)
	runtimeToken, err5 := readOne(dir, runspec.CredentialRuntimeToken)
	runtimeKey, err6 := readOne(dir, runspec.CredentialRuntimeKey)
	search, err4 := readOne(dir, runspec.CredentialSearch)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return runspec.Credentials{}, fmt.Errorf("%w: credentials: %w", ErrUsage, err)
	}
	c.SearchKey, c.RuntimeToken, c.RuntimeKey = search, runtimeToken, runtimeKey
	return c, nil
}

// readOne reads a file of a folder; empty if there is none.
func readOne(dir, name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(raw), err
}

// maxTree bounds how deep folders of credentials may be nested.
const maxTree = 16

// readTree reads the files below a folder into the map. The keys are prefix followed by the file's path with
// slashes. A missing folder counts as empty.
func readTree(dir, prefix string, into map[string]string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), "..") || strings.Count(prefix, "/") >= maxTree {
			continue
		}
		// A folder in a volume of Kubernetes is a link.
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if err := readTree(path, prefix+e.Name()+"/", into); err != nil {
				return err
			}
		}
	}
	files, err := readFiles(dir)
	for name, value := range files {
		into[prefix+name] = value
	}
	return err
}

// readFiles reads the files of a folder by name; nil if there is no such folder. It skips names
// that begin with two dots, which the kubelet uses internally.
func readFiles(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no folder, no secrets
	}
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxCredentials {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[e.Name()] = string(raw)
	}
	return files, nil
}

// newAPI returns the worker's client for the API server.
func newAPI(c *Config, clk clock.Clock) (*client.API, error) {
	folder := ""
	if c.SpoolDir != "" {
		folder = filepath.Dir(c.SpoolDir) // in a Pod a folder of the image
	}
	a, err := client.New(client.Config{ServerURL: c.ServerURL, CAFile: c.CAFile, TokenPath: c.TokenPath, Token: c.Credentials.Token, Folder: folder}, clk)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return a, nil
}
