// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"fmt"

	"github.com/platform-ai/platform/pkg/envflag"
)

// refusedFlag is a documented flag for something that this version does in another way, or not at all. It is known so that who sets it is
// told why it is refused.
type refusedFlag struct {
	name, why string
	text      string
	set       bool
}

const (
	noRuntimeNamespace = "coding agents run in the namespace of their task, with what its worker may do"
	noProviderProxy    = "coding agents reach their models through their worker and the server, which has the keys"
	noHarnessV1        = "runtimes of platform.harness.v1 are given no tasks; register one of platform.harness.v2 as an AgentRuntime"
	noOtherSandbox     = "tasks work in the sandbox of their own run, and in no other one"
)

func refusedFlags() []*refusedFlag {
	return []*refusedFlag{
		{name: "acp-runtime-namespace", why: noRuntimeNamespace},
		{name: "acp-provider-proxy-namespace", why: noProviderProxy},
		{name: "acp-provider-proxy-base-url", why: noProviderProxy},
		{name: "acp-provider-proxy-pod-labels", why: noProviderProxy},
		{name: "acp-provider-proxy-token-file", why: noProviderProxy},
		{name: "harness-v1-endpoint", why: noHarnessV1},
		{name: "harness-v1-ca-file", why: noHarnessV1},
		{name: "harness-v1-auth-secret-name", why: noHarnessV1},
		{name: "harness-v1-auth-secret-key", why: noHarnessV1},
		{name: "harness-v1-dispatch-interval", why: noHarnessV1},
		{name: "harness-v1-dispatch-workers", why: noHarnessV1},
		{name: "acp-workspace-dispatch-enabled", why: noOtherSandbox},
		{name: "agent-sandbox-enabled", why: noOtherSandbox},
		{name: "substrate-enabled", why: noOtherSandbox},
	}
}

func (f *refusedFlag) add(to *envflag.Set) {
	text := "refused: " + f.why
	if f.why == noOtherSandbox {
		to.Bool(&f.set, f.name, false, text)
		return
	}
	to.Text(&f.text, f.name, "", text)
}

func (f *refusedFlag) check() error {
	if f.text != "" || f.set {
		return fmt.Errorf("--%s: is refused: %s", f.name, f.why)
	}
	return nil
}
