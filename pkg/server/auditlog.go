// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"slices"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// audit sets up the audit log. Its file is appended to and stays open until the process ends.
func (o *Options) audit(g *genericapiserver.Config) error {
	if o.AuditLog == "" {
		return nil
	}
	rules, err := policy.LoadPolicyFromFile(o.AuditPolicy)
	if err != nil {
		return fmt.Errorf("--audit-policy: %w", err)
	}
	out := o.Out
	if o.AuditLog != "-" {
		if out, err = os.OpenFile(o.AuditLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return fmt.Errorf("--audit-log: %w", err)
		}
	}
	g.AuditBackend = auditlog.NewBackend(out, auditlog.FormatJson, auditv1.SchemeGroupVersion)
	g.AuditPolicyRuleEvaluator = withoutTokens{policy.NewPolicyRuleEvaluator(rules)}
	return nil
}

// withoutTokens keeps bodies out of the audit log that have a token which counts once, whatever the policy says.
type withoutTokens struct{ audit.PolicyRuleEvaluator }

// EvaluatePolicyRule returns what is logged of a request.
func (p withoutTokens) EvaluatePolicyRule(a authorizer.Attributes) audit.RequestAuditConfig {
	c := p.PolicyRuleEvaluator.EvaluatePolicyRule(a)
	begins := a.GetResource() == "connectionauthorizations" || a.GetResource() == "connections" && slices.Contains([]string{"authorize", "complete"}, a.GetSubresource())
	if a.GetAPIGroup() == v1alpha1.GroupName && begins && c.Level.GreaterOrEqual(auditinternal.LevelRequest) {
		c.Level = auditinternal.LevelMetadata
	}
	return c
}
