// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Limits bound each process of a program. Zero fields are not limited.
type Limits struct {
	// CPU is the processor time of each process.
	CPU time.Duration
	// MemoryBytes bounds the data segment: what a process can fill, as opposed to
	// what runtimes such as V8 reserve and never touch.
	MemoryBytes uint64
	// Processes bounds how many processes and threads the user may have more
	// than it has now. It does not bind root.
	Processes uint64
}
