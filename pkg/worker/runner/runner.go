// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner is what runs a task: the interface that every kind of task
// implements in a package of its own, and what such a package is given. The
// worker around it reads configuration, keeps and sends events, log and result,
// and decides which runner a task gets.
//
// Every runner keeps these rules, which the conformance tests of pkg/worker check:
//
//   - It returns soon after its context has ended, with the reason Stopped.
//   - Each error is a *Error with a documented reason, or the error of a request to the API server.
//   - Its result is bounded, also beside an error.
//   - It writes to Log and Recorder only; both clean what they get of secrets.
//   - It leaves no process behind.
package runner

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Runner does the work of one kind of task.
type Runner interface {
	// Run does the work of one attempt. It returns what the attempt produced, also
	// beside an error.
	Run(ctx context.Context, r *Run) (Result, error)
}

// Func is a Runner that is one function.
type Func func(ctx context.Context, r *Run) (Result, error)

// Run calls the function.
func (f Func) Run(ctx context.Context, r *Run) (Result, error) { return f(ctx, r) }

// Result is what a run produced.
type Result struct {
	// Text is the task's result; it may be empty.
	Text string
	// Content goes into the worker's last event: counts, sizes and names.
	Content map[string]any
}

// Recorder appends events to the task's stream. What it gets is cleaned of secrets.
type Recorder interface {
	// Record queues an event. It neither fails nor waits: a lost event never fails a run.
	Record(e *v1alpha1.ExecutionEvent)
	// Commit records an event and returns when it is stored, with everything that
	// was recorded before it. It waits as long as the API server is away.
	Commit(ctx context.Context, e *v1alpha1.ExecutionEvent) error
}

// Log is the task's log. What it gets is cleaned of secrets.
type Log interface {
	// Write adds output of a program. It never fails.
	io.Writer
	// Line adds a line of the worker's own, with the time.
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
	Clock clock.Clock
	Config
	// Policy is what programs of the run may reach.
	Policy sandbox.Policy
}

// Config is what whoever started the worker decided about the run.
type Config struct {
	// WorkDir, TempDir and ArtifactsDir are the run's folders. ArtifactsDir may be empty.
	WorkDir, TempDir, ArtifactsDir string
	// Credentials are the run's keys. A runner gets them without the worker's token.
	Credentials runspec.Credentials
	// HostCommands allows tasks of type container to run as commands of this host.
	HostCommands bool
	// Contained says that commands are those of the worker's own container.
	Contained bool
	// FetchAllow are the host:port that web_fetch may reach although they are private.
	FetchAllow []string
	// SearchURL is the search service of web_search, empty for none.
	SearchURL string
	// CodeLimits are the limits of code_exec; zero fields have defaults.
	CodeLimits sandbox.Limits
	// Getenv reads the worker's environment, for the variables of container tasks,
	// and Environ has all of it.
	Getenv  func(string) string
	Environ func() []string
}

// Env tells the programs of a run where they are. None of it is secret; the
// task's UID and attempt also let an executor find what is left of a run.
func (r *Run) Env() []string {
	return []string{
		runspec.EnvTaskName + "=" + r.Task.Name, runspec.EnvTaskNamespace + "=" + r.Task.Namespace, runspec.EnvTaskUID + "=" + string(r.Task.UID),
		fmt.Sprintf("%s=%d", runspec.EnvAttempt, r.Attempt), runspec.EnvWorkDir + "=" + r.WorkDir, runspec.EnvArtifactsDir + "=" + r.ArtifactsDir,
	}
}
