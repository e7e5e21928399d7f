// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Guarantees are what a runtime with strict-governed workspaces guarantees, all of them.
func Guarantees() []string {
	return []string{
		"platformOwnedWorkspaceDeltas", "promptScopedBrokerAuthorization", "noDirectSCMPublication", "platformOwnedCleanRoomPublication",
		"exactInstanceFencing", "duplicateSafeMutations", "cancellationSettlement",
	}
}

const (
	// maxLimit is the largest limit that a runtime may state.
	maxLimit = 1<<31 - 1
	// maxLine is how long a line may be, in bytes, whatever a runtime states.
	maxLine = 16 << 20
)

// limit is one of the limits of a runtime: its name, its least value, and its field.
type limit struct {
	name  string
	least int64
	field func(*v1alpha1.AgentRuntimeLimits) *int64
}

func limits() []limit {
	type l = v1alpha1.AgentRuntimeLimits
	return []limit{
		{"maxResidentSessions", 1, func(l *l) *int64 { return l.MaxResidentSessions }},
		{"maxConcurrentPrompts", 1, func(l *l) *int64 { return l.MaxConcurrentPrompts }},
		{"maxRequestBytes", 64 << 10, func(l *l) *int64 { return l.MaxRequestBytes }},
		{"maxEventLineBytes", 1 << 10, func(l *l) *int64 { return l.MaxEventLineBytes }},
		{"maxTerminalResultBytes", 1 << 10, func(l *l) *int64 { return l.MaxTerminalResultBytes }},
		{"maxBufferedEvents", 16, func(l *l) *int64 { return l.MaxBufferedEvents }},
		{"maxUpdateEventsPerSecond", 1, func(l *l) *int64 { return l.MaxUpdateEventsPerSecond }},
		{"minPromptLeaseMillis", 100, func(l *l) *int64 { return l.MinPromptLeaseMillis }},
		{"maxPromptLeaseMillis", 100, func(l *l) *int64 { return l.MaxPromptLeaseMillis }},
		{"maxPendingPermissions", 1, func(l *l) *int64 { return l.MaxPendingPermissions }},
		{"maxWorkspaceDeltaBytes", 1 << 10, func(l *l) *int64 { return l.MaxWorkspaceDeltaBytes }},
	}
}

// Exceeded returns the first limit that is wanted and that a runtime does not reach: all are maxima that must be as large, except for the
// shortest lease, which must be as short. The name is empty if there is none. have has all limits.
func Exceeded(want, have *v1alpha1.AgentRuntimeLimits) (name string, wanted, had int64) {
	if want == nil {
		return "", 0, 0
	}
	for _, one := range limits() {
		w, h := one.field(want), one.field(have)
		if w == nil {
			continue
		}
		if least := one.name == "minPromptLeaseMillis"; least && *h > *w || !least && *h < *w {
			return one.name, *w, *h
		}
	}
	return "", 0, 0
}

func (a *Capabilities) check() error {
	c := &a.Capabilities
	if err := checkHead(a.Protocol, c.RuntimeInstanceID); err != nil {
		return err
	}
	if a.Runtime.Name == "" || !isLabel(a.Runtime.Name) || !isLabel(a.Runtime.Version) {
		return fmt.Errorf("runtime.name is required; it and runtime.version are short texts without control characters")
	}
	if err := checkProfile(c.Profile); err != nil {
		return fmt.Errorf("capabilities.profile.%w", err)
	}
	if err := checkToolPolicy(c.McpPolicy); err != nil {
		return fmt.Errorf("capabilities.mcpPolicy.%w", err)
	}
	if err := checkGovernance(c.WorkspaceGovernance); err != nil {
		return err
	}
	return CheckLimits(c.Limits)
}

// checkProfile checks what an AgentRuntime can have in its status.
func checkProfile(p *v1alpha1.RuntimeProfile) error {
	if p == nil {
		return nil
	}
	for name, value := range map[string]string{"policyDigest": p.PolicyDigest, "configurationDigest": p.ConfigurationDigest} {
		if value != "" && !digest.MatchString(value) {
			return fmt.Errorf("%s must be sha256: and 64 lower-case hexadecimal digits", name)
		}
	}
	for name, value := range p.AdapterDigests {
		if !isLabel(name) || !digest.MatchString(value) || len(p.AdapterDigests) > 64 {
			return fmt.Errorf("adapterDigests must have at most 64 short names, each with sha256: and 64 lower-case hexadecimal digits")
		}
	}
	for _, text := range []struct {
		name, value string
		most        int
	}{
		{"protocolVersion", p.ProtocolVersion, 128},
		{"digestSchemaVersion", p.DigestSchemaVersion, 64},
		{"providerKind", p.ProviderKind, 128},
		{"model", p.Model, 253},
		{"workspaceIntent", p.WorkspaceIntent, 128},
		{"proxyCredentialRole", p.ProxyCredentialRole, 128},
		{"proxyCredentialScope", p.ProxyCredentialScope, 253},
		{"resourceClass", p.ResourceClass, 128},
	} {
		if !isLabel(text.value) || len(text.value) > text.most {
			return fmt.Errorf("%s must have at most %d bytes and no control characters", text.name, text.most)
		}
	}
	switch {
	case p.ProtocolVersion == "":
		return fmt.Errorf("protocolVersion is required")
	case !digest.MatchString(p.Digest):
		return fmt.Errorf("digest must be sha256: and 64 lower-case hexadecimal digits")
	case p.ACPProfile != "" && p.ACPProfile != v1alpha1.ACPProfileV1:
		return fmt.Errorf("acpProfile must be %s", v1alpha1.ACPProfileV1)
	case p.ModelLimits != nil && (ptr.Deref(p.ModelLimits.Context, 1) < 1 || ptr.Deref(p.ModelLimits.Output, 1) < 1):
		return fmt.Errorf("modelLimits must be at least 1")
	}
	return nil
}

func checkToolPolicy(p *v1alpha1.AgentRuntimeToolPolicy) error {
	if p == nil {
		return nil
	}
	for name, list := range map[string][]string{"allowedTools": p.AllowedTools, "disallowedTools": p.DisallowedTools, "approvalRequiredTools": p.ApprovalRequiredTools} {
		seen := map[string]bool{}
		for _, tool := range list {
			if tool == "" || !isLabel(tool) || seen[tool] || len(list) > 256 {
				return fmt.Errorf("%s must have at most 256 short names, each once", name)
			}
			seen[tool] = true
		}
	}
	return nil
}

func checkGovernance(g *v1alpha1.AgentRuntimeGovernance) error {
	const at = "capabilities.workspaceGovernance"
	if g == nil {
		return fmt.Errorf("%s is required", at)
	}
	seen := map[string]bool{}
	for _, name := range g.Guarantees {
		if !slices.Contains(Guarantees(), name) || seen[name] {
			return fmt.Errorf("%s.guarantees has an unknown name, or one twice", at)
		}
		seen[name] = true
	}
	switch {
	case g.Mode == v1alpha1.GovernanceStrict && (g.Trusted || len(seen) < len(Guarantees())):
		return fmt.Errorf("%s.guarantees must have all seven with mode strict-governed, and trusted must not be true", at)
	case g.Mode == v1alpha1.GovernanceTrusted && (!g.Trusted || len(seen) > 0):
		return fmt.Errorf("%s.guarantees must be empty with mode trusted-non-governed, and trusted must be true", at)
	case g.Mode != v1alpha1.GovernanceStrict && g.Mode != v1alpha1.GovernanceTrusted:
		return fmt.Errorf("%s.mode must be strict-governed or trusted-non-governed", at)
	}
	return nil
}

// CheckLimits returns an error that names the first limit that is missing or out of range.
func CheckLimits(l *v1alpha1.AgentRuntimeLimits) error {
	if l == nil {
		return fmt.Errorf("capabilities.limits is required")
	}
	for _, one := range limits() {
		n := one.field(l)
		switch {
		case n == nil:
			return fmt.Errorf("capabilities.limits.%s is required", one.name)
		case *n < one.least || *n > maxLimit:
			return fmt.Errorf("capabilities.limits.%s is %d; it must be %d to %d", one.name, *n, one.least, maxLimit)
		}
	}
	switch {
	case *l.MinPromptLeaseMillis > *l.MaxPromptLeaseMillis:
		return fmt.Errorf("capabilities.limits.minPromptLeaseMillis must not exceed maxPromptLeaseMillis")
	case *l.MaxTerminalResultBytes > *l.MaxEventLineBytes:
		return fmt.Errorf("capabilities.limits.maxTerminalResultBytes must not exceed maxEventLineBytes")
	}
	return nil
}
