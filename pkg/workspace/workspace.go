// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace is the contract with the program platform-workspace, which does what is done with the repository that a task works
// on. Each step is a process of its own, with at most one credential, on its standard input, and none of them shares a process with a
// run:
//
//	prepare   the read credential    before the run: writes the files of an exact commit into its folder (packages repository, checkout)
//	pack      no credential          before a run elsewhere: makes an archive of the commit for the runtime (package transfer)
//	apply     no credential          after a run elsewhere, or before a run that continues a task: makes the changes that were made there in
//	                                 the folder (package transfer)
//	freeze    no credential          after the run: compares the folder with the commit, and keeps what changed (packages changes, delta)
//	build     no credential          makes a commit of that, the same each time, and refuses what the task does not allow (package commit)
//	push      the push credential    moves the branch from the exact commit that it was at (package publish)
//	look      a read credential      says where the branch is, before and after that
//	pull      the forge credential   sees to it that there is one pull request for the branch (package codehost/pullrequest)
//
// Workers start prepare, pack, apply and freeze, the controller the others. The run gets a tree of files, and neither a credential nor git's own
// files.
package workspace

import (
	"github.com/platform-ai/platform/pkg/egress"
)

// DiffName is the name of the artifact with what a run changed in its workspace, as text.
const DiffName = "workspace.diff"

// ProgramName is the file name of the program.
const ProgramName = "platform-workspace"

// Order is what the program reads from its standard input, as JSON.
type Order struct {
	// URL, Branch and Ref say what to fetch, as spec.workspace of a task does. Commit takes precedence over Branch and Ref: it is
	// what an earlier attempt of the task began with.
	URL    string `json:"url"`
	Branch string `json:"branch,omitempty"`
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
	// SubPath is the folder of the repository that becomes the tree; empty for all of it.
	SubPath string `json:"subPath,omitempty"`
	// Token is the credential, and Hosts where it may be sent.
	Token string       `json:"token,omitempty"`
	Hosts egress.Hosts `json:"hosts,omitzero"`
	// Allow lists host:port that may be dialled although their addresses are private.
	Allow []string `json:"allow,omitempty"`
	// Dir is the folder that the tree is written into. It exists and is empty. Temp is a folder for what the program needs
	// meanwhile, on the same disk.
	Dir  string `json:"dir"`
	Temp string `json:"temp"`
	// Keep is a folder in which the commit's objects are kept, so that what the run changes can be compared with them (Freeze); empty
	// if nothing of that kind follows.
	Keep string `json:"keep,omitempty"`
	// MaxBytes is what the tree, and before it what the server sends, may take. MaxEntries is how many files, folders and links there may be.
	MaxBytes   int64 `json:"maxBytes"`
	MaxEntries int64 `json:"maxEntries"`
}

// Access returns how the order reaches the server.
func (o Order) Access() Access {
	return Access{URL: o.URL, Token: o.Token, Hosts: o.Hosts, Allow: o.Allow}
}

// Access is how the server of a repository is reached.
type Access struct {
	URL string `json:"url"`
	// Token is the credential, and Hosts where it may be sent.
	Token string       `json:"token,omitempty"`
	Hosts egress.Hosts `json:"hosts,omitzero"`
	// Allow lists host:port that may be dialled although their addresses are private.
	Allow []string `json:"allow,omitempty"`
}

// Answer is what the program writes to its standard output, as JSON: what it was asked for, or a failure.
type Answer struct {
	Report  *Report      `json:"report,omitempty"`
	Packed  *Packed      `json:"packed,omitempty"`
	Applied *Applied     `json:"applied,omitempty"`
	Frozen  *Frozen      `json:"frozen,omitempty"`
	Built   *Built       `json:"built,omitempty"`
	Pushed  *Pushed      `json:"pushed,omitempty"`
	Seen    *Seen        `json:"seen,omitempty"`
	Pulled  *Pulled      `json:"pulled,omitempty"`
	Failure *FailedError `json:"failure,omitempty"`
}

// Report says what was prepared.
type Report struct {
	// Commit and Tree are the names of both, in hexadecimal digits. Ref is the full name of the ref that led to the commit; empty if
	// a commit was asked for.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Ref    string `json:"ref,omitempty"`
	// Files counts files and links, and Bytes what is in them.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// PlainLinks counts links that lead out of the tree, which became files with their target as text.
	PlainLinks int64 `json:"plainLinks,omitempty"`
	// Submodules counts the submodules, whose folders are empty.
	Submodules int64 `json:"submodules,omitempty"`
}

// FailedError says why nothing was prepared.
type FailedError struct {
	// Reason is one of the reasons of v1alpha1.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Temporary is set if another attempt may succeed.
	Temporary bool `json:"temporary,omitempty"`
}

// Error returns the message.
func (f *FailedError) Error() string { return f.Message }
