// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Remote is the registered runtime at which the coding agent of a run is, as it was when the attempt was assigned. It has no secret.
type Remote struct {
	// Namespace, Name, UID and Generation identify the AgentRuntime.
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Endpoint is its address, Instance the instance that was observed, and ProfileDigest the digest of its profile; empty if it
	// reports none.
	Endpoint      string `json:"endpoint"`
	Instance      string `json:"instance"`
	ProfileDigest string `json:"profileDigest,omitempty"`
	// LeaseMillis is how long a lease of the prompt is good for.
	LeaseMillis int64 `json:"leaseMillis"`
	// MaxDeltaBytes is how many bytes the file with what has changed may have.
	MaxDeltaBytes int64 `json:"maxDeltaBytes"`
}

// KeepsCommit reports whether the worker of a task needs the commit of its workspace after the files were written: to compare with it, or
// to send it to the runtime, which is nil for none.
func KeepsCommit(ws *v1alpha1.TaskWorkspace, r *Remote) bool { return ws.Writes() || r != nil }
