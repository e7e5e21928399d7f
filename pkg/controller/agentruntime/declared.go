// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentruntime

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/harness"
)

// differs returns what a runtime lacks of what is declared, with the field; empty if it lacks nothing. What is not declared may be
// anything.
func differs(want, have *v1alpha1.AgentRuntimeCapabilities) string {
	if want == nil {
		return ""
	}
	const at = "spec.capabilities"
	switch {
	case want.RuntimeInstanceID != "" && want.RuntimeInstanceID != have.RuntimeInstanceID:
		return fmt.Sprintf("%s.runtimeInstanceID: the instance is %s", at, have.RuntimeInstanceID)
	case want.Profile != nil && have.Profile == nil:
		return at + ".profile: the runtime has no profile"
	case want.Profile != nil && want.Profile.Digest != have.Profile.Digest:
		return fmt.Sprintf("%s.profile.digest: the runtime has the profile %s", at, have.Profile.Digest)
	case want.SupportsDrain && !have.SupportsDrain:
		return at + ".supportsDrain: the runtime does not support it"
	case want.SupportsPublicationFinalization && !have.SupportsPublicationFinalization:
		return at + ".supportsPublicationFinalization: the runtime does not support it"
	case want.McpPolicy != nil && have.McpPolicy != nil && !equality.Semantic.DeepEqual(want.McpPolicy, have.McpPolicy):
		return at + ".mcpPolicy: the runtime has another policy of its own, see status.observedCapabilities.mcpPolicy"
	}
	if text := governanceDiffers(want.WorkspaceGovernance, have.WorkspaceGovernance); text != "" {
		return at + ".workspaceGovernance" + text
	}
	if name, wanted, had := harness.Exceeded(want.Limits, have.Limits); name != "" {
		return fmt.Sprintf("%s.limits.%s: %d is declared, and the runtime has %d", at, name, wanted, had)
	}
	return ""
}

func governanceDiffers(want, have *v1alpha1.AgentRuntimeGovernance) string {
	if want == nil {
		return ""
	}
	if want.Mode != have.Mode {
		return fmt.Sprintf(".mode: the runtime is %s", have.Mode)
	}
	for _, name := range want.Guarantees {
		if !slices.Contains(have.Guarantees, name) {
			return fmt.Sprintf(".guarantees: the runtime does not guarantee %s", name)
		}
	}
	return ""
}
