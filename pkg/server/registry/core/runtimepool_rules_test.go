// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestRuntimePoolRules(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	pool := func(image, profile, more string) string {
		return `{trustDomain: {namespace: team, identity: ann}, runtimeNamespace: runtimes, runtime: {image: "` + image + `", profile: {` + profile + `}}` + more + `}`
	}
	pinned, profile := "registry:5000/agent:1@"+digest, `protocolVersion: "1", digest: "`+digest+`"`
	coretest.Rules(t, "RuntimePool", [][3]string{
		{"minimal", pool(pinned, profile, ""), ""},
		{"everything", pool(pinned, profile+`, acpProfile: acp.v1, adapterDigests: {a: "`+digest+`"}, model: m, modelLimits: {context: 1, output: 1}`, `, desiredReplicas: 1, capacity: {maxResidentSessions: 4, maxRunningPrompts: 4}, coldStartTimeoutSeconds: 3600`), ""},
		{"image that is not pinned", pool("agent:latest", profile, ""), "spec.runtime.image: must be pinned by its digest"},
		{"digest", pool(pinned, `protocolVersion: "1", digest: abc`, ""), "spec.runtime.profile.digest: must be sha256:"},
		{"adapter", pool(pinned, profile+`, adapterDigests: {a: b}`, ""), "spec.runtime.profile.adapterDigests[a]: must be sha256:"},
		{"another protocol", pool(pinned, profile+`, acpProfile: acp.v2`, ""), "spec.runtime.profile.acpProfile: supported values"},
		{"two replicas", pool(pinned, profile, `, desiredReplicas: 2`), "spec.desiredReplicas: must be less than or equal to 1"},
		{"cold start", pool(pinned, profile, `, coldStartTimeoutSeconds: 3601`), "spec.coldStartTimeoutSeconds: must be less than or equal to 3600"},
		{"prompts without sessions", pool(pinned, profile, `, capacity: {maxResidentSessions: 1}`), "spec.capacity.maxRunningPrompts: must not exceed"},
	})
}
