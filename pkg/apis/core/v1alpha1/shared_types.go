// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// LocalReference names an object of the same namespace.
// +structType=atomic
type LocalReference struct {
	// name is the name of the object.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
}

// NamespacedReference names an object, by default of the same namespace.
// +structType=atomic
type NamespacedReference struct {
	// name is the name of the object.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
	// namespace is the namespace of the object; empty means that of the
	// referring object. Another namespace needs the server's permission.
	// +optional
	// +k8s:optional
	// +k8s:format=k8s-short-name
	Namespace string `json:"namespace,omitempty"`
}

// KeyReference names one key of a Secret or ConfigMap of the same namespace.
// +structType=atomic
type KeyReference struct {
	// name is the name of the Secret or ConfigMap.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
	// key is the key in its data.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	Key string `json:"key"`
}

// ExecutionPlacement says where worker pods run. On a Task, scalars override
// the Agent's values, and maps and lists replace them.
type ExecutionPlacement struct {
	// runtimeClassName is the RuntimeClass of worker pods.
	// +optional
	// +k8s:optional
	// +k8s:format=k8s-long-name
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
	// nodeSelector limits the nodes by label.
	// +optional
	// +k8s:optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations are the taints that worker pods tolerate.
	// +optional
	// +k8s:optional
	// +k8s:eachVal=+k8s:opaqueType
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity is the scheduling affinity of worker pods.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// SkillReference names a Skill, or a ConfigMap key with the skill's text.
// Exactly one of the two is set.
type SkillReference struct {
	// name is the name of a Skill of the same namespace.
	// +optional
	// +k8s:optional
	// +k8s:format=k8s-long-name
	Name string `json:"name,omitempty"`
	// configMapRef is a ConfigMap key with the skill's Markdown.
	// +optional
	// +k8s:optional
	ConfigMapRef *KeyReference `json:"configMapRef,omitempty"`
}

// RateLimit limits the use of models. Each limit holds for every period of 60 seconds, over all tasks together. A request
// beyond it waits for its turn, first come, first served.
type RateLimit struct {
	// requestsPerMinute is the number of model requests per minute.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	RequestsPerMinute *int32 `json:"requestsPerMinute,omitempty"`
	// tokensPerMinute is the number of tokens per minute, input and output together. A request counts with its maxTokens
	// and the input of the request before it, or an estimate of its own input for the first, until its own figures are
	// reported. One that alone exceeds the limit is sent when there is no other within the period.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	TokensPerMinute *int64 `json:"tokensPerMinute,omitempty"`
}
