// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace is the contract between a worker and the program platform-workspace, which prepares the repository that a task
// works on. The program is a clean room: a process of its own for each preparation, that ends before anything of the run begins. It
// alone gets the credential that the repository is read with, on its standard input; the run gets a tree of files, and neither a
// credential nor git's own files. See packages repository and checkout for what it does with the repository.
package workspace

import (
	"github.com/platform-ai/platform/pkg/egress"
)

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
	// MaxBytes is what the tree, and before it what the server sends, may take. MaxEntries is how many files, folders and links there may be.
	MaxBytes   int64 `json:"maxBytes"`
	MaxEntries int64 `json:"maxEntries"`
}

// Answer is what the program writes to its standard output, as JSON: a report or a failure.
type Answer struct {
	Report  *Report      `json:"report,omitempty"`
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
