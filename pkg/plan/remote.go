// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

const (
	// minLease is the shortest lease that a worker can keep, in milliseconds.
	minLease = 1000
	// aroundPrompt is what a request has around the texts of a prompt, in bytes.
	aroundPrompt = 4096
)

// elsewhere reports whether the agent of a task names a registered runtime.
func elsewhere(a *v1alpha1.Agent) bool {
	return a != nil && a.Spec.Runtime != nil && a.Spec.Runtime.RuntimeRef != nil
}

// hasRuntime reports whether there may be a runtime for a task of type agent: at the place, or where its agent says, whether it may name
// that agent or not.
func (m *maker) hasRuntime(ctx context.Context, t *v1alpha1.Task) (bool, error) {
	if m.place.Runtime != nil || t.Spec.AgentRef == nil {
		return m.place.Runtime != nil, nil
	}
	a, err := m.reader.Agent(ctx, refer(t.Namespace, t.Spec.AgentRef).NamespacedName)
	if apierrors.IsNotFound(err) { // which is said later
		return false, nil
	}
	return err == nil && elsewhere(a), err
}

// remoteAgent plans a task whose agent is at a registered runtime. A worker was given what holds for its attempt, and does not look again.
func (m *maker) remoteAgent(ctx context.Context) error {
	p := m.plan
	key := types.NamespacedName{Namespace: p.Agent.Namespace, Name: p.Agent.Spec.Runtime.RuntimeRef.Name}
	if m.place.Started {
		return nil
	}
	r, err := m.reader.AgentRuntime(ctx, key)
	if err := lookedFor(err, "AgentRuntime", key); err != nil {
		return err
	}
	if err := usable(p.Agent, r); err != nil {
		return err
	}
	to, err := url.Parse(r.Spec.Deployment.Endpoint)
	if err != nil {
		return refusal.New(v1alpha1.ReasonRuntimeNotAvailable, "AgentRuntime %q: spec.deployment.endpoint: must be a URL", r.Name)
	}
	auth := r.Spec.ClientAuth
	for _, s := range []struct {
		use SecretUse
		ref *v1alpha1.KeyReference
	}{{ForRuntimeToken, auth.ControllerBearerTokenSecretRef}, {ForRuntimeKey, auth.OperationCapabilitySecretRef}} {
		if s.ref == nil {
			return refusal.New(v1alpha1.ReasonRuntimeNotAvailable, "AgentRuntime %q: spec.clientAuth: both Secrets of %s are required", r.Name, v1alpha1.HarnessV2)
		}
		if err := m.need(ctx, Secret{Use: s.use, For: key, Namespace: r.Namespace, Ref: *s.ref}, to); err != nil {
			return err
		}
	}
	p.Runtime = r
	return nil
}

// usable refuses a runtime that gets no tasks as it is.
func usable(a *v1alpha1.Agent, r *v1alpha1.AgentRuntime) error {
	at := fmt.Sprintf("agent %q: spec.runtime.runtimeRef: AgentRuntime %q: ", a.Name, r.Name)
	refuse := func(format string, args ...any) error {
		return refusal.New(v1alpha1.ReasonRuntimeNotAvailable, "%s%s", at, fmt.Sprintf(format, args...))
	}
	st := &r.Status
	switch {
	case r.Spec.ContractVersion != v1alpha1.HarnessV2:
		return refuse("spec.contractVersion: runtimes of %s get no tasks; register one of %s", r.Spec.ContractVersion, v1alpha1.HarnessV2)
	case st.ObservedGeneration != r.Generation:
		return refusal.Missing(v1alpha1.ReasonRuntimeNotAvailable, "%sstatus.ready: the runtime was not asked yet since its spec was changed; wait for it to be ready", at)
	case !st.Ready || st.ObservedCapabilities == nil:
		return refusal.Missing(v1alpha1.ReasonRuntimeNotAvailable, "%sstatus.ready: the runtime is not ready: %s", at, st.Message)
	}
	c := st.ObservedCapabilities
	switch g := c.WorkspaceGovernance; {
	case g == nil || g.Mode != v1alpha1.GovernanceStrict:
		return refuse("status.observedCapabilities.workspaceGovernance.mode: tasks are given to runtimes that are %s alone", v1alpha1.GovernanceStrict)
	case c.RuntimeInstanceID == "" || c.Limits == nil:
		return refuse("status.observedCapabilities: the runtime reports no instance or no limits")
	case ptr.Deref(c.Limits.MaxPromptLeaseMillis, 0) < minLease:
		return refuse("status.observedCapabilities.limits.maxPromptLeaseMillis: must be at least %d, so that a worker can keep a lease", minLease)
	}
	return nil
}

// fits refuses a prompt that the runtime does not take. The system text and the prompt are sent in requests of their own.
func (p *Plan) fits() error {
	r := p.Runtime
	if r == nil {
		return nil
	}
	most := ptr.Deref(r.Status.ObservedCapabilities.Limits.MaxRequestBytes, 0)
	for _, text := range []string{p.Prompt, p.System()} {
		if int64(len(text))+aroundPrompt > most {
			return refusal.New(v1alpha1.ReasonRuntimeNotAvailable, "AgentRuntime %q: status.observedCapabilities.limits.maxRequestBytes: the runtime takes %d bytes, and the prompt or the system text has %d", r.Name, most, len(text))
		}
	}
	return nil
}
