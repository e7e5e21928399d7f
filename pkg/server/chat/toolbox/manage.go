// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

func (b *Box) deleteAgent(ctx context.Context, a builtin.NameArguments) (any, error) {
	return b.deleted(a, "the agent was deleted", func() error {
		return b.caller.CoreV1alpha1().Agents(b.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
}

func (b *Box) deleteTool(ctx context.Context, a builtin.NameArguments) (any, error) {
	return b.deleted(a, "the tool was deleted", func() error {
		return b.caller.CoreV1alpha1().Tools(b.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
}

type changed struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Message   string `json:"message"`
}

// deleted deletes an object of the namespace.
func (b *Box) deleted(a builtin.NameArguments, message string, remove func() error) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	if err := remove(); err != nil {
		return nil, Explain(err)
	}
	return changed{Name: a.Name, Message: message}, nil
}

func (b *Box) createTool(ctx context.Context, a builtin.CreateToolArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	t := &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Labels: maps.Clone(b.Labels)}, Spec: v1alpha1.ToolSpec{
		Description: a.Description, HTTP: &v1alpha1.ToolHTTP{URL: a.URL, Method: v1alpha1.ToolMethod(a.Method)},
	}}
	b.mark(t)
	tools := b.caller.CoreV1alpha1().Tools(b.Namespace)
	made, err := tools.Create(ctx, t, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = own(b, err, func() (*v1alpha1.Tool, error) { return tools.Get(ctx, a.Name, metav1.GetOptions{}) })
	}
	if err != nil {
		return nil, Explain(err)
	}
	return changed{made.Name, made.Namespace, "the tool was created; agents that name it can use it"}, nil
}

type deletedSession struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message"`
}

func (b *Box) deleteSession(ctx context.Context, a builtin.DeleteSessionArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	if a.SessionID == b.Session {
		return nil, tool.InvalidArguments("sessionId: %s is the session of this chat", a.SessionID).
			Suggest("the user can delete it when this turn is over")
	}
	if err := b.caller.CoreV1alpha1().Sessions(b.Namespace).Delete(ctx, a.SessionID, metav1.DeleteOptions{}); err != nil {
		return nil, Explain(err)
	}
	return deletedSession{a.SessionID, "the session was deleted"}, nil
}
