// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command has those rules of package plan that concern tasks of type container. They need nothing but the task
// and the place, so a worker that only runs commands links neither tools nor vendors of models, whose initialization takes
// longer than a small program.
package command

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/support"
)

// Place describes what the place where commands run supports. Each field is the message with which something is
// refused there, and empty if it is allowed.
type Place struct {
	// NoContainers refuses all tasks of type container, and NoPrograms everything that runs programs.
	NoContainers, NoPrograms string
	// NoImages refuses tasks that name an image.
	NoImages string
	// NoPodFields refuses variables whose values come from the fields of a Pod.
	NoPodFields string
	// NoNetwork refuses tasks whose command is to reach the public internet through a proxy.
	NoNetwork string
}

// Public reports whether the command of a task reaches the public internet through a proxy: an agent whose programs do
// delegated it. Commands of tasks that an agent delegated have no other network.
func Public(t *v1alpha1.Task) bool {
	d := t.Status.Delegation
	return d != nil && d.Network == v1alpha1.SandboxNetworkPublic
}

// Check applies all rules of this package to a task of type container. The error is a *refusal.Error. The caller is sure that what
// the task refers to exists.
func (p Place) Check(t *v1alpha1.Task) error {
	if gaps := support.Refused(support.Task(t)); len(gaps) > 0 {
		return refusal.New(v1alpha1.ReasonNotSupported, "%s", gaps[0])
	}
	for i := range t.Spec.Env {
		if err := p.Variable(&t.Spec.Env[i]); err != nil {
			return err
		}
	}
	return p.Runs(t)
}

// Variable applies the rules for a variable of a task's environment.
func (p Place) Variable(e *corev1.EnvVar) error {
	if from := e.ValueFrom; from != nil && from.SecretKeyRef == nil && from.ConfigMapKeyRef == nil && p.NoPodFields != "" {
		return refusal.New(v1alpha1.ReasonRefused, "spec.env: the value of %s comes from fields of a pod: %s", e.Name, p.NoPodFields)
	}
	return nil
}

// Runs applies the rules for the command and its image.
func (p Place) Runs(t *v1alpha1.Task) error {
	switch {
	case p.NoContainers != "":
		return refusal.New(v1alpha1.ReasonHostCommandsNotAllowed, "%s", p.NoContainers)
	case p.NoPrograms != "":
		return refusal.New(v1alpha1.ReasonSandboxUnavailable, "%s", p.NoPrograms)
	case p.NoNetwork != "" && Public(t):
		return refusal.New(v1alpha1.ReasonSandboxUnavailable, "spec.sandbox.network of the agent that delegated the task is Public: %s", p.NoNetwork)
	case p.NoImages != "" && t.Spec.Image != "":
		return refusal.New(v1alpha1.ReasonImageNotUsed, "spec.image is %s: %s", t.Spec.Image, p.NoImages)
	case len(t.Spec.Command) == 0:
		return refusal.New(v1alpha1.ReasonCommandRequired, "spec.command is required: the worker runs the command, and cannot know what an image would run by itself")
	}
	return nil
}
