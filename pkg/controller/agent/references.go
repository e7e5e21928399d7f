// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// references is the step that reports whether tasks of the Agent can run, as far as that depends on the Agent.
type references struct {
	reader plan.Reader
	place  plan.Place
}

func (s references) do(ctx context.Context, a *v1alpha1.Agent) error {
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "all that the agent refers to was found", ObservedGeneration: a.Generation,
	}
	reason, message, err := s.problem(ctx, a)
	if err != nil {
		return err
	}
	if message != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, message
	}
	a.Status.Ready = c.Status == metav1.ConditionTrue
	a.Status.ObservedGeneration = a.Generation
	meta.SetStatusCondition(&a.Status.Conditions, c)
	return nil
}

// problem returns the first problem, and the reason for the condition; the message is empty if there is no problem.
func (s references) problem(ctx context.Context, a *v1alpha1.Agent) (reason, message string, err error) {
	found, err := plan.CheckAgent(ctx, s.reader, s.place, a)
	refused, ok := errors.AsType[*refusal.Error](err)
	switch {
	case ok && refused.Reason == v1alpha1.ReasonNotSupported:
		return refused.Reason, refused.Message, nil
	case ok:
		return v1alpha1.ReasonValidationFailed, refused.Message, nil
	case err != nil:
		return "", "", err
	}
	for _, p := range found.Providers {
		if !p.Status.Ready {
			return v1alpha1.ReasonValidationFailed, fmt.Sprintf("Provider %q is not ready", p.Name), nil
		}
	}
	for _, skill := range found.Skills {
		if skill.Status.Phase == v1alpha1.SkillError {
			return v1alpha1.ReasonValidationFailed, fmt.Sprintf("Skill %q has an error", skill.Name), nil
		}
	}
	return "", "", nil
}
