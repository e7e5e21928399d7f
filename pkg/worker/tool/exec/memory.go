// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/worker/program"
)

// noMemory are the words of interpreters and of the C library about an allocation that was refused.
var noMemory = []string{"MemoryError", "Cannot allocate memory", "cannot allocate", "std::bad_alloc", "heap out of memory", "Array buffer allocation failed"}

// lacked says how a failed program lacked memory; empty if nothing points to it. The kernel does not report that the limit
// refused an allocation, so the words of the program decide.
func (o Options) lacked(outcome program.Outcome, stderr string) string {
	switch {
	case outcome.OutOfMemory:
		return "the kernel ended the program because there was no memory left"
	case outcome.ExitCode != 0 && slices.ContainsFunc(noMemory, func(words string) bool { return strings.Contains(stderr, words) }):
		return fmt.Sprintf("the program was refused memory; each of its processes may have %d MiB", o.Limits.MemoryBytes>>20)
	}
	return ""
}
