// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Skill is a piece of know-how, in Markdown, that agents read before they work.
type Skill struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec SkillSpec `json:"spec"`
	// status is what is observed, written by the server and its controllers.
	// +optional
	Status SkillStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SkillList is a list of skills.
type SkillList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the skills.
	Items []Skill `json:"items"`
}

// SkillSpec is the know-how and where it comes from.
type SkillSpec struct {
	// displayName is the name for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// description tells what the skill is good for.
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	Description string `json:"description"`
	// version is the author's version of the skill.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	Version string `json:"version,omitempty"`
	// author wrote the skill.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Author string `json:"author,omitempty"`
	// tags are words to find the skill by.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=set
	// +k8s:listType=set
	Tags []string `json:"tags,omitempty"`
	// content is the know-how itself.
	// +required
	Content SkillContent `json:"content"`
	// source records where the skill was imported from; nothing is fetched.
	// +optional
	// +k8s:optional
	Source *SkillSource `json:"source,omitempty"`
}

// SkillContent is the text of a skill.
type SkillContent struct {
	// inline is the Markdown that is put before the system prompt.
	// +required
	// +k8s:required
	Inline string `json:"inline"`
	// files are further texts by path, relative and without "..".
	// +optional
	// +k8s:optional
	// +k8s:maxProperties=256
	Files map[string]string `json:"files,omitempty"`
}

// SkillSource records where a skill was imported from.
type SkillSource struct {
	// github is the repository it was imported from.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	GitHub string `json:"github,omitempty"`
	// skillName is the skill's name at its source.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	SkillName string `json:"skillName,omitempty"`
	// context7 is the identifier of the skill's documentation library.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	Context7 string `json:"context7,omitempty"`
}

// SkillPhase says whether a skill can be used.
// +enum
// +k8s:enum
type SkillPhase string

// Skill phases.
const (
	SkillReady SkillPhase = "Ready"
	SkillError SkillPhase = "Error"
)

// SkillStatus is what is observed of a skill.
type SkillStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Ready or Error.
	// +optional
	// +k8s:optional
	Phase SkillPhase `json:"phase,omitempty"`
	// contentHash is "sha256:" and the digest of inline, then of the files sorted by path.
	// +optional
	ContentHash string `json:"contentHash,omitempty"`
	// conditions are the conditions of the object: Ready and ContentSizeWarning.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
