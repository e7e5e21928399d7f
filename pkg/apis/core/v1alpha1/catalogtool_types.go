// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogTool is a tool that agents and tasks of a namespace can name: one that is built in, or a Tool object. It is
// computed and not stored. Tools of coordination are not in the catalogue, because agents get them by
// spec.coordination.
type CatalogTool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; the name is the one that models use.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec describes the tool.
	// +required
	Spec CatalogToolSpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogToolList is a list of tools: first those that are built in, then the Tool objects.
type CatalogToolList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the tools.
	Items []CatalogTool `json:"items"`
}

// CatalogToolSpec describes a tool.
type CatalogToolSpec struct {
	// builtin is set for a tool that needs no Tool object. A Tool object of the same name is not used.
	Builtin bool `json:"builtin"`
	// description is what the model reads.
	// +optional
	Description string `json:"description,omitempty"`
	// parameters is the JSON Schema of the arguments.
	// +optional
	// +patchStrategy=replace
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty" patchStrategy:"replace"`
	// toolRef is the Tool object; unset for a built-in tool.
	// +optional
	// +k8s:optional
	ToolRef *NamespacedReference `json:"toolRef,omitempty"`
	// url is the address that is called, for a Tool object.
	// +optional
	URL string `json:"url,omitempty"`
	// available says whether the controller can reach the tool, for a Tool object.
	// +optional
	Available *bool `json:"available,omitempty"`
}
