// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentprogram is the list of the coding agents that the platform runs: for each type the program that speaks the Agent Client
// Protocol. The server uses it to refuse tasks whose program is missing, and the worker to start it. On a machine a program is looked for
// in PATH, or the operator names its file (Given). In a cluster it is in an image that the operator names (Images), and what is in an
// image is known only where it runs: the controller asks whether an image is named, and the worker looks for the program.
package agentprogram

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Program is the program of one type of coding agents.
type Program struct {
	// name is looked for in PATH.
	name string
	// Args are the arguments with which it speaks the protocol.
	Args []string
	// Env are variables that keep it from what a run has no use for, as NAME=VALUE.
	Env []string
	// SignIn is the way in which it is signed in to with the key of its models, by the protocol's id; empty for none.
	SignIn string
	// Mode is the mode that suits a sandbox around it, by its own id; empty for that in which it begins. If there is one in which it asks for
	// permission and needs no sandbox of its own, it is that.
	Mode string
	// Port is its argument for the port of 127.0.0.1 on which it serves itself; empty if it needs none.
	Port string
	// install is the command that installs it.
	install string
	// setup tells it where its models are.
	setup func(Models) setup
}

// programs are the known coding agents.
func programs() map[v1alpha1.AgentRuntimeType]Program {
	return map[v1alpha1.AgentRuntimeType]Program{
		v1alpha1.RuntimeClaude: {
			name: "claude-agent-acp", Env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}, install: "npm install -g @agentclientprotocol/claude-agent-acp", setup: claude,
			Mode: "default",
		},
		v1alpha1.RuntimeCodex: {name: "codex-acp", install: "npm install -g @agentclientprotocol/codex-acp", SignIn: "api-key", Mode: "agent-full-access", setup: codex},
		v1alpha1.RuntimeOpenCode: {
			name: "opencode", Args: []string{"acp"}, install: "npm install -g opencode-ai", setup: openCode, Port: "--port",
			Env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_PURE=1"},
		},
		v1alpha1.RuntimeCopilot: {name: "copilot", Args: []string{"--acp"}, install: "npm install -g @github/copilot", setup: copilot},
	}
}

// Given are the programs that the operator named, by type. They take precedence over PATH.
type Given map[v1alpha1.AgentRuntimeType]string

// ParseGiven reads a list of NAME=PATH. Whether there is such a program is not checked; see Check.
func ParseGiven(list []string) (Given, error) {
	g := Given{}
	for _, item := range list {
		name, path, ok := strings.Cut(item, "=")
		t := v1alpha1.AgentRuntimeType(name)
		switch _, known := programs()[t]; {
		case !ok || !known:
			return nil, fmt.Errorf("%q: must be NAME=PATH, with a NAME of %s", item, names())
		case !filepath.IsAbs(path) || strings.Contains(path, ","):
			return nil, fmt.Errorf("%q: the path must be absolute and without a comma", item)
		case g[t] != "":
			return nil, fmt.Errorf("%q: %s is named twice", item, name)
		}
		g[t] = path
	}
	return g, nil
}

// types are those of the known coding agents, in order.
func types() []v1alpha1.AgentRuntimeType { return slices.Sorted(maps.Keys(programs())) }

func names() string {
	var list []string
	for _, t := range types() {
		list = append(list, string(t))
	}
	return strings.Join(list, ", ")
}

// List returns the list that ParseGiven reads.
func (g Given) List() []string {
	var list []string
	for _, t := range slices.Sorted(maps.Keys(g)) {
		list = append(list, string(t)+"="+g[t])
	}
	return list
}

// Check returns an error if one of the programs does not exist.
func (g Given) Check() error {
	for _, t := range slices.Sorted(maps.Keys(g)) {
		if !executable(g[t]) {
			return fmt.Errorf("%s=%s: there is no program that can be executed", t, g[t])
		}
	}
	return nil
}

// Where is where programs of coding agents are looked for.
type Where struct {
	// Given are the programs that the operator named. They are looked for first.
	Given Given
	// Path is a list of folders like PATH.
	Path string
	// Image is the image whose files these are; empty on a machine.
	Image string
}

// Find returns the program of a type, and its file.
func (w Where) Find(t v1alpha1.AgentRuntimeType) (p Program, file string, err error) {
	p, ok := programs()[t]
	if !ok {
		return p, "", fmt.Errorf("the coding agent %q is not known; known are %s", t, names())
	}
	if file := w.Given[t]; file != "" {
		if !executable(file) {
			return p, "", fmt.Errorf("the program of %s, %s, is gone or cannot be executed", t, file)
		}
		return p, file, nil
	}
	for _, dir := range filepath.SplitList(w.Path) {
		if file := filepath.Join(dir, p.name); filepath.IsAbs(file) && executable(file) {
			return p, file, nil
		}
	}
	if w.Image != "" {
		return p, "", fmt.Errorf("the image %s lacks the program %s of %s in its PATH (%s): build one in which it is installed with %s, and name that one with the controller's --%s",
			w.Image, p.name, t, w.Path, p.install, imageFlag(t))
	}
	return p, "", fmt.Errorf("the program %s of %s is not installed on this machine: install it with %s, or name another one with --agent-runtime %s=PATH", p.name, t, p.install, t)
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
