// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
)

// wantedLease is how long the lease of a prompt at a registered runtime is, in milliseconds, as far as the runtime allows it.
const wantedLease = 30_000

// remoteOf returns what a run is told of the registered runtime at which its coding agent is; nil for none.
func remoteOf(r *v1alpha1.AgentRuntime) *runspec.Remote {
	if r == nil {
		return nil
	}
	c := r.Status.ObservedCapabilities
	remote := &runspec.Remote{
		Namespace: r.Namespace, Name: r.Name, UID: r.UID, Generation: r.Generation, Endpoint: r.Spec.Deployment.Endpoint, Instance: c.RuntimeInstanceID,
		LeaseMillis:   min(max(wantedLease, ptr.Deref(c.Limits.MinPromptLeaseMillis, 0)), ptr.Deref(c.Limits.MaxPromptLeaseMillis, wantedLease)),
		MaxDeltaBytes: ptr.Deref(c.Limits.MaxWorkspaceDeltaBytes, 0),
	}
	if c.Profile != nil {
		remote.ProfileDigest = c.Profile.Digest
	}
	return remote
}

// assignRemote records the runtime of an attempt that is assigned, before anything is started.
func assignRemote(t *v1alpha1.Task, r *runspec.Remote) {
	st := &t.Status
	if r == nil {
		if e := st.Execution; e != nil {
			e.AgentRuntimeName, e.AgentRuntimeUID, e.RuntimeInstanceID = "", "", ""
		}
		return
	}
	if st.Execution == nil {
		st.Execution = &v1alpha1.TaskExecutionStatus{}
	}
	e := st.Execution
	e.Attempt, e.AgentRuntimeName, e.AgentRuntimeUID, e.RuntimeInstanceID = st.Attempts, r.Name, r.UID, r.Instance
	st.HarnessRuntime = &v1alpha1.TaskHarnessRuntime{
		ContractVersion: string(v1alpha1.HarnessV2), RuntimeRef: &v1alpha1.LocalReference{Name: r.Name}, ProfileDigest: r.ProfileDigest,
	}
}

// assignedRemote returns the runtime of an attempt that is about to start: with the instance that was recorded, so that another one is
// noticed before anything is done there.
func assignedRemote(t *v1alpha1.Task, r *runspec.Remote) *runspec.Remote {
	if r == nil {
		return nil
	}
	assigned := *r
	if e := t.Status.Execution; e != nil && e.RuntimeInstanceID != "" {
		assigned.Instance = e.RuntimeInstanceID
	}
	return &assigned
}
