// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// EnvWith names, separated by commas, what the tests may use besides Go and this repository's programs. The Makefile sets it for each
// tier of the tests; without it a test that needs more is skipped.
const EnvWith = "PLATFORM_TEST_WITH"

// Need is what a test may need besides Go and this repository's programs.
type Need string

const (
	// ControlPlane is the programs of a Kubernetes control plane, which "make control" builds.
	ControlPlane Need = "control-plane"
	// Node is a running cluster with a node, which "make cluster-up" starts as root.
	Node Need = "node"
	// Browser is Debian's chromium-headless-shell.
	Browser Need = "browser"
	// NPM is the clients and checkers that npm installs.
	NPM Need = "npm"
	// Clients is the coding agents and frameworks that "make clients" installs: clients that strangers use.
	Clients Need = "clients"
	// Agents is the coding agents that "make agents" installs.
	Agents Need = "agents"
	// Forge is the code host that "make forge" builds.
	Forge Need = "forge"
	// Chat is Debian's prosody, and the programs that "make chat" builds: an adapter for it and a client of it.
	Chat Need = "chat"
	// Minutes is time: the test works through many or large inputs, and a short one beside it covers the same code.
	Minutes Need = "minutes"
)

// Offered reports whether this run of the tests offers a need.
func Offered(n Need) bool {
	return slices.Contains(strings.Split(os.Getenv(EnvWith), ","), string(n))
}

// Needs skips the test unless this run offers all that the test needs. What is offered and then missing fails the test that uses it.
func Needs(t testing.TB, needs ...Need) {
	t.Helper()
	for _, n := range needs {
		if !Offered(n) {
			t.Skipf("needs %s", n)
		}
	}
}
