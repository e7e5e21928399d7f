// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64

package sandbox

// auditArch is 0 on architectures whose system calls this package does not know: they have no sandbox.
const auditArch = 0

func openCalls() map[uint32]int { return nil }

func initWatches() []rule { return nil }

func olderAttributeCalls() map[uint32]attributeCall { return map[uint32]attributeCall{} }

func creations() map[uint32]int { return nil }
