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
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
)

// Errors of an Executor.
var (
	// ErrNotFound: nothing is known about this attempt. It was never started, or it was removed.
	ErrNotFound = errors.New("executor: run not found")
	// ErrConflict: the attempt was started under another run id.
	ErrConflict = errors.New("executor: attempt was started as another run")
	// ErrRefused: the executor's host will not have the run as it is, now or later.
	ErrRefused = errors.New("executor: run is refused")
	// ErrRunning: the folder of a live run cannot be removed.
	ErrRunning = errors.New("executor: run is still alive")
)

// MissingError is an ErrNotFound that says what is not there.
type MissingError struct {
	// What is a clause for people, for example "there is no Job t-1".
	What string
}

// Error gives the clause after that of ErrNotFound.
func (m *MissingError) Error() string { return ErrNotFound.Error() + ": " + m.What }

// Is makes it an ErrNotFound.
func (m *MissingError) Is(target error) bool { return target == ErrNotFound }

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

// JobName names the run of an attempt. As the name of a Job it is also the value
// of a label, and that is how long it may be.
func (r Ref) JobName() string {
	return v1alpha1.ShortName(r.Name, "-"+strconv.Itoa(int(r.Attempt)), validation.LabelValueMaxLength)
}

// ServiceAccount is the account of the workers of a type of tasks: one per level of trust.
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

// SecretUse is what a run needs a secret for.
type SecretUse string

// Uses of secrets.
const (
	// ForProvider: the API key of the Provider that For names.
	ForProvider SecretUse = "Provider"
	// ForTool: the credential of the Tool that For names.
	ForTool SecretUse = "Tool"
)

// Secret is a secret of a run by reference.
type Secret struct {
	Use SecretUse
	// For is the Provider or Tool.
	For types.NamespacedName
	// Ref is the key of a Secret in the run's namespace.
	Ref v1alpha1.KeyReference
}

// ConfigMap is a key of a ConfigMap of the run's namespace.
type ConfigMap struct{ Name, Key string }

// Run is everything a worker is started with.
type Run struct {
	Ref
	// Task is the task as it was resolved. It is not changed, and not kept.
	Task *v1alpha1.Task
	// ID is chosen by the caller before the start and recorded with the task, so
	// that a start which was repeated after a crash is recognised as the same one.
	ID string
	// Env is added to the worker's environment. It holds no secret, and the
	// executor's own variables win.
	Env map[string]string
	// Credentials reach the worker without touching disk, environment or arguments.
	// They are empty where the executor works ByReference.
	Credentials runspec.Credentials
	// Secrets are the same by reference, and only there.
	Secrets []Secret
	// ConfigMaps are those whose values Credentials lack because the executor works ByReference.
	ConfigMaps []ConfigMap
	// AgentSecret is the Secret of the task's Agent, to be mounted; empty for none.
	AgentSecret string
	// Resources are those of the task, or of its Agent; nil for the executor's defaults.
	Resources *corev1.ResourceRequirements
	// Placement says where the run may be placed, as Agent and task have it together.
	Placement v1alpha1.ExecutionPlacement
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

// Waiting is what keeps a run from beginning, so far.
type Waiting struct {
	// Reason is one of the reasons of v1alpha1 that come from where a run is; empty for a run that waits for nothing.
	Reason string
	// Message is redacted text for people.
	Message string
}

// State is the state of a run.
type State struct {
	ID string
	// UID is the identity that the executor gave the run, such as a Job's UID;
	// empty where it gives none.
	UID types.UID
	// PodName and PodUID identify the Pod that the executor accepts for the run; empty while there is none, and where
	// runs are not Pods.
	PodName string
	PodUID  types.UID
	Phase   Phase
	Cause   Cause
	// Reason is one of the same reasons where the host ended the run or kept it from
	// starting, and Message says more. Empty for a run that ended by itself.
	Reason string
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
	// Undelivered: the run is over, and left results, events or log that the server
	// lacks. Deliver brings them, and says then how the run ended.
	Undelivered bool
	// Message is redacted text for people: what happened to a Lost run or to one
	// with a Reason, or what a run said last that left no Termination.
	Message string
	// Waiting is what a Running run waits for before its worker can begin; empty
	// once it has begun, and while nothing out of the ordinary keeps it.
	Waiting Waiting
	// NeverBegan is set for a run that is over and whose worker is known not to have begun.
	NeverBegan bool
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
	// ByReference tells that token and secrets come to the worker from the
	// executor's host, which knows them: Run has references only.
	ByReference() bool
	// Start starts the run, or returns the state of the same run (by ID) when it
	// was started before. ErrConflict when the attempt ran under another ID,
	// ErrRefused when it cannot run. Any other error means that no work was done and that Start may be called again.
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
	// Deliver starts a worker that brings what an Undelivered run left, with a token
	// and no other credential. The run is Running meanwhile. It returns the state of
	// a run that has nothing to deliver; ErrNotFound when nothing is known.
	Deliver(ctx context.Context, ref Ref, token string) (State, error)
	// Remove forgets all attempts of a task, with their files. ErrRunning while one is alive.
	Remove(ctx context.Context, uid types.UID) error
	// List names all attempts that are known and proved to be of tasks of the store that is served: if their task is gone,
	// nobody else's is.
	List(ctx context.Context) ([]Ref, error)
	// OnWaiting has f told about every run whose Waiting gets another reason, or
	// none, and about every run that has got its Pod, until the context ends. f must not block.
	OnWaiting(ctx context.Context, f func(Ref))
	// OnExit has f told about every run that ends, until the context does. f must not block.
	OnExit(ctx context.Context, f func(Ref))
}
