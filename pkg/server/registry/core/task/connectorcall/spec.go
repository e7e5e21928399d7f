// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorcall

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/connector"
)

// defaultTimeout is how long a tool that does not say so may take.
const defaultTimeout = 30 * time.Second

// spec returns what the effect of a call binds.
func (s *Calls) spec(c *call) (v1alpha1.ToolEffectSpec, error) {
	digest, err := approval.Digest(c.arguments)
	if err != nil {
		return v1alpha1.ToolEffectSpec{}, fails(v1alpha1.ConnectorInvalidArguments, "arguments: %v", err)
	}
	timeout := defaultTimeout
	if d := c.tool.HTTP.Timeout; d != nil && d.Value() > 0 {
		timeout = d.Value()
	}
	live := c.connection
	return v1alpha1.ToolEffectSpec{
		TaskName: c.task.Name, TaskUID: c.task.UID, Attempt: c.task.Status.Attempts, CallID: c.posted.CallID,
		Tool: c.tool.Name, ConnectorProvider: c.provider.Name,
		Connection: v1alpha1.ToolEffectConnection{Name: live.Name, UID: live.UID, Generation: live.Generation, GrantSequence: live.Status.GrantSequence},
		ToolDigest: connector.ToolDigest(c.tool), PolicyDigest: connector.InjectionDigest(), RequestDigest: digest,
		TimeoutSeconds: int32((timeout + time.Second - 1) / time.Second), CreatedAt: metav1.NewMicroTime(s.o.Clock.Now()),
	}, nil
}

// differs says what of two effects is not the same.
func differs(approved, now *v1alpha1.ToolEffectSpec) string {
	var parts []string
	for _, part := range []struct {
		what string
		same bool
	}{
		{"the task", approved.TaskUID == now.TaskUID},
		{"the tool", approved.Tool == now.Tool && approved.ConnectorProvider == now.ConnectorProvider && approved.ToolDigest == now.ToolDigest && approved.TimeoutSeconds == now.TimeoutSeconds},
		{"how the credential is sent", approved.PolicyDigest == now.PolicyDigest},
		{"the connection", approved.Connection == now.Connection},
		{"the arguments", approved.RequestDigest == now.RequestDigest},
	} {
		if !part.same {
			parts = append(parts, part.what)
		}
	}
	return "it differs in " + strings.Join(parts, " and ")
}
