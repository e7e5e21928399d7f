// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// need adds a Secret to the Plan, if it exists, the run may use it, and its value may be sent to the address. The
// address is nil for values that programs get.
func (m *maker) need(ctx context.Context, s Secret, to *url.URL) error {
	hosts, err := m.may(ctx, s, to)
	if err != nil {
		return err
	}
	s.Hosts = hosts
	if !slices.Contains(m.plan.Secrets, s) {
		m.plan.Secrets = append(m.plan.Secrets, s)
	}
	return nil
}

// may returns where the value of a Secret may be sent, or why it cannot be used.
func (m *maker) may(ctx context.Context, s Secret, to *url.URL) (egress.Hosts, error) {
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Ref.Name}
	there, hosts, err := m.reader.HasSecret(ctx, s)
	if err := lookedFor(err, "Secret", key); err != nil {
		return hosts, err
	}
	if !there {
		return hosts, refusal.Missing(v1alpha1.ReasonSecretKeyNotFound, "Secret %q of namespace %q has no key %q, or nothing under it", s.Ref.Name, s.Namespace, s.Ref.Key)
	}
	if m.place.Pods && s.Namespace != m.namespace {
		return hosts, refusal.New(v1alpha1.ReasonRefused, "Secret %q of namespace %q cannot be given to a pod of namespace %q", s.Ref.Name, s.Namespace, m.namespace)
	}
	if s.Use == ForRuntimeKey {
		return hosts, nil
	}
	if err := MaySend(key, hosts, m.place.RequireHosts, to); err != nil {
		return hosts, refusal.New(v1alpha1.ReasonSecretHostNotAllowed, "%s%v", s.user(), err)
	}
	return hosts, nil
}

// user says what uses the Secret, as the beginning of a message.
func (s *Secret) user() string {
	switch s.Use {
	case ForProvider, ForTool:
		return fmt.Sprintf("%s %s: ", s.Use, s.For)
	case ForRuntimeToken:
		return fmt.Sprintf("AgentRuntime %s: spec.clientAuth.controllerBearerTokenSecretRef: ", s.For)
	case ForRuntimeKey:
		return fmt.Sprintf("AgentRuntime %s: spec.clientAuth.operationCapabilitySecretRef: ", s.For)
	case ForVariable:
		return fmt.Sprintf("spec.env: the value of %s: ", s.For.Name)
	case ForRepository:
		return "spec.workspace.readCredentialRef: "
	case ForPublicationRead:
		return "spec.workspace.publicationReadCredentialRef: "
	case ForPublication:
		return "spec.workspace.publicationCredentialRef: "
	case ForForge:
		return "spec.workspace.forgeCredentialRef: "
	default:
		return ""
	}
}

// MaySend returns an error if the values of a Secret, which has the given rule, may not be sent to an address. A nil
// address stands for programs, which could send a value anywhere. With require, a Secret without a rule is refused.
func MaySend(secret types.NamespacedName, hosts egress.Hosts, require bool, to *url.URL) error {
	var err error
	switch {
	case !hosts.Set && require:
		err = errors.New("must list the hosts to which the values may be sent, because the operator requires that of each Secret that is used")
	case to == nil:
		err = hosts.CheckProgram()
	default:
		err = hosts.Check(to)
	}
	if refused, ok := errors.AsType[*egress.HostError](err); ok {
		return fmt.Errorf("the value of Secret %q of namespace %q %w (annotation %s)", secret.Name, secret.Namespace, refused, v1alpha1.AnnotationAllowedHosts)
	}
	if err != nil {
		return fmt.Errorf("Secret %q of namespace %q: annotation %s: %w", secret.Name, secret.Namespace, v1alpha1.AnnotationAllowedHosts, err)
	}
	return nil
}

// HostsOf returns the rule that annotations of a Secret contain.
func HostsOf(annotations map[string]string) egress.Hosts {
	rule, ok := annotations[v1alpha1.AnnotationAllowedHosts]
	return egress.Hosts{Rule: rule, Set: ok}
}
