// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// CheckTask refuses a task that the transaction of its creator does not allow. A delegated task, whose parent is given,
// is in the transaction of its parent. tools returns all tools that the task would have, or why they are not known.
func (s *Service) CheckTask(ctx context.Context, t, parent *v1alpha1.Task, tools func() ([]string, error)) error {
	if !s.limits() {
		return nil
	}
	var transaction *v1alpha1.TaskTransaction
	if parent != nil {
		transaction = parent.Spec.Transaction
	} else if u, ok := request.UserFrom(ctx); ok {
		if i := From(u); i != nil {
			transaction = i.Transaction
		}
	}
	c, err := constraintsOf(transaction)
	if err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, err)
	}
	if parent != nil {
		c.Task = nil // names those that a caller may address
	}
	reason := c.task(t)
	if reason == "" && c.AllowedTools != nil {
		names, err := tools()
		if err != nil {
			reason = err.Error()
		} else if without := c.withoutTool(names...); without != "" {
			reason = c.refuses(without)
		}
	}
	if reason := s.decide(ctx, actionTask, lack{lacksConstraint, reason}); reason != "" {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New(reason))
	}
	return nil
}

// limits reports whether the constraints of transactions are checked.
func (s *Service) limits() bool { return s != nil && s.mode != ModeOff && s.mode != "" }

// CheckTool returns why a task may not call a tool in its transaction; empty if it may. The task's Agent may have got the
// tool since the task was created.
func (s *Service) CheckTool(ctx context.Context, t *v1alpha1.Task, tool string) string {
	if !s.limits() {
		return ""
	}
	c, err := constraintsOf(t.Spec.Transaction)
	switch {
	case err != nil:
		return s.decide(ctx, actionTool, lack{lacksConstraint, err.Error()})
	case c.withoutTool(tool) != "":
		return s.decide(ctx, actionTool, lack{lacksConstraint, c.refuses(tool)})
	}
	return s.decide(ctx, actionTool, lack{})
}

// UncoveredTools returns the tools that a server does not offer in the name of a caller, because the caller's transaction does
// not cover them. Of two kinds of tools, own consist of requests to this API, which are authorized one by one. The server
// itself runs those that are served, for which the token needs a scope.
func (s *Service) UncoveredTools(ctx context.Context, u user.Info, own, served []string) []string {
	i := From(u)
	if !s.limits() || i == nil || i.Transaction == nil {
		return nil
	}
	c, err := constraintsOf(i.Transaction)
	uses := slices.ContainsFunc(i.Transaction.Scopes, func(has string) bool { return slices.Contains(s.scopes["tools:use"], has) })
	var without []string
	for n, name := range slices.Concat(own, served) {
		if err != nil || c.withoutTool(name) != "" || n >= len(own) && !uses {
			without = append(without, name)
		}
	}
	if len(without) > 0 && s.mode == ModeAudit {
		s.decide(ctx, actionTool, lack{lacksConstraint, "the transaction does not cover the tools " + strings.Join(without, ", ")})
		return nil
	}
	return without
}
