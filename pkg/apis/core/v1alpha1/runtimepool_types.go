// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// RuntimePool is the capacity for the tasks with a coding agent of one namespace, one identity and one image. Each session is a process or a
// Pod of its task. The controller makes a pool when the first task needs it, and deletes it when it has been idle; people read pools, and
// administrators may change spec.capacity.
type RuntimePool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec RuntimePoolSpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status RuntimePoolStatus `json:"status,omitempty"`
}

// RESTPath returns where REST clients read runtime pools.
func (*RuntimePool) RESTPath() (path string, written bool) { return "runtime-pools", false }

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RuntimePoolList is a list of runtime pools.
type RuntimePoolList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the runtime pools.
	Items []RuntimePool `json:"items"`
}

// RuntimePoolSpec is the runtime of a pool, and how much of it there is.
type RuntimePoolSpec struct {
	// trustDomain is whose work the pool does. Work of another domain never reaches it.
	// +required
	TrustDomain RuntimeTrustDomain `json:"trustDomain"`
	// runtimeNamespace is the namespace of the pool's Pods, which is that of the tasks.
	// +required
	// +k8s:required
	// +k8s:format=k8s-short-name
	RuntimeNamespace string `json:"runtimeNamespace"`
	// runtime is what the pool runs.
	// +required
	Runtime PoolRuntime `json:"runtime"`
	// executionWorkspace is the workspace of the pool's Pods.
	// +optional
	// +k8s:optional
	ExecutionWorkspace *ExecutionWorkspace `json:"executionWorkspace,omitempty"`
	// desiredReplicas is how many instances are wanted: 0 or 1.
	// +optional
	// +k8s:optional
	// +default=0
	// +k8s:minimum=0
	// +k8s:maximum=1
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`
	// capacity is how much the pool takes on. A change is obeyed at once, and takes nothing away from tasks that run.
	// +optional
	// +k8s:optional
	Capacity *RuntimePoolLimits `json:"capacity,omitempty"`
	// coldStartTimeoutSeconds is how long an instance may take to start, in seconds.
	// +optional
	// +k8s:optional
	// +default=120
	// +k8s:minimum=1
	// +k8s:maximum=3600
	ColdStartTimeoutSeconds *int32 `json:"coldStartTimeoutSeconds,omitempty"`
}

// RuntimeTrustDomain is whose work a pool does.
type RuntimeTrustDomain struct {
	// namespace is the namespace of the tasks.
	// +required
	// +k8s:required
	// +k8s:format=k8s-short-name
	Namespace string `json:"namespace"`
	// identity is the identity on whose behalf tasks run.
	// +required
	// +k8s:required
	// +k8s:maxLength=512
	IDentity string `json:"identity"`
}

// PoolRuntime is the program of a pool and what is agreed with it.
type PoolRuntime struct {
	// image is the image, pinned by its digest: NAME@sha256:DIGEST. Where sessions are processes of the server's machine, it stands for the
	// agent's program: localhost/TYPE@sha256:DIGEST, with the digest of the program's file.
	// +required
	// +k8s:required
	// +k8s:maxLength=1024
	Image string `json:"image"`
	// profile is what instances of the pool must report about themselves.
	// +required
	Profile RuntimeProfile `json:"profile"`
}

// RuntimeProfile identifies how a runtime behaves. Two instances with one digest are interchangeable.
type RuntimeProfile struct {
	// protocolVersion is the version of the protocol between controller and runtime.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	ProtocolVersion string `json:"protocolVersion"`
	// digest is the digest of the profile: sha256: and 64 hexadecimal digits.
	// +required
	// +k8s:required
	// +k8s:maxLength=71
	Digest string `json:"digest"`
	// digestSchemaVersion is the version of the rules by which the digest was made.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	DigestSchemaVersion string `json:"digestSchemaVersion,omitempty"`
	// acpProfile is the profile of the Agent Client Protocol.
	// +optional
	// +k8s:optional
	// +default="acp.v1"
	ACPProfile RuntimeACPProfile `json:"acpProfile,omitempty"`
	// adapterDigests are the digests of the adapters by their names.
	// +optional
	// +k8s:optional
	// +k8s:maxProperties=64
	AdapterDigests map[string]string `json:"adapterDigests,omitempty"`
	// providerKind is the kind of Provider whose models the runtime uses.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	ProviderKind string `json:"providerKind,omitempty"`
	// model is the model.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Model string `json:"model,omitempty"`
	// modelLimits are the limits of the model, in tokens.
	// +optional
	// +k8s:optional
	ModelLimits *RuntimeModelLimits `json:"modelLimits,omitempty"`
	// policyDigest is the digest of the policy on tools.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=71
	PolicyDigest string `json:"policyDigest,omitempty"`
	// configurationDigest is the digest of the configuration.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=71
	ConfigurationDigest string `json:"configurationDigest,omitempty"`
	// workspaceIntent is how the runtime uses the workspace.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	WorkspaceIntent string `json:"workspaceIntent,omitempty"`
	// proxyCredentialRole is the role of the credential with which the runtime reaches models.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	ProxyCredentialRole string `json:"proxyCredentialRole,omitempty"`
	// proxyCredentialScope is the scope of that credential.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	ProxyCredentialScope string `json:"proxyCredentialScope,omitempty"`
	// resourceClass is the class of resources of an instance.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	ResourceClass string `json:"resourceClass,omitempty"`
}

// RuntimeACPProfile is a profile of the Agent Client Protocol.
// +enum
// +k8s:enum
type RuntimeACPProfile string

// Values of RuntimeACPProfile.
const (
	ACPProfileV1 RuntimeACPProfile = "acp.v1"
)

// RuntimeModelLimits are limits of a model, in tokens.
type RuntimeModelLimits struct {
	// context is the length of the context.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	Context *int64 `json:"context,omitempty"`
	// output is the length of an answer.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	Output *int64 `json:"output,omitempty"`
}

// RuntimePoolLimits is how much a pool takes on.
type RuntimePoolLimits struct {
	// maxResidentSessions is how many tasks hold a place at a time: from the start of their attempt until it is over and what it changed is
	// published. Others wait, by priority and age.
	// +optional
	// +k8s:optional
	// +default=10
	// +k8s:minimum=1
	MaxResidentSessions *int32 `json:"maxResidentSessions,omitempty"`
	// maxRunningPrompts is how many of these tasks work at a time. Tasks that wait for a person do not count, nor do those of which the
	// changes are being published.
	// +optional
	// +k8s:optional
	// +default=4
	// +k8s:minimum=1
	MaxRunningPrompts *int32 `json:"maxRunningPrompts,omitempty"`
}

// RuntimePoolLifecycle is where a pool is.
// +enum
// +k8s:enum
type RuntimePoolLifecycle string

// Values of RuntimePoolLifecycle.
const (
	PoolStopped   RuntimePoolLifecycle = "Stopped"
	PoolStarting  RuntimePoolLifecycle = "Starting"
	PoolServing   RuntimePoolLifecycle = "Serving"
	PoolDraining  RuntimePoolLifecycle = "Draining"
	PoolQuiescent RuntimePoolLifecycle = "Quiescent"
	PoolStopping  RuntimePoolLifecycle = "Stopping"
	PoolDegraded  RuntimePoolLifecycle = "Degraded"
	PoolAmbiguous RuntimePoolLifecycle = "Ambiguous"
)

// RuntimePoolAdmission says whether a pool takes work.
// +enum
// +k8s:enum
type RuntimePoolAdmission string

// Values of RuntimePoolAdmission.
const (
	PoolAdmissionClosed    RuntimePoolAdmission = "Closed"
	PoolAdmissionAccepting RuntimePoolAdmission = "Accepting"
	PoolAdmissionDraining  RuntimePoolAdmission = "Draining"
	PoolAdmissionAmbiguous RuntimePoolAdmission = "Ambiguous"
)

// RuntimePoolStatus is what is observed of a pool.
type RuntimePoolStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +k8s:optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lifecycle is where the pool is.
	// +optional
	// +k8s:optional
	Lifecycle RuntimePoolLifecycle `json:"lifecycle,omitempty"`
	// admission says whether the pool takes work.
	// +optional
	// +k8s:optional
	Admission RuntimePoolAdmission `json:"admission,omitempty"`
	// activeInstance is the instance that works.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	ActiveInstance string `json:"activeInstance,omitempty"`
	// capacity is what is in use.
	// +optional
	// +k8s:optional
	Capacity *RuntimePoolUse `json:"capacity,omitempty"`
	// message describes the state to people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// conditions are the conditions of the object: AdmissionReady, PodSecurityReady, QuotaReady, SchedulingReady and RolloutReady.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// RuntimePoolUse is what of a pool's capacity is in use.
type RuntimePoolUse struct {
	// resident is the number of tasks that hold a place.
	// +optional
	// +k8s:optional
	Resident int32 `json:"resident,omitempty"`
	// running is the number of these tasks whose agent works.
	// +optional
	// +k8s:optional
	Running int32 `json:"running,omitempty"`
	// queued is the number of tasks that wait.
	// +optional
	// +k8s:optional
	Queued int32 `json:"queued,omitempty"`
	// reserved is the number of these tasks whose attempt is recorded and not started yet.
	// +optional
	// +k8s:optional
	Reserved int32 `json:"reserved,omitempty"`
	// reservations are those tasks, at most 256.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=map
	// +listMapKey=taskUID
	Reservations []RuntimePoolReservation `json:"reservations,omitempty"`
}

// RuntimePoolReservation is a place that is held for a task.
type RuntimePoolReservation struct {
	// taskName is the task.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	TaskName string `json:"taskName"`
	// taskUID is the UID of the task.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	TaskUID types.UID `json:"taskUID"`
	// expiresAt is when the place is given up if the attempt cannot be started.
	// +optional
	// +k8s:optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}
