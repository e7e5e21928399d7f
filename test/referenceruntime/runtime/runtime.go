// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtime is a small complete runtime of the protocol platform.harness.v2 (docs/harness-v2.md), for tests and for those who
// write one. Its agent is scripted: it does what the lines "do: …" of a prompt say. Its sessions are in memory, so each Runtime is an
// instance of its own, and their files are in a folder.
//
// Each name of Breaks makes it break one requirement. The conformance kit must then say which.
//
// It keeps what it is told to remember for as long as it lives, and has no limit on the rate of events, because it never has much to say.
package runtime

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/harness"
)

// Options configure a Runtime.
type Options struct {
	Instance string
	// Token and Key are the credentials. Without both, BootstrapToken is required, and both come by /v2/credential-bootstrap.
	Token          string
	Key            []byte
	BootstrapToken string
	// Dir is a folder for the files of sessions.
	Dir string
	// MinLease is the shortest lease.
	MinLease time.Duration
	// MaxLease is the longest lease; 0 for ten minutes.
	MaxLease time.Duration
	// Broken are names of Breaks.
	Broken []string
}

// Runtime is one instance.
type Runtime struct {
	o      Options
	ctx    context.Context // that of all agents
	shut   context.CancelFunc
	clock  clock.WithTickerAndDelayedExecution
	limits v1alpha1.AgentRuntimeLimits

	mu       sync.Mutex
	token    string
	key      []byte
	epoch    uint64
	draining bool
	scopes   map[string]*scope // by session; the empty name is for operations outside of sessions
	running  int
	asked    int             // how often the health was asked for
	proofs   map[string]bool // capabilities that were good once
	agents   sync.WaitGroup
}

// scope is what is remembered about the name of a session, also after the session was deleted.
type scope struct {
	operations map[string]*operation
	generation uint64 // the highest
	session    *session
	ghost      *session // one that was deleted and is shown nevertheless
}

// New returns a runtime.
func New(o Options) (*Runtime, error) {
	for _, name := range o.Broken {
		if !slices.Contains(Breaks(), name) {
			return nil, fmt.Errorf("there is no way to break %q", name)
		}
	}
	switch {
	case !harness.ValidName(o.Instance):
		return nil, fmt.Errorf("%q cannot name an instance", o.Instance)
	case o.BootstrapToken == "" && (len(o.Token) < harness.MinSecret || len(o.Key) < harness.MinSecret):
		return nil, fmt.Errorf("the token and the key must have at least %d bytes", harness.MinSecret)
	}
	ctx, shut := context.WithCancel(context.Background())
	r := &Runtime{o: o, ctx: ctx, shut: shut, clock: clock.RealClock{}, token: o.Token, key: o.Key, scopes: map[string]*scope{}, proofs: map[string]bool{}}
	r.limits = v1alpha1.AgentRuntimeLimits{
		MaxResidentSessions: new(int64(8)), MaxConcurrentPrompts: new(int64(4)), MaxRequestBytes: new(int64(64 << 10)),
		MaxEventLineBytes: new(int64(8 << 10)), MaxTerminalResultBytes: new(int64(4 << 10)), MaxBufferedEvents: new(int64(1024)),
		MaxUpdateEventsPerSecond: new(int64(1000)), MinPromptLeaseMillis: new(o.MinLease.Milliseconds()), MaxPromptLeaseMillis: new(cmp.Or(o.MaxLease, 10*time.Minute).Milliseconds()),
		MaxPendingPermissions: new(int64(4)), MaxWorkspaceDeltaBytes: new(int64(1 << 20)),
	}
	return r, nil
}

// Close ends all agents and removes the files of sessions.
func (r *Runtime) Close() error {
	r.shut()
	r.agents.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var dirs []string
	for _, s := range r.scopes {
		if s.session != nil {
			dirs = append(dirs, s.session.dir)
		}
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runtime) broken(name string) bool { return slices.Contains(r.o.Broken, name) }

// scopeOf returns what is remembered about a name. The caller holds mu.
func (r *Runtime) scopeOf(name string) *scope {
	s := r.scopes[name]
	if s == nil {
		s = &scope{operations: map[string]*operation{}}
		r.scopes[name] = s
	}
	return s
}

// profile is that of the scripted agent.
func profile() *v1alpha1.RuntimeProfile {
	return &v1alpha1.RuntimeProfile{ProtocolVersion: harness.Protocol, Digest: "sha256:5c217ac64a6a1f3f7f3b3f6d3f7e7c1e0a2b0e6f3f5a1d8c9b7e6d5c4b3a2910"}
}

func (r *Runtime) capabilities() *harness.Capabilities {
	a := &harness.Capabilities{Protocol: harness.Protocol, Capabilities: v1alpha1.AgentRuntimeCapabilities{
		RuntimeInstanceID: r.o.Instance, Profile: profile(), SupportsDrain: true, SupportsPublicationFinalization: true,
		WorkspaceGovernance: &v1alpha1.AgentRuntimeGovernance{Mode: v1alpha1.GovernanceStrict, Guarantees: harness.Guarantees()},
		Limits:              &r.limits,
	}}
	a.Runtime.Name, a.Runtime.Version = "referenceruntime", "1"
	if r.broken("limits-missing") {
		l := r.limits
		l.MaxPendingPermissions = nil
		a.Capabilities.Limits = &l
	}
	return a
}

func (r *Runtime) health() *harness.Health {
	h := &harness.Health{Protocol: harness.Protocol, Instance: r.o.Instance, Status: harness.HealthOK}
	if r.broken("health-without-state") {
		h.Status = ""
	}
	if r.asked++; r.broken("changing-instance") {
		h.Instance = fmt.Sprintf("%s-%d", r.o.Instance, r.asked)
	}
	return h
}

func (r *Runtime) status() *harness.Status {
	st := &harness.Status{Protocol: harness.Protocol, Instance: r.o.Instance, Lifecycle: harness.Serving, ControllerEpoch: r.epoch, RunningPrompts: int64(r.running), Sessions: []harness.SessionStatus{}}
	if r.draining {
		st.Lifecycle = harness.DrainingDown
	}
	if r.broken("status-without-lifecycle") {
		st.Lifecycle = ""
	}
	if r.broken("status-without-sessions") {
		return st
	}
	for _, s := range r.scopes {
		if s.session != nil {
			st.Sessions = append(st.Sessions, s.session.shown())
		}
	}
	return st
}

// newFolder makes the folder of a session. Names of sessions may differ in case alone, so the folder has another one.
func (r *Runtime) newFolder() (string, error) {
	if r.broken("shared-files") {
		dir := filepath.Join(r.o.Dir, "shared")
		return dir, os.MkdirAll(dir, 0o700)
	}
	return os.MkdirTemp(r.o.Dir, "session-")
}

// Resident returns how many sessions there are.
func (r *Runtime) Resident() int { return len(r.state().Sessions) }

// state is the status without what breaks it.
func (r *Runtime) state() *harness.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status()
}
