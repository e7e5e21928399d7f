// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"

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

func (a *Capabilities) check() error {
	c := &a.Capabilities
	if err := checkHead(a.Protocol, c.RuntimeInstanceID); err != nil {
		return err
	}
	if a.Runtime.Name == "" || !isLabel(a.Runtime.Name) || !isLabel(a.Runtime.Version) {
		return fmt.Errorf("runtime.name is required; it and runtime.version are short texts without control characters")
	}
	if p := c.Profile; p != nil && !digest.MatchString(p.Digest) {
		return fmt.Errorf("capabilities.profile.digest must be sha256: and 64 lower-case hexadecimal digits")
	}
	if err := checkGovernance(c.WorkspaceGovernance); err != nil {
		return err
	}
	return CheckLimits(c.Limits)
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
