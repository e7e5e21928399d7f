// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"math"
	_ "time/tzdata" // time zones, also for hosts that lack them

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

const (
	// maxName leaves room in the 253 bytes of an object name for the suffix of event names, which consist of the
	// task's name, a dot and ten digits.
	maxName = validation.DNS1123SubdomainMaxLength - 11
	// maxScheduledName also leaves room for the suffix in the names of scheduled runs: a dash and ten digits.
	maxScheduledName = maxName - 11
)

func validateName(name string, prefix bool) []string {
	if len(name) > maxName {
		return []string{validation.MaxLenError(maxName)}
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// validate checks the rules that involve several fields.
func (r rules) validate(ctx context.Context, t *v1alpha1.Task) field.ErrorList {
	path, spec := field.NewPath("spec"), &t.Spec
	var errs field.ErrorList
	if t.ResourceVersion == "" && !requester.Stamped(ctx) { // it is being created, and the server set nothing
		errs = append(requester.ValidateServerSet(t), validateTexts(spec, nil)...)
	}
	errs = append(errs, validateType(spec, path)...)
	errs = append(errs, validateSchedule(t, path)...)
	errs = append(errs, rule.Positive(spec.Timeout, path.Child("timeout"))...)
	if p := spec.RetryPolicy; p != nil {
		retry := path.Child("retryPolicy")
		errs = append(errs, rule.Between(p.BackoffMultiplier, 1, math.Inf(1), retry.Child("backoffMultiplier"))...)
		errs = append(errs, rule.Positive(p.InitialDelay, retry.Child("initialDelay"))...)
	}
	webhook := rule.HTTP()
	webhook.Query = true
	errs = append(errs, webhook.Check(spec.WebhookURL, path.Child("webhookURL"))...)
	errs = append(errs, validateEnv(spec.Env, path.Child("env"))...)
	errs = append(errs, validateReferences(t, path)...)
	if spec.AI != nil {
		errs = append(errs, validateAI(spec.AI, path.Child("ai"))...)
	}
	if spec.Workspace != nil {
		errs = append(errs, validateWorkspace(spec, path.Child("workspace"))...)
	}
	if e := spec.Execution; e != nil && e.Workspace != nil {
		errs = append(errs, r.validateExecutionWorkspace(spec, path.Child("execution", "workspace"))...)
	}
	return append(errs, r.validatePlan(ctx, t, errs)...)
}

// validateTexts limits the texts that a task is given, unless old, which may be nil, has them too.
func validateTexts(spec, old *v1alpha1.TaskSpec) field.ErrorList {
	texts := func(s *v1alpha1.TaskSpec) [3]string {
		switch {
		case s == nil:
			return [3]string{}
		case s.AI == nil:
			return [3]string{s.Prompt}
		default:
			return [3]string{s.Prompt, s.AI.Prompt, s.AI.SystemPrompt}
		}
	}
	now, before := texts(spec), texts(old)
	var errs field.ErrorList
	path := field.NewPath("spec")
	for i, at := range []*field.Path{path.Child("prompt"), path.Child("ai", "prompt"), path.Child("ai", "systemPrompt")} {
		if len(now[i]) > v1alpha1.MaxPromptBytes && now[i] != before[i] {
			errs = append(errs, field.TooLong(at, "", v1alpha1.MaxPromptBytes))
		}
	}
	return errs
}

// validateType checks that the fields are valid for the type of the task.
func validateType(spec *v1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	switch spec.Type {
	case v1alpha1.TaskTypeContainer, v1alpha1.TaskTypeAI, v1alpha1.TaskTypeAgent:
	default:
		return nil // reported by its tag
	}
	var errs field.ErrorList
	only := func(set bool, t v1alpha1.TaskType, name string) {
		if set && spec.Type != t {
			errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("is for tasks of type %s, not for %s", t, spec.Type)))
		}
	}
	only(spec.Image != "", v1alpha1.TaskTypeContainer, "image")
	only(len(spec.Command) > 0, v1alpha1.TaskTypeContainer, "command")
	only(len(spec.Args) > 0, v1alpha1.TaskTypeContainer, "args")
	only(spec.AI != nil, v1alpha1.TaskTypeAI, "ai")
	only(spec.AgentRuntime != nil, v1alpha1.TaskTypeAgent, "agentRuntime")
	if spec.Type == v1alpha1.TaskTypeAgent && spec.AgentRef == nil {
		errs = append(errs, field.Required(path.Child("agentRef"), "a task of type agent needs it"))
	}
	return errs
}

func validateSchedule(t *v1alpha1.Task, path *field.Path) field.ErrorList {
	errs := rule.Schedule(t.Spec.Schedule, t.Spec.TimeZone, path)
	if t.Spec.Schedule != "" && len(t.Name) > maxScheduledName {
		errs = append(errs, field.Invalid(path.Child("schedule"), t.Spec.Schedule, fmt.Sprintf("the name of a scheduled task must be at most %d bytes", maxScheduledName)))
	}
	return errs
}

// validateEnv requires values that the worker can resolve: literals, Secrets and ConfigMaps.
func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		p := path.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			for _, msg := range validation.IsEnvVarName(e.Name) {
				errs = append(errs, field.Invalid(p.Child("name"), e.Name, msg))
			}
		}
		if e.ValueFrom != nil {
			if e.Value != "" {
				errs = append(errs, field.Forbidden(p.Child("valueFrom"), "cannot be set together with value"))
			}
			errs = append(errs, validateEnvSource(e.ValueFrom, p.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateEnvSource(from *corev1.EnvVarSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	set := 0
	for _, is := range []bool{from.SecretKeyRef != nil, from.ConfigMapKeyRef != nil, from.FieldRef != nil, from.ResourceFieldRef != nil, from.FileKeyRef != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "exactly one source must be set"))
	}
	if r := from.SecretKeyRef; r != nil && (r.Name == "" || r.Key == "") {
		errs = append(errs, field.Required(path.Child("secretKeyRef"), "name and key must be set"))
	}
	if r := from.ConfigMapKeyRef; r != nil && (r.Name == "" || r.Key == "") {
		errs = append(errs, field.Required(path.Child("configMapKeyRef"), "name and key must be set"))
	}
	return errs
}

func validateReferences(t *v1alpha1.Task, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// The executor reads the Secret with its own permissions, so the reference must not reach beyond the task's
	// namespace.
	if r := t.Spec.SecretRef; r != nil && r.Namespace != "" && r.Namespace != t.Namespace {
		errs = append(errs, field.Invalid(path.Child("secretRef", "namespace"), r.Namespace, "must be the task's own namespace"))
	}
	if r := t.Spec.PriorTaskRef; r != nil && r.Name == t.Name && (r.Namespace == "" || r.Namespace == t.Namespace) {
		errs = append(errs, field.Invalid(path.Child("priorTaskRef", "name"), r.Name, "must be another task"))
	}
	return errs
}

func validateAI(ai *v1alpha1.TaskAI, path *field.Path) field.ErrorList {
	errs := rule.Between(ai.Temperature, 0, 2, path.Child("temperature"))
	errs = append(errs, rule.Skills(ai.Skills, path.Child("skills"))...)
	vendor, _ := vendors.Find(ai.Provider)
	switch {
	case vendor.NeedsBaseURL: // only a Provider has one
		errs = append(errs, field.Invalid(path.Child("provider"), ai.Provider, "needs a Provider: set providerRef"))
	case ai.Provider != "" && ai.ProviderRef != nil:
		errs = append(errs, field.Forbidden(path.Child("provider"), "cannot be set together with providerRef"))
	}
	return errs
}
