// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

// In a Pod the program is an init container. Its order is in its environment, its credential in a file that no other container has,
// and its report in a file that the worker reads (see the variables of package runspec). A failure is its termination message.
const (
	// ContainerName is the name of that container.
	ContainerName = "prepare-workspace"
	// ProgramPath is where the worker's image has the program.
	ProgramPath = "/" + ProgramName
	// InitVerb is the argument with which it is started there.
	InitVerb = "init"
	// MaxTermination bounds the termination message, in bytes, as the kubelet does.
	MaxTermination = 4096
)
