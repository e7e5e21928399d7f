// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"maps"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// What the user says when they want something to be created, changed or deleted. A tool that manages objects is offered
// only then, so that text which the model reads elsewhere cannot lead it to such a call in passing.
var (
	wantsCreate = regexp.MustCompile(`(?i)\b(creat|add|mak(e|ing)\b|new\b|set\s?up|defin|build|regist|generat)`)
	wantsUpdate = regexp.MustCompile(`(?i)\b(updat|chang|edit|modif|adjust|alter|replac|renam|set\b|switch|improv|fix|rewrit|extend|give\b)`)
	wantsDelete = regexp.MustCompile(`(?i)\b(delet|remov|drop|destroy|eras|discard|clean|clear|forget|get rid|purg)`)
)

// agrees is a message with which a user only confirms what they asked for before.
var agrees = regexp.MustCompile(`(?i)^\W*(yes|yep|yeah|ok(ay)?|sure|please|do (it|so|that)|go (on|ahead)|confirm(ed)?|correct|right|continue|proceed)\b.{0,40}$`)

// maxIntent is how much of a message decides which tools are offered, in bytes. Messages may be as long as requests.
const maxIntent = 64 << 10

// intent returns the words that decide which tools are offered: the user's message, and the one before it if the message
// only confirms that.
func intent(message string, history []v1alpha1.SessionMessage) string {
	message = message[:min(len(message), maxIntent)]
	if !agrees.MatchString(message) {
		return message
	}
	for _, m := range slices.Backward(history) {
		if m.Role == v1alpha1.RoleUser {
			return message + "\n" + m.Content[:min(len(m.Content), maxIntent)]
		}
	}
	return message
}

func manageTools() []entry {
	return []entry{
		operation("create_agent", "Create an agent. With initialPrompt, also a first task of it.", (*toolbox).createAgent).when(wantsCreate.MatchString).again(),
		operation("update_agent", "Change an agent. What is not given stays as it is.", (*toolbox).updateAgent).when(wantsUpdate.MatchString),
		operation("delete_agent", "Delete an agent.", (*toolbox).deleteAgent).when(wantsDelete.MatchString),
		operation("create_tool", "Create a tool that calls an HTTP endpoint.", (*toolbox).createTool).when(wantsCreate.MatchString).again(),
		operation("delete_tool", "Delete a tool of the namespace.", (*toolbox).deleteTool).when(wantsDelete.MatchString),
		operation("delete_session", "Delete a session with everything that was said in it.", (*toolbox).deleteSession).when(wantsDelete.MatchString),
	}
}

func (b *toolbox) deleteAgent(ctx context.Context, a agentReference) (any, error) {
	return b.deleted(a, "the agent was deleted", func() error {
		return b.caller.CoreV1alpha1().Agents(b.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
}

func (b *toolbox) deleteTool(ctx context.Context, a agentReference) (any, error) {
	return b.deleted(a, "the tool was deleted", func() error {
		return b.caller.CoreV1alpha1().Tools(b.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	})
}

type agentReference struct {
	Name      string `json:"name" minLength:"1"`
	Namespace string `json:"namespace,omitempty"`
}

type changed struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Message   string `json:"message"`
}

// deleted deletes an object of the namespace.
func (b *toolbox) deleted(a agentReference, message string, remove func() error) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	if err := remove(); err != nil {
		return nil, Explain(err)
	}
	return changed{Name: a.Name, Message: message}, nil
}

type createToolArguments struct {
	Name        string `json:"name" desc:"Name of the tool: lower-case letters, digits and dashes" minLength:"1"`
	Namespace   string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Description string `json:"description" desc:"What the tool does; models read it" minLength:"1"`
	URL         string `json:"url" desc:"Address of the HTTP endpoint" minLength:"1"`
	Method      string `json:"method,omitempty" desc:"POST by default" enum:"GET,POST,PUT,PATCH,DELETE"`
}

func (b *toolbox) createTool(ctx context.Context, a createToolArguments) (any, error) {
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

type deleteSessionArguments struct {
	SessionID string `json:"sessionId" desc:"Name of the session" minLength:"1"`
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
}

type deletedSession struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message"`
}

func (b *toolbox) deleteSession(ctx context.Context, a deleteSessionArguments) (any, error) {
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
