// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package expression_test

// maxAllocated is how much judging an explosion may allocate in all, in MiB.
const maxAllocated = 64
