// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// constraints are the members of a transaction's context (tctx) that limit what may be done in the transaction. Other
// members inform, and limit nothing. A list may be given as one text.
type constraints struct {
	// Namespace is the only namespace.
	Namespace string `json:"namespace"`
	// Repo, Branch and Ref are what the workspace of a task must use.
	Repo   words `json:"repo"`
	Branch words `json:"branch"`
	Ref    words `json:"ref"`
	// Agent and AllowedAgents are the only Agents of tasks.
	Agent         words `json:"agent"`
	AllowedAgents words `json:"allowedAgents"`
	// Provider and AllowedProviders are the only Providers of tasks, which name them themselves.
	Provider         words `json:"provider"`
	AllowedProviders words `json:"allowedProviders"`
	// Task are the names of the only tasks.
	Task words `json:"task"`
	// AllowedTools are the only tools of tasks and of this server, also of those that are added automatically. Nil allows
	// each, and an empty list none.
	AllowedTools *words `json:"allowedTools"`
}

// constraintsOf returns the constraints of a transaction. One that cannot be understood is an error, because it must not
// be ignored.
func constraintsOf(t *v1alpha1.TaskTransaction) (constraints, error) {
	var c constraints
	if t == nil || t.Context == nil {
		return c, nil
	}
	if err := json.Unmarshal(t.Context.Raw, &c); err != nil {
		return c, fmt.Errorf("tctx: %w", err)
	}
	return c, nil
}

// Repositories returns the addresses of the repositories that a transaction is about (tctx.repo). The transaction is nil for a task that is
// in none.
func Repositories(t *v1alpha1.TaskTransaction) []string {
	c, err := constraintsOf(t)
	if err != nil {
		return nil
	}
	return c.Repo
}

// agents and providers are the allowed names; nil allows each.
func (c *constraints) agents() []string { return slices.Concat(c.Agent, c.AllowedAgents) }

func (c *constraints) providers() []string { return slices.Concat(c.Provider, c.AllowedProviders) }

// objects reports whether the transaction is limited to certain objects of its namespace.
func (c *constraints) objects() bool {
	return c.content() || len(c.Task) > 0
}

// content reports whether the transaction limits what a task may contain.
func (c *constraints) content() bool {
	return len(c.agents())+len(c.providers())+len(c.Repo)+len(c.Branch)+len(c.Ref) > 0
}

// withoutTool returns the first of the tools that the transaction does not allow; empty if it allows all.
func (c *constraints) withoutTool(names ...string) string {
	for _, name := range names {
		if c.AllowedTools != nil && !slices.Contains(*c.AllowedTools, name) {
			return name
		}
	}
	return ""
}

// refuses returns what a refusal of a tool says.
func (c *constraints) refuses(tool string) string {
	if len(*c.AllowedTools) == 0 {
		return fmt.Sprintf("tool %q: the transaction allows no tools", tool)
	}
	return fmt.Sprintf("tool %q: the transaction allows only the tools %s", tool, strings.Join(*c.AllowedTools, ", "))
}

// task returns why the task may not be created in the transaction; empty if it may.
func (c *constraints) task(t *v1alpha1.Task) string {
	w := t.Spec.Workspace
	if w == nil {
		w = &v1alpha1.TaskWorkspace{}
	}
	agent, provider := "", ""
	if r := t.Spec.AgentRef; r != nil {
		agent = r.Name
		if r.Namespace != "" && r.Namespace != t.Namespace {
			agent = r.Namespace + "/" + r.Name
		}
	}
	if ai := t.Spec.AI; ai != nil && ai.ProviderRef != nil {
		provider = ai.ProviderRef.Name
		if ns := ai.ProviderRef.Namespace; ns != "" && ns != t.Namespace {
			provider = ns + "/" + provider
		}
	}
	for _, rule := range []struct {
		field, value string
		allowed      []string
	}{
		{"metadata.name", t.Name, c.Task},
		{"spec.agentRef.name", agent, c.agents()},
		{"spec.ai.providerRef.name", provider, c.providers()},
		{"spec.workspace.gitRepo", w.GitRepo, c.Repo},
		{"spec.workspace.branch", w.Branch, c.Branch},
		{"spec.workspace.ref", w.Ref, c.Ref},
	} {
		if len(rule.allowed) > 0 && !slices.Contains(rule.allowed, rule.value) {
			return fmt.Sprintf("%s: %q: the transaction allows only %s", rule.field, rule.value, strings.Join(rule.allowed, ", "))
		}
	}
	if len(c.providers()) > 0 && agent != "" {
		return "spec.agentRef: an Agent has Providers of its own, and the transaction allows only " + strings.Join(c.providers(), ", ")
	}
	return ""
}
