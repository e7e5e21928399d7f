// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Limits bound a program. A zero field means no limit.
type Limits struct {
	// CPU is the processor time of each process.
	CPU time.Duration
	// MemoryBytes bounds the data segment of each process, which it can fill, and not the address space, which runtimes such
	// as V8 reserve without using it. All processes together may use as much, with the memory that they share and their files
	// in memory; a program that uses more is ended.
	MemoryBytes uint64
	// Processes bounds how many processes and threads the program has in all. Where the kernel can, for a control group or
	// for an ordinary user, it refuses to start more; otherwise, as root or in a container, a program that has more is ended.
	Processes uint64
	// FileBytes bounds the size of each file that a process writes.
	FileBytes uint64
	// DeletedBytes bounds what files take on disk that were deleted and that processes of the program keep open.
	DeletedBytes uint64
}
