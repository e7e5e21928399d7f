// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorcall

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/tool"
)

// find finds the tool, as it was when the run was started.
func (s *Calls) find(ctx context.Context, c *call, b *v1alpha1.TaskConnectionBinding) error {
	p, err := s.o.Providers.Get(resource.AsServer(ctx, c.task.Namespace), b.ConnectorProvider)
	if apierrors.IsNotFound(err) {
		return fails(v1alpha1.ConnectorDenied, "the ConnectorProvider %s does not exist any longer", b.ConnectorProvider)
	}
	if err != nil {
		return err
	}
	if err := connector.Available(p); err != nil {
		return fails(v1alpha1.ConnectorUnavailable, "%v", err)
	}
	t := connector.HTTPTool(p, b.Tool)
	if t == nil || connector.ToolDigest(t) != b.ToolDigest {
		return fails(v1alpha1.ConnectorDenied, "%s has changed since the run was started; run the task again", b.Tool)
	}
	c.provider, c.tool = p, t
	return nil
}

// arguments returns the arguments of a call, which satisfy the schema of the tool.
func arguments(t *v1alpha1.ConnectorTool, posted *v1alpha1.TaskConnectorCall) (json.RawMessage, error) {
	one, err := tool.NewCatalogue(tool.New[struct{}](connector.Definition(t), nil)) // of which only the description is used
	if err != nil {
		return nil, fails(v1alpha1.ConnectorDenied, "the definition of %s cannot be used: %v", t.Name, err)
	}
	text := "{}"
	if posted.Arguments != nil {
		text = string(posted.Arguments.Raw)
	}
	raw, err := one.Check(t.Name, text)
	if err != nil {
		return nil, fails(v1alpha1.ConnectorInvalidArguments, "arguments: %v", err)
	}
	return raw, nil
}

// own finds the connection of the person who asked for the task, which must be the one that the run was bound to.
func (s *Calls) own(ctx context.Context, c *call, b *v1alpha1.TaskConnectionBinding) error {
	who := c.task.Spec.RequestedBy
	name := connector.Name(c.provider.Name, who.Issuer, who.Subject)
	live, err := s.o.Connections.Get(resource.AsServer(ctx, c.task.Namespace), name)
	switch {
	case apierrors.IsNotFound(err):
		return consent(c, "the person who asked for the task has not connected an account of %s", display(c.provider))
	case err != nil:
		return err
	case live.Spec.Subject != v1alpha1.ConnectionSubject{Issuer: who.Issuer, Subject: who.Subject} || live.Spec.ProviderRef.Name != c.provider.Name:
		return fails(v1alpha1.ConnectorDenied, "the connection %s is another person's", name)
	case b.Connection == "":
		return consent(c, "the account of %s was connected after the run was started; run the task again", display(c.provider))
	case b.Connection != live.Name || b.ConnectionUID != live.UID || b.GrantSequence != live.Status.GrantSequence:
		return consent(c, "the account of %s was connected anew since the run was started; run the task again", display(c.provider))
	case live.Status.Consent == nil || b.AuthorityDigest != live.Status.Consent.AuthorityDigest:
		return consent(c, "what the account of %s may be used for has changed since the run was started; run the task again", display(c.provider))
	case c.writes() && live.Spec.Mode != v1alpha1.ConnectionReadWrite:
		return fails(v1alpha1.ConnectorDenied, "the account of %s is connected for reading only", display(c.provider))
	}
	if err := connector.UsableOnceRefreshed(live); err != nil {
		return unusable(c, err)
	}
	c.connection = live
	return nil
}
