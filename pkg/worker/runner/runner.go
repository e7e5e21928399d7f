// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner defines the interface of what runs a task, and the data that it gets. Each
// kind of task implements it in a package of its own. The worker that calls it reads the
// configuration, stores and sends events, log and result, and selects the runner for a task.
//
// Every runner follows these rules, which the conformance tests of pkg/worker check:
//
//   - It returns soon after its context has ended, with the reason WorkerStopped.
//   - Each error is a *Error with a documented reason, or the error of a request to the API server.
//   - Its result is bounded, even if it comes with an error.
//   - It writes to Log and Recorder only; both remove secrets.
//   - It leaves no process behind.
package runner

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Runner does the work of one kind of task.
type Runner interface {
	// Run does the work of one attempt. It returns what the attempt produced, also together with
	// an error.
	Run(ctx context.Context, r *Run) (Result, error)
}

// Func is a function that implements Runner.
type Func func(ctx context.Context, r *Run) (Result, error)

// Run calls the function.
func (f Func) Run(ctx context.Context, r *Run) (Result, error) { return f(ctx, r) }

// Result is what a run produced.
type Result struct {
	// Text is the task's result; it may be empty.
	Text string
	// Content becomes part of the worker's last event: counts, sizes and names.
	Content map[string]any
}

// Recorder appends events to the task's stream, after it has removed secrets. It satisfies agentloop.Recorder, which
// is declared apart because a loop never waits for an event and does not know runners.
type Recorder interface {
	// Record queues an event. It neither fails nor blocks: a lost event never fails a run.
	Record(e *v1alpha1.ExecutionEvent)
	// Commit records an event and returns when it is stored, with everything that was recorded
	// before it. It waits as long as the API server is unavailable.
	Commit(ctx context.Context, e *v1alpha1.ExecutionEvent) error
	// Begin stores the event that a model request starts, after everything that was recorded
	// before it, and returns when the request may be sent. It waits as long as the API server is
	// unavailable or a rate limit applies. The error is that of ctx, one of the API, or an Error
	// with ReasonTokenBudgetExhausted.
	Begin(ctx context.Context, e *v1alpha1.ExecutionEvent) error
}

// Repository is the repository of a task whose work is done elsewhere. Its files are in the working folder, as they were.
type Repository interface {
	// Commit is what the files are from.
	Commit() string
	// Pack writes a file with all of them, as a runtime takes it.
	Pack(ctx context.Context, file string) error
	// Apply makes the changes of the file of a delta in the working folder, and returns how many files it changes.
	Apply(ctx context.Context, file string) (int, error)
}

// Log is the task's log. It removes secrets from what is written to it.
type Log interface {
	// Write adds output of a program. It never fails.
	io.Writer
	// Line adds a line of the worker itself, with the time.
	Line(format string, args ...any)
}

// Run is one attempt of a task, with everything that a runner may use.
type Run struct {
	Task    *v1alpha1.Task
	Attempt int
	// API reads what the task refers to.
	API      *client.API
	Recorder Recorder
	Log      Log
	// Scrub removes the values of the run's secrets from a text.
	Scrub func(text string) string
	// SecretsIn returns the values of the run's secrets that a JSON text contains.
	SecretsIn func(text []byte) []string
	Clock     clock.Clock
	Config
	// Repository does what a run elsewhere needs of the task's repository; nil for a task without one.
	Repository Repository
	// Policy is what programs of the run may reach.
	Policy sandbox.Policy
}

// Config is what the process that started the worker decided about the run.
type Config struct {
	// WorkDir, TempDir and ArtifactsDir are the run's folders. ArtifactsDir may be empty.
	WorkDir, TempDir, ArtifactsDir string
	// HomeDir is the home folder of programs; empty for WorkDir. What a repository contains is never in it, because programs
	// read their configuration there.
	HomeDir string
	// Credentials are the run's keys. A runner gets them without the worker's token.
	Credentials runspec.Credentials
	// HostCommands allows tasks of type container to run as commands of this host.
	HostCommands bool
	// Contained says that commands run in the worker's own container.
	Contained bool
	// FetchAllow lists host:port that web_fetch may reach although their addresses are private.
	FetchAllow []string
	// Agents is where programs of coding agents are looked for.
	Agents agentprogram.Where
	// Remote is the registered runtime at which the coding agent of the run is; nil for none.
	Remote *runspec.Remote
	// SearchURL is the URL of the search service that web_search uses; empty for none.
	SearchURL string
	// CodeLimits are the limits of code_exec; zero fields have defaults. Those of processes and of deleted files
	// are also the ones of commands.
	CodeLimits sandbox.Limits
	// Getenv reads the worker's environment, for the variables of container tasks, and Environ
	// returns all of it.
	Getenv  func(string) string
	Environ func() []string
}

// Home returns the home folder of programs.
func (c *Config) Home() string { return cmp.Or(c.HomeDir, c.WorkDir) }

// Env returns the environment variables that describe the run to its programs. None of them is
// secret. By the task's UID and attempt an executor also finds processes that are left of a
// run.
func (r *Run) Env() []string {
	env := []string{
		runspec.EnvTaskName + "=" + r.Task.Name, runspec.EnvTaskNamespace + "=" + r.Task.Namespace, runspec.EnvTaskUID + "=" + string(r.Task.UID),
		fmt.Sprintf("%s=%d", runspec.EnvAttempt, r.Attempt), runspec.EnvWorkDir + "=" + r.WorkDir, runspec.EnvArtifactsDir + "=" + r.ArtifactsDir,
	}
	for _, n := range runspec.Names(r.Task) {
		env = append(env, n[0]+"="+n[1])
	}
	return env
}
