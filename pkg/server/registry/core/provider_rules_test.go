// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestProviderRules(t *testing.T) {
	coretest.Rules(t, "Provider", [][3]string{
		{"openai", `{type: openai, secretRef: {name: s}}`, ""},
		{"no secret", `{type: openai}`, "spec.secretRef.name: Required"},
		{"unknown", `{type: acme, secretRef: {name: s}}`, "spec.type: supported values"},
		{"azure without address", `{type: azure-openai, secretRef: {name: s}, azure: {deploymentName: d}}`, "spec.baseURL: type azure-openai needs it"},
		{"azure without deployment", `{type: azure-openai, secretRef: {name: s}, baseURL: "https://h"}`, "spec.azure: type azure-openai needs it"},
		{"azure of openai", `{type: openai, secretRef: {name: s}, azure: {deploymentName: d}}`, "spec.azure: not for openai"},
		{"address with key", `{type: openai, secretRef: {name: s}, baseURL: "https://h/?key=secret"}`, "spec.baseURL: must not contain a query"},
		{"address with password", `{type: openai, secretRef: {name: s}, baseURL: "https://a:b@h/"}`, "spec.baseURL: must not contain credentials"},
		{"prices", `{type: openai, secretRef: {name: s}, prices: [{model: m, effectiveFrom: "2026-01-01", currency: USD, input: "3", output: "15"}]}`, ""},
		{"price in words", `{type: openai, secretRef: {name: s}, prices: [{model: m, effectiveFrom: "2026-01-01", currency: USD, input: cheap, output: "15"}]}`, "spec.prices[0].input: must be a decimal number"},
		{"price without currency", `{type: openai, secretRef: {name: s}, prices: [{model: m, effectiveFrom: "2026-01-01", input: "3", output: "15"}]}`, "spec.prices[0].currency: Required"},
	})
}
