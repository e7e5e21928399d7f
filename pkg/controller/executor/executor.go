// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executor is the interface between the task controller, which decides that an attempt
// of a task runs, and what runs it: a local process or a Kubernetes Job. An executor starts an
// attempt at most once, however often it is asked, and reports its state correctly after any
// restart.
package executor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
)

// Errors of an Executor.
var (
	// ErrNotFound means that nothing is known about the attempt. It was never started, or it was removed.
	ErrNotFound = errors.New("run not found")
	// ErrConflict means that the attempt was started under another run id.
	ErrConflict = errors.New("the attempt was started as another run")
	// ErrRefused means that the executor's host does not accept the run as it is, now or later.
	ErrRefused = errors.New("the run was refused")
	// ErrRunning means that a live run cannot be removed.
	ErrRunning = errors.New("the run is still alive")
)

// MissingError is an ErrNotFound that says what is missing.
type MissingError struct {
	// What is a clause for people, for example "there is no Job t-1".
	What string
}

// Error returns the text of ErrNotFound, followed by What.
func (m *MissingError) Error() string { return ErrNotFound.Error() + ": " + m.What }

// Is reports true for ErrNotFound.
func (m *MissingError) Is(target error) bool { return target == ErrNotFound }

// Ref names one attempt of one task. The UID and the attempt are the identity; namespace and
// name say which task to notify.
type Ref struct {
	Namespace string
	Name      string
	UID       types.UID
	// Attempt counts from 1.
	Attempt int32
}

// String returns namespace/name#attempt, for messages.
func (r Ref) String() string { return fmt.Sprintf("%s/%s#%d", r.Namespace, r.Name, r.Attempt) }

// JobName returns the name of the run of an attempt. It fits in the value of a label, because
// the name of a Job is also used as one.
func (r Ref) JobName() string {
	return v1alpha1.ShortName(r.Name, "-"+strconv.Itoa(int(r.Attempt)), validation.LabelValueMaxLength)
}

// ServiceAccount returns the account for workers of tasks of a type. There is one for each level of trust.
func ServiceAccount(t v1alpha1.TaskType) string {
	switch t {
	case v1alpha1.TaskTypeContainer:
		return v1alpha1.ServiceAccountContainerWorker
	case v1alpha1.TaskTypeAgent:
		return v1alpha1.ServiceAccountAgentWorker
	default:
		return v1alpha1.ServiceAccountAIWorker
	}
}

// Run is everything a worker is started with.
type Run struct {
	Ref
	// Task is the task as it was resolved. The executor neither changes nor keeps it.
	Task *v1alpha1.Task
	// ID is chosen by the caller before the start and recorded with the task, so that a start that
	// is repeated after a crash is recognised as the same one.
	ID string
	// Credentials reach the worker without touching disk, environment or arguments.
	// They are empty where the executor works ByReference.
	Credentials runspec.Credentials
	// Secrets are the same credentials by reference, and those that the run's own object refers to: variables and mounts. They
	// are set only where the executor works ByReference.
	Secrets []plan.Secret
	// Absent are the keys of Secrets that did not exist when the run was planned. Optional variables of the task that name them
	// stay unset, also if they appear meanwhile: whether a program may have their values was not checked.
	Absent []v1alpha1.KeyReference
	// ConfigMaps are the keys whose values Credentials lacks because the executor works ByReference.
	ConfigMaps []plan.ConfigMap
	// Runtime is the type of coding agent that the task's Agent is; empty for none.
	Runtime v1alpha1.AgentRuntimeType
	// Remote is the registered runtime at which the coding agent is; nil for none.
	Remote *runspec.Remote
	// AgentSecret is the Secret of the task's Agent, to be mounted; empty for none.
	AgentSecret string
	// TransactionSecret is the Secret with the task's transaction token, to be mounted; empty for none.
	TransactionSecret string
	// Resources are those of the task, or of its Agent; nil for the executor's defaults.
	Resources *corev1.ResourceRequirements
	// Placement says where the run may be placed: the Agent's and the task's settings merged.
	Placement v1alpha1.ExecutionPlacement
	// Timeout ends the run after this time, not counting the time it was parked. Zero means no limit.
	Timeout time.Duration
	// MemoryBytes limits the memory of each process of the run, and of all processes of a program together. Zero means the executor's default.
	MemoryBytes int64
}

// Phase is what is known about a run.
type Phase string

// Phases of a run.
const (
	// Running means alive, or being started.
	Running Phase = "Running"
	// Exited means over, and how it ended is known.
	Exited Phase = "Exited"
	// Lost means over, and how it ended is not known.
	Lost Phase = "Lost"
)

// Cause is why the executor ended a run.
type Cause string

// Causes. The empty Cause means that the run ended by itself.
const (
	// CauseDeadline means that Run.Timeout passed.
	CauseDeadline Cause = "DeadlineExceeded"
	// CauseDisk means that the files of the run exceeded the host's limit.
	CauseDisk Cause = v1alpha1.ReasonDiskLimitExceeded
	// CauseStopped means that Stop was called.
	CauseStopped Cause = "Stopped"
)

// Waiting is what keeps a run from beginning.
type Waiting struct {
	// Reason is one of the reasons of v1alpha1 that an executor reports about its host; empty for a run that waits for
	// nothing.
	Reason string
	// Message is redacted text for people.
	Message string
}

// State is the state of a run.
type State struct {
	ID string
	// UID is the identity that the executor gave the run, such as a Job's UID; empty if it gives
	// none.
	UID types.UID
	// PodName and PodUID identify the Pod that the executor accepts for the run; empty while there is none, and if
	// runs are not Pods.
	PodName string
	PodUID  types.UID
	Phase   Phase
	Cause   Cause
	// Reason is one of the reasons of Waiting if the host ended the run or kept it from starting;
	// Message says more. Empty for a run that ended by itself.
	Reason string
	// StartedAt and FinishedAt are by the executor's clock. If a run ended unobserved, FinishedAt
	// is when the executor noticed.
	StartedAt  time.Time
	FinishedAt time.Time
	// ExitCode of an Exited run, or -1 if a signal ended it.
	ExitCode int
	// Signal that ended an Exited run, for example "killed".
	Signal string
	// Termination is what the worker reported at its end, or why the repository of its task could not be prepared before it began; nil
	// if nothing was reported.
	Termination *runspec.Termination
	// Undelivered means that the run is over and left results, events or log that the server
	// lacks. Deliver sends them; after that, the state says how the run ended.
	Undelivered bool
	// Message is redacted text for people: what happened to a Lost run or to one with a Reason, or
	// the last output of a run that left no Termination.
	Message string
	// Waiting is what a Running run waits for before its worker can begin; empty once it has
	// begun, and while the start proceeds normally.
	Waiting Waiting
	// NeverBegan is set for a run that is over and whose worker is known not to have begun.
	NeverBegan bool
}

// Succeeded reports whether the worker reported its work as done. A report that was complete
// before a signal arrived counts. A report that the exit code contradicts does not.
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
	// ByReference reports whether the executor's host supplies the token and the secrets to the
	// worker, so that Run needs references only.
	ByReference() bool
	// Start starts the run, or returns the state of the same run (by ID) if it was started before. It returns
	// ErrConflict if the attempt ran under another ID, and ErrRefused if it cannot run. Any other error means that
	// no work was done and that Start may be called again.
	Start(ctx context.Context, run Run) (State, error)
	// State returns what is known about an attempt, or ErrNotFound if nothing is known.
	State(ctx context.Context, ref Ref) (State, error)
	// Stop asks a run to end and kills it after a grace period. It does not wait; it is not an
	// error if the run is over. It returns ErrNotFound if nothing is known about the attempt.
	Stop(ctx context.Context, ref Ref) error
	// Park stops or resumes the clock of Run.Timeout, for a run that waits for a person. The run
	// itself continues. Park may be repeated and survives a restart. It is not an error if the run
	// is over. It returns ErrNotFound if nothing is known about the attempt.
	Park(ctx context.Context, ref Ref, parked bool) error
	// Deliver starts a worker that sends what an Undelivered run left. The worker gets a token and
	// no other credential, and the run is Running meanwhile. If there is nothing to deliver,
	// Deliver returns the state of the run. It returns ErrNotFound if nothing is known about the
	// attempt.
	Deliver(ctx context.Context, ref Ref, token string) (State, error)
	// Remove forgets all attempts of a task and deletes their files. It returns ErrRunning while one is alive.
	Remove(ctx context.Context, uid types.UID) error
	// List returns all known attempts that provably belong to tasks of the store that is now served, so that a run whose
	// task is gone from that store may be removed.
	List(ctx context.Context) ([]Ref, error)
	// OnWaiting calls f, until the context ends, for every run whose Waiting gets another reason
	// or none, and for every run that has got its Pod. f must not block.
	OnWaiting(ctx context.Context, f func(Ref))
	// OnExit calls f for every run that ends, until the context ends. f must not block.
	OnExit(ctx context.Context, f func(Ref))
}
