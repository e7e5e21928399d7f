// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executor is the seam between the task controller, which decides that
// an attempt of a task shall run, and what runs it: a local process or a
// Kubernetes Job. An executor starts an attempt at most once, however often it
// is asked, and tells the truth about it after any restart.
package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/runspec"
)

// Errors of an Executor.
var (
	// ErrNotFound: nothing is known about this attempt. It was never started, or it was removed.
	ErrNotFound = errors.New("executor: run not found")
	// ErrConflict: the attempt was started under another run id.
	ErrConflict = errors.New("executor: attempt was started as another run")
	// ErrRunning: the folder of a live run cannot be removed.
	ErrRunning = errors.New("executor: run is still alive")
)

// Ref names one attempt of one task. The UID and the attempt are the identity;
// namespace and name say whom to tell.
type Ref struct {
	Namespace string
	Name      string
	UID       types.UID
	// Attempt counts from 1.
	Attempt int32
}

// String gives namespace/name#attempt, for messages.
func (r Ref) String() string { return fmt.Sprintf("%s/%s#%d", r.Namespace, r.Name, r.Attempt) }

// Run is everything a worker is started with.
type Run struct {
	Ref
	// ID is chosen by the caller before the start and recorded with the task, so
	// that a start which was repeated after a crash is recognised as the same one.
	ID string
	// Env is added to the worker's environment. It holds no secret, and the
	// executor's own variables win.
	Env map[string]string
	// Credentials reach the worker without touching disk, environment or arguments.
	Credentials runspec.Credentials
	// Timeout ends the run after this time, without what it was parked. Zero is no limit.
	Timeout time.Duration
	// MemoryBytes limits the memory of each process of the run. Zero is the executor's default.
	MemoryBytes int64
}

// Phase is what is known about a run.
type Phase string

// Phases of a run.
const (
	// Running: alive, or being started.
	Running Phase = "Running"
	// Exited: over, and how it ended is known.
	Exited Phase = "Exited"
	// Lost: over, and nobody saw how it ended.
	Lost Phase = "Lost"
)

// Cause is why the executor ended a run.
type Cause string

// Causes. An empty Cause is a run that ended by itself.
const (
	// CauseDeadline: Run.Timeout passed.
	CauseDeadline Cause = "DeadlineExceeded"
	// CauseStopped: Stop was called.
	CauseStopped Cause = "Stopped"
)

// State is the state of a run.
type State struct {
	ID    string
	Phase Phase
	Cause Cause
	// StartedAt and FinishedAt are by the executor's clock. FinishedAt of a run
	// that ended unobserved is when that was found out.
	StartedAt  time.Time
	FinishedAt time.Time
	// ExitCode of an Exited run, or -1 where a signal ended it.
	ExitCode int
	// Signal that ended an Exited run, for example "killed".
	Signal string
	// Termination is what the worker left behind, nil when nothing.
	Termination *runspec.Termination
	// Message says what happened to a Lost run.
	Message string
}

// Succeeded tells whether the worker reported its work as done. A report that
// was completed before a signal arrived counts; an exit code that contradicts
// the report does not.
func (s State) Succeeded() bool {
	switch {
	case s.Phase != Exited:
		return false
	case s.Signal == "":
		return s.ExitCode == runspec.ExitSucceeded
	default:
		return s.Termination != nil && s.Termination.ExitCode == runspec.ExitSucceeded
	}
}

// Executor starts workers and watches them.
type Executor interface {
	// Start starts the run, or returns the state of the same run (by ID) when it
	// was started before. ErrConflict when the attempt ran under another ID. Any
	// other error means that no work was done and that Start may be called again.
	Start(ctx context.Context, run Run) (State, error)
	// State returns what is known about an attempt; ErrNotFound when nothing is.
	State(ctx context.Context, ref Ref) (State, error)
	// Stop asks a run to end and kills it after a grace period. It does not wait;
	// it is not an error when the run is over. ErrNotFound when nothing is known.
	Stop(ctx context.Context, ref Ref) error
	// Park stops the clock of Run.Timeout, or lets it go on, for a run that waits
	// for a person. The run itself goes on. It may be repeated, is remembered over
	// a restart, and is no error when the run is over. ErrNotFound when nothing is known.
	Park(ctx context.Context, ref Ref, parked bool) error
	// Remove forgets all attempts of a task, with their files. ErrRunning while one is alive.
	Remove(ctx context.Context, uid types.UID) error
	// List names all attempts that are known.
	List(ctx context.Context) ([]Ref, error)
	// OnExit has f told about every run that ends, until the context does. f must not block.
	OnExit(ctx context.Context, f func(Ref))
}
