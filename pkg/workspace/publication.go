// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Names of the steps, which are the program's argument.
const (
	Prepare = "prepare"
	Pack    = "pack"
	Apply   = "apply"
	Freeze  = "freeze"
	Build   = "build"
	Push    = "push"
	Look    = "look"
	Pull    = "pull"
)

// PackOrder asks for the workspace as it is sent to a runtime elsewhere: a delta without changes that has all objects.
type PackOrder struct {
	// Baseline is the folder with the objects of Commit, as Order.Keep had them.
	Baseline string `json:"baseline"`
	Commit   string `json:"commit"`
	SubPath  string `json:"subPath,omitempty"`
	// File is the file to write.
	File string `json:"file"`
}

// Packed says what was packed.
type Packed struct {
	// Bytes is what the file has.
	Bytes int64 `json:"bytes"`
}

// ApplyOrder asks to make the changes of a delta in a checkout of the commit in which nothing has changed.
type ApplyOrder struct {
	Commit  string `json:"commit"`
	SubPath string `json:"subPath,omitempty"`
	// Dir is the folder of the run, and Delta the file with what a runtime says that it changed.
	Dir   string `json:"dir"`
	Delta string `json:"delta"`
}

// Applied says what was changed.
type Applied struct {
	// Files counts the changed files.
	Files int `json:"files"`
}

// FreezeOrder asks for what a run changed.
type FreezeOrder struct {
	// Baseline is the folder with the objects of Commit, as Order.Keep had them.
	Baseline string `json:"baseline"`
	Commit   string `json:"commit"`
	SubPath  string `json:"subPath,omitempty"`
	// Dir is the folder of the run, whose programs are over.
	Dir string `json:"dir"`
	// Delta and Diff are the files to write. MaxBytes bounds each of them; what of the diff has no room is left out.
	Delta    string `json:"delta"`
	Diff     string `json:"diff"`
	MaxBytes int64  `json:"maxBytes"`
	// MaxEntries is how many files, folders and links are looked at.
	MaxEntries int64 `json:"maxEntries"`
}

// Frozen says what a run changed.
type Frozen struct {
	// Files counts the changed files, and Bytes what the file of the delta has.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Digest is the SHA-256 of that file, such as sha256:9f86….
	Digest string `json:"digest"`
	// NotShown counts the changes that are not in the diff, because it had no room for them.
	NotShown int `json:"notShown,omitempty"`
}

// Digest returns the SHA-256 of a file, as it is shown.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// BuildOrder asks for the commit of a delta.
type BuildOrder struct {
	// Delta is the file of the delta, and Pack the file to write: a pack with the objects of the commit that its parent lacks.
	Delta string `json:"delta"`
	Pack  string `json:"pack"`
	// Parent is the commit that the run began with.
	Parent string `json:"parent"`
	// Message and Time are those of the commit.
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
	Policy  Policy    `json:"policy,omitzero"`
}

// Policy is what a task allows its run to publish (spec.workspace). The zero Policy allows everything.
type Policy struct {
	// MaxChangedFiles is the most files that may change; 0 for any number.
	MaxChangedFiles int `json:"maxChangedFiles,omitempty"`
	// AllowedPaths are the files and folders of the repository that may change; empty for all.
	AllowedPaths []string `json:"allowedPaths,omitempty"`
	// DenyControlPaths refuses changes to files that control the repository or what automation does with it.
	DenyControlPaths bool `json:"denyControlPaths,omitempty"`
	// RejectBinary refuses new content that is binary, and RejectSecrets content that looks like a secret and was not there before.
	RejectBinary  bool `json:"rejectBinary,omitempty"`
	RejectSecrets bool `json:"rejectSecrets,omitempty"`
}

// Built is a commit that nobody has yet. Both names are hexadecimal.
type Built struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Files counts the changed files.
	Files int `json:"files"`
}

// PushOrder asks to move a branch to a commit.
type PushOrder struct {
	Access
	// Branch is the name of the branch, without refs/heads/.
	Branch string `json:"branch"`
	// Old is where the branch must be; empty if it must not exist. New is where it is moved to.
	Old string `json:"old,omitempty"`
	New string `json:"new"`
	// Pack is the file with what New has and the repository lacks.
	Pack string `json:"pack"`
}

// PushOutcome is what the server said about a push. Whether it is so is for another step to see.
type PushOutcome string

// Outcomes of a push.
const (
	// PushAccepted: the server says that the branch was moved.
	PushAccepted PushOutcome = "Accepted"
	// PushNotNeeded: the branch was there already, and nothing was sent.
	PushNotNeeded PushOutcome = "NotNeeded"
	// PushMoved: the branch is neither where it must be nor where it is moved to, and nothing was sent.
	PushMoved PushOutcome = "Moved"
	// PushRefused: the server refused to move the branch.
	PushRefused PushOutcome = "Refused"
	// PushLost: the server was asked, and its answer did not come.
	PushLost PushOutcome = "Lost"
)

// Pushed says how a push ended.
type Pushed struct {
	Outcome PushOutcome `json:"outcome"`
	// Head is where the branch was before; empty if it did not exist.
	Head string `json:"head,omitempty"`
}

// LookOrder asks where a branch is.
type LookOrder struct {
	Access
	Branch string `json:"branch"`
	// Known is a commit that the server is known to have: the one that the run began with.
	Known string `json:"known"`
	// Published is the commit that the branch is expected to contain; empty before the publication.
	Published string `json:"published,omitempty"`
	// Temp is a folder for what is read.
	Temp string `json:"temp"`
}

// Seen says where a branch is.
type Seen struct {
	// Head is the commit of the branch; empty if there is no such branch.
	Head string `json:"head,omitempty"`
	// Contains is set if the branch has the published commit, as its head or before it.
	Contains bool `json:"contains,omitempty"`
	// Forward is set if the commit that is known has the head of the branch before it, or is the head: a commit on it moves the branch
	// forward.
	Forward bool `json:"forward,omitempty"`
	// Tree is the tree of the published commit, as the server gives it out, if the branch contains it.
	Tree string `json:"tree,omitempty"`
}

// PullOrder asks for the pull request of a publication: exactly one for its key.
type PullOrder struct {
	Access
	// Provider is the code host's kind, such as github or gitea; empty if it is to be found out.
	Provider string `json:"provider,omitempty"`
	// Key names the publication, and Generation its run, for people.
	Key        string `json:"key"`
	Generation int64  `json:"generation,omitempty"`
	// Head is the branch, and HeadSHA the commit that it was seen at. Base is the branch to merge into; empty for the default branch.
	Head    string `json:"head"`
	HeadSHA string `json:"headSHA"`
	Base    string `json:"base,omitempty"`
	Title   string `json:"title"`
	Body    string `json:"body,omitempty"`
	// Since is when the publication began.
	Since time.Time `json:"since,omitzero"`
}

// Pulled says what became of the pull request.
type Pulled struct {
	// Outcome is one word: Open if all is as it was asked for. Other words say what is different, or why there is none.
	Outcome string `json:"outcome"`
	// How says whether it was Created now, Found from before, or Adopted from somebody else.
	How string `json:"how,omitempty"`
	// Repository is OWNER/NAME of the repository that it is in.
	Repository string `json:"repository,omitempty"`
	// Receipt describes the pull request; nil if there is none.
	Receipt *v1alpha1.PullRequestReceipt `json:"receipt,omitempty"`
}
