// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:defaulter-gen=TypeMeta
// +k8s:validation-gen=TypesWithField=TypeMeta
// +k8s:openapi-model-package=ai.platform.core.v1alpha1
// +groupName=core.platform.ai

// The lint of validation-gen 0.37 panics on +k8s:optional without another tag.
// +k8s:validation-gen-nolint

// Package v1alpha1 holds the API types of the group core.platform.ai. Types
// carry their single-field rules and defaults as tags; rules over several
// fields live with the resource in pkg/server/registry/core.
package v1alpha1
