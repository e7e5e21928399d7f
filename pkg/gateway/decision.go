// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
)

// Decisions, as people write them.
const (
	Approve = "approve"
	Decline = "decline"
)

// ApprovalCode returns what people write in a conversation to say which approval they mean. It is no secret: who may decide does not depend on
// who knows it.
func ApprovalCode(a *v1alpha1.Approval) string {
	sum := sha256.Sum256([]byte(a.Namespace + "\x00" + a.Name))
	return "ap-" + hex.EncodeToString(sum[:4])
}

// decision is a text that decides about an approval. What looks otherwise is for the Agent.
var decision = regexp.MustCompile(`^(?i)\s*/?(approve|decline)\s+(ap-[0-9a-f]{8})(?:\s+(?s:(.*\S)))?\s*$`)

// maxReason is the maximum length of a reason, in bytes. With what the server adds it must fit into the 1024 characters of a decision.
const maxReason = 768

// DecisionOf returns what a text decides about an approval, and why, as its writer says; nil if it decides nothing.
func DecisionOf(text string) (d *v1alpha1.GatewayEventDecision, reason string) {
	m := decision.FindStringSubmatch(text)
	if m == nil {
		return nil, ""
	}
	return &v1alpha1.GatewayEventDecision{Decision: strings.ToLower(m[1]), Code: strings.ToLower(m[2])}, clip.Text(m[3], maxReason)
}

// SamePlace reports whether two events of a gateway were written in the same place, in which an answer to one is seen by the other's writer.
func SamePlace(a, b *v1alpha1.GatewayEventSpec) bool {
	return a.GatewayUID == b.GatewayUID && a.AccountID == b.AccountID && a.ContextID == b.ContextID && a.ThreadID == b.ThreadID
}
