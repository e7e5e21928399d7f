// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remoteagent runs tasks of type agent whose coding agent is at a registered runtime: it calls the runtime by the protocol
// platform.harness.v2 (package harness, docs/harness-v2.md), and records what the agent does as package conversation does for an agent
// on this machine. No program of the run is in this worker, so it may hold the two credentials of the runtime.
//
// # What was frozen, and when it is compared
//
// The controller decides which instance, profile and address an attempt uses, and records it before the worker is started. The worker
// asks for the runtime's health and capabilities before it changes anything there, and again before it repeats a request whose answer was
// lost or reads on after a stream was cut. Another instance or profile ends the attempt (RuntimeReplaced): what happened at the former
// one cannot be known.
//
// # Fences
//
// A session is named by the task's UID, and its generation is the number of the attempt. Operations are named by attempt and step, so a
// request that is repeated after its answer was lost is the same operation. The epoch is the one that the runtime has kept when the
// attempt begins, at least 1: the workers of one store do not fence each other by epochs, the generation does that. Whoever raises the
// epoch, as a platform does that takes over, stops the attempts that have begun (StaleEpoch).
//
// An attempt that follows another one deletes the session of that one first, which ends its agent. If the runtime does not know that
// session, its agent may be at an instance that nobody reaches any more; then the attempt waits for two leases, after which the
// protocol promises that nothing happens there.
//
// # The end
//
// When the run is to stop, the prompt is cancelled, its result awaited for a moment, and the session deleted; the session is deleted at
// every end. If the worker is killed instead, the lease ends and the runtime stops the agent.
package remoteagent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/conversation"
	"github.com/platform-ai/platform/pkg/worker/ownplan"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

const (
	// cancelGrace is how long a prompt that was cancelled may take to end, and deleteGrace how long the deletion of a session may take
	// then. Together they are shorter than what an executor gives a worker that is asked to stop.
	cancelGrace = 2 * time.Second
	deleteGrace = 2 * time.Second
	// tidyPatience is how long the session of a run that was not stopped is tried to be deleted.
	tidyPatience = 20 * time.Second
)

// Runner has the coding agent of a task of type agent work at its registered runtime.
var Runner runner.Runner = runner.Func(work)

func work(ctx context.Context, given *runner.Run) (runner.Result, error) {
	p, err := ownplan.Of(ctx, given)
	if err != nil {
		return runner.Result{}, err
	}
	r, err := newRun(given, p)
	if err != nil {
		return runner.Result{}, err
	}
	if r.question, err = conversation.Question(ctx, given, p); err != nil {
		return runner.Result{}, err
	}
	result, err := r.do(ctx)
	if ctx.Err() != nil {
		err = conversation.Stopped(ctx)
	}
	return result, err
}

// run is one run at a runtime.
type run struct {
	*runner.Run
	plan *plan.Plan
	// first is a client that means no instance yet.
	first   *harness.Client
	session *harness.Session
	limits  *v1alpha1.AgentRuntimeLimits
	clock   clock.WithDelayedExecution
	talk    *conversation.Talk
	// question is what the agent is asked.
	question []string
	// lease is that of the prompt.
	lease time.Duration
}

func newRun(given *runner.Run, p *plan.Plan) (*run, error) {
	at, err := url.Parse(given.Remote.Endpoint)
	token, key := strings.TrimSpace(given.Credentials.RuntimeToken), strings.TrimSpace(given.Credentials.RuntimeKey)
	switch {
	case err != nil:
		return nil, runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "AgentRuntime %q: spec.deployment.endpoint: must be a URL", given.Remote.Name)
	case len(token) < harness.MinSecret || len(key) < harness.MinSecret:
		return nil, runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "AgentRuntime %q: spec.clientAuth: the controller token and the operation key must have at least %d bytes", given.Remote.Name, harness.MinSecret)
	}
	c := clock.RealClock{}
	return &run{
		Run: given, plan: p, clock: c, talk: conversation.New(given, p, nil), lease: time.Duration(given.Remote.LeaseMillis) * time.Millisecond,
		// The operator names the runtime, which may be in a private network, as the address of a Provider.
		first: harness.New(harness.Options{Endpoint: at, Transport: egress.ForProviders().Transport(), Token: token, Key: []byte(key), Clock: c}),
	}, nil
}

// sessionID is the name of the session of a task.
func (r *run) sessionID() string { return "task-" + string(r.Task.UID) }

// operation names what the attempt wants done.
func (r *run) operation(step string) string { return fmt.Sprintf("attempt-%d-%s", r.Attempt, step) }

// operationFor names what the attempt wants done with something that the runtime has named.
func (r *run) operationFor(step, name string) string {
	sum := sha256.Sum256([]byte(name))
	return r.operation(step + "-" + hex.EncodeToString(sum[:8]))
}

// do has the agent work, and records its end.
func (r *run) do(ctx context.Context) (runner.Result, error) {
	if err := r.begin(ctx); err != nil {
		return runner.Result{}, explain(err)
	}
	defer r.tidy(ctx)
	r.talk.Record(event.New(v1alpha1.EventAgentRuntimeStarted, v1alpha1.SeverityInfo, "", "coding agent at runtime "+r.Remote.Name, map[string]any{
		"runtime": r.Remote.Name, "runtimeUID": r.Remote.UID, "instance": r.Remote.Instance, "profileDigest": r.Remote.ProfileDigest, "protocol": harness.Protocol, "model": r.model(),
	}))
	began := r.Clock.Now()
	r.talk.Prepare(ctx, r.plan)
	end, err := r.prompt(ctx)
	r.talk.Finish(ctx.Err() != nil)
	stop, err := r.judge(ctx, end, err)
	if err == nil {
		err = r.takeDelta(ctx)
	}
	if ctx.Err() != nil {
		err = conversation.Stopped(ctx)
	}
	r.talk.RecordEnd(stop, err, r.Clock.Since(began))
	return r.talk.Result(stop), err
}

// model returns the model that the task or its Agent names; empty for the runtime's own.
func (r *run) model() string { return plan.ModelName(r.Task, r.plan.Agent) }
