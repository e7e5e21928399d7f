// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestAgentRuntimeRules(t *testing.T) {
	const (
		at = `deployment: {mode: external-endpoint, endpoint: "https://h/"}`
		v1 = `contractVersion: platform.harness.v1, clientAuth: {bearerTokenSecretRef: {name: s, key: k}}`
		v2 = `contractVersion: platform.harness.v2, clientAuth: {controllerBearerTokenSecretRef: {name: s, key: a}, operationCapabilitySecretRef: {name: s, key: b}}`
	)
	coretest.Rules(t, "AgentRuntime", [][3]string{
		{"first version", `{` + v1 + `, ` + at + `}`, ""},
		{"everything", `{` + v2 + `, ` + at + `, capabilities: {runtimeInstanceID: i, supportsDrain: true, supportsPublicationFinalization: true,
			workspaceGovernance: {mode: strict-governed, guarantees: [a, b]}, mcpPolicy: {allowedTools: [], allowBash: false}, limits: {maxResidentSessions: 3, minPromptLeaseMillis: 1, maxPromptLeaseMillis: 2}}}`, ""},
		{"version", `{contractVersion: v3, clientAuth: {}, ` + at + `}`, "spec.contractVersion: supported values"},
		{"no secret", `{contractVersion: platform.harness.v2, clientAuth: {controllerBearerTokenSecretRef: {name: s, key: a}}, ` + at + `}`, "spec.clientAuth.operationCapabilitySecretRef: Required"},
		{"secret of the other version", `{contractVersion: platform.harness.v1, clientAuth: {bearerTokenSecretRef: {name: s, key: k}, controllerBearerTokenSecretRef: {name: s, key: k}}, ` + at + `}`, "spec.clientAuth.controllerBearerTokenSecretRef: is for contractVersion platform.harness.v2"},
		{"without TLS", `{` + v1 + `, deployment: {mode: external-endpoint, endpoint: "http://h/"}}`, "spec.deployment.endpoint"},
		{"mode", `{` + v1 + `, deployment: {mode: inside, endpoint: "https://h/"}}`, "spec.deployment.mode: supported values"},
		{"not trusted", `{` + v1 + `, ` + at + `, capabilities: {workspaceGovernance: {mode: trusted-non-governed}}}`, "spec.capabilities.workspaceGovernance.trusted: must be true"},
		{"leases", `{` + v1 + `, ` + at + `, capabilities: {limits: {minPromptLeaseMillis: 3, maxPromptLeaseMillis: 2}}}`, "spec.capabilities.limits.minPromptLeaseMillis: must not exceed"},
		{"digest", `{` + v1 + `, ` + at + `, capabilities: {profile: {protocolVersion: "1", digest: x}}}`, "spec.capabilities.profile.digest: must be sha256:"},
	})
}
