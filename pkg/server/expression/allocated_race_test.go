// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package expression_test

// maxAllocated is larger under the race detector, because sync.Pool then drops values at random, on purpose.
const maxAllocated = 4096
