// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

func validate(_ context.Context, a *v1alpha1.Agent) field.ErrorList {
	path, spec := field.NewPath("spec"), &a.Spec
	var errs field.ErrorList
	if spec.ProviderRef != nil && spec.Runtime != nil {
		errs = append(errs, field.Forbidden(path.Child("providerRef"), "cannot be set together with runtime"))
	}
	if m := spec.Model; m != nil {
		errs = append(errs, validateModel(m, path.Child("model"))...)
	}
	if s := spec.SystemPrompt; s != nil && s.Inline != "" && s.ConfigMapRef != nil {
		errs = append(errs, field.Forbidden(path.Child("systemPrompt", "configMapRef"), "cannot be set together with inline"))
	}
	errs = append(errs, rule.Skills(spec.Skills, path.Child("skills"))...)
	if s := spec.Session; s != nil {
		errs = append(errs, rule.Positive(s.TTL, path.Child("session", "ttl"))...)
	}
	errs = append(errs, rule.Positive(spec.TTLAfterLastTask, path.Child("ttlAfterLastTask"))...)
	if c := spec.Coordination; c != nil {
		errs = append(errs, rule.Positive(c.ApprovalTimeout, path.Child("coordination", "approvalTimeout"))...)
		errs = append(errs, validateAllowed(c.AllowedAgents, path.Child("coordination", "allowedAgents"))...)
	}
	if r := spec.Runtime; r != nil {
		errs = append(errs, validateRuntime(r, path.Child("runtime"))...)
	}
	return errs
}

// validateAllowed checks references to agents, whose name may stand for all, as the type's own rules do not allow.
func validateAllowed(refs []v1alpha1.NamespacedReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range refs {
		at := path.Index(i)
		switch {
		case ref.Name == "":
			errs = append(errs, field.Required(at.Child("name"), fmt.Sprintf("must name an agent, or be %q for all", v1alpha1.AnyAgent)))
		case ref.Name != v1alpha1.AnyAgent:
			for _, text := range validation.IsDNS1123Subdomain(ref.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), ref.Name, text+fmt.Sprintf("; or %q for all", v1alpha1.AnyAgent)))
			}
		}
		if ref.Namespace != "" {
			for _, text := range validation.IsDNS1123Label(ref.Namespace) {
				errs = append(errs, field.Invalid(at.Child("namespace"), ref.Namespace, text))
			}
		}
	}
	return errs
}

func validateModel(m *v1alpha1.AgentModel, path *field.Path) field.ErrorList {
	errs := rule.Between(m.Temperature, 0, 2, path.Child("temperature"))
	for i, f := range m.Fallbacks {
		if f.ProviderRef == nil && f.Model == "" {
			errs = append(errs, field.Required(path.Child("fallbacks").Index(i), "providerRef or model must be set"))
		}
	}
	if m.MaxTokens != nil && m.ContextWindow != nil && *m.MaxTokens > *m.ContextWindow {
		errs = append(errs, field.Invalid(path.Child("maxTokens"), *m.MaxTokens, "must not be greater than contextWindow"))
	}
	return errs
}

func validateRuntime(r *v1alpha1.AgentCodingRuntime, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case r.Type == "" && r.RuntimeRef == nil:
		errs = append(errs, field.Required(path, "one of type and runtimeRef must be set"))
	case r.Type != "" && r.RuntimeRef != nil:
		errs = append(errs, field.Forbidden(path.Child("runtimeRef"), "cannot be set together with type"))
	}
	effort := path.Child("defaultReasoningEffort")
	switch {
	case r.DefaultReasoningEffort == "" || r.Type == v1alpha1.RuntimeClaude:
	case r.Type != v1alpha1.RuntimeCodex:
		errs = append(errs, field.Forbidden(effort, "only the runtimes claude and codex have it"))
	case r.DefaultReasoningEffort == v1alpha1.ReasoningMax:
		errs = append(errs, field.Invalid(effort, r.DefaultReasoningEffort, fmt.Sprintf("only the runtime claude has it, not %s", r.Type)))
	}
	return errs
}
