// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestBudgetRules(t *testing.T) {
	coretest.Rules(t, "Budget", [][3]string{
		{"minimal", `{limit: {tokens: 1000}, window: day}`, ""},
		{"everything", `{limit: {tokens: 1000}, window: month, perIdentity: true, warnPercent: [50, 90], selector: {taskLabels: {a: b}, agents: [a], providers: [p], requesters: [{kind: Group, name: "oidc:team"}]}}`, ""},
		{"no limit", `{limit: {}, window: day}`, "spec.limit: Required value: must have either tokens or cost"},
		{"cost", `{limit: {cost: {amount: "12.50", currency: USD}}, window: day}`, ""},
		{"two limits", `{limit: {tokens: 1, cost: {amount: "1", currency: USD}}, window: day}`, "spec.limit: must have either tokens or cost, not both"},
		{"cost of nothing", `{limit: {cost: {amount: "0", currency: USD}}, window: day}`, "spec.limit.cost.amount: must be greater than zero"},
		{"negative cost", `{limit: {cost: {amount: "-1", currency: USD}}, window: day}`, "spec.limit.cost.amount: must be a decimal number"},
		{"another currency", `{limit: {cost: {amount: "1", currency: $}}, window: day}`, "spec.limit.cost.currency: must be an ISO 4217 code"},
		{"no currency", `{limit: {cost: {amount: "1"}}, window: day}`, "spec.limit.cost.currency: Required"},
		{"limit zero", `{limit: {tokens: 0}, window: day}`, "spec.limit.tokens"},
		{"no window", `{limit: {tokens: 1}}`, "spec.window: Required"},
		{"another window", `{limit: {tokens: 1}, window: year}`, "spec.window: supported values"},
		{"percentage", `{limit: {tokens: 1}, window: day, warnPercent: [101]}`, "spec.warnPercent[0]: must be 1 to 100"},
		{"percentage twice", `{limit: {tokens: 1}, window: day, warnPercent: [50, 50]}`, "spec.warnPercent[1]: Duplicate"},
		{"subject", `{limit: {tokens: 1}, window: day, selector: {requesters: [{kind: Team, name: x}]}}`, "spec.selector.requesters[0].kind: supported values"},
		{"account of elsewhere", `{limit: {tokens: 1}, window: day, selector: {requesters: [{kind: ServiceAccount, name: "ns:x"}]}}`, "spec.selector.requesters[0].name: name a ServiceAccount of another namespace as kind User"},
	})
}
