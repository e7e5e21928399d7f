// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/tool/custom"
	"github.com/platform-ai/platform/pkg/worker/tool/mcp"
	"github.com/platform-ai/platform/pkg/worker/tool/web"
)

const (
	// maxObjects is how many Tool objects a model is offered. Vendors accept 128 tools.
	maxObjects = 96
	// maxReaching is how many calls of tools that reach the network this server makes at a time, because each may hold an
	// answer of 10 MiB.
	maxReaching = 32
)

// Reach is what tools that this server calls itself may reach. These tools are the code of workers, with the rules of addresses and
// of Secrets' hosts that hold in runs. The server runs no programs, so code_exec is none of them: it creates a task (chat/toolbox/code.go).
type Reach struct {
	// FetchAllow lists host:port that web_fetch and remote MCP tools may reach although they are not public.
	FetchAllow []string
	// SearchURL is the search service of web_search, and SearchKey its key; an empty URL means none.
	SearchURL, SearchKey string
	// NotSelf closes loopback addresses, where this server has listeners of its own. It is not set where runs are processes of
	// the same machine and reach these addresses anyway.
	NotSelf bool
}

// guard returns the guard of these tools.
func (r Reach) guard() egress.Guard { return egress.Guard{Allow: r.FetchAllow, NotSelf: r.NotSelf} }

// reaching returns the tools that this server calls itself: those of the web, and the Tool objects of the namespace that
// declare their parameters. Notes tell the model which of them it does not get, and why.
func (x *exchange) reaching() (tools []tool.Tool, notes []string, err error) {
	tools = append(tools, held{x.h.fetch, x.h}, held{x.h.search, x.h})
	err = x.h.o.Models.Authorize(x.r.Context(), x.caller, x.call.namespace, models.Access{Verb: "list", Resource: "tools"})
	if apierrors.IsForbidden(err) {
		return tools, append(notes, "The user may not list the Tools of the namespace, so you have none of them."), nil
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := x.h.o.Models.Tools(x.r.Context(), x.call.namespace)
	if err != nil {
		return nil, nil, err
	}
	offered, left := 0, 0
	for i := range all {
		o := &all[i]
		switch why := unusable(o); {
		case why != "":
			notes = append(notes, fmt.Sprintf("The Tool %s of the namespace is not offered to you: %s.", o.Name, why))
		case offered == maxObjects:
			left++
		default:
			offered++
			tools = append(tools, held{ownTool{x, o}, x.h})
		}
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("The namespace has %d more Tools, which only agents can use.", left))
	}
	return tools, notes, nil
}

// taken reports whether a tool of the platform has a name, wherever it is offered.
func taken(name string) bool {
	_, ok := builtin.FindIn(builtin.Runs|builtin.Chats|builtin.APIs, name)
	return ok
}

// unusable returns why a Tool object cannot be offered, or "".
func unusable(o *v1alpha1.Tool) string {
	switch {
	case o.Spec.Parameters == nil:
		return "it does not declare its parameters"
	case !tool.ValidName(o.Name):
		return "models know tools by names of 1 to 64 letters, digits, - and _"
	case taken(o.Name):
		return "it has the name of a tool of this server"
	}
	if err := tool.CheckSpec(&o.Spec); err != nil {
		return err.Error()
	}
	return ""
}

// ownTool is a Tool object of the namespace. Nothing is read or asked for it before it is called.
type ownTool struct {
	x *exchange
	o *v1alpha1.Tool
}

// Definition is what the Tool object says.
func (t ownTool) Definition() tool.Definition {
	return tool.Definition{Name: t.o.Name, Description: t.o.Spec.Description, Parameters: t.o.Spec.Parameters.Raw}
}

// Call makes the tool with its credential, and calls it.
func (t ownTool) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	h := t.x.h
	credential, hosts, err := h.o.Models.ToolKey(ctx, t.o)
	if err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "%v", err).Suggest("tell the user")
	}
	made, err := t.open(ctx, credential, hosts, h.o.Reach.guard())
	if refused, ok := errors.AsType[*tool.RefusedError](err); ok {
		return nil, tool.Errorf(tool.TypeUnavailable, "tool %s: %v", t.o.Name, refused.Err)
	}
	if err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "tool %s: %v", t.o.Name, err)
	}
	return made.Call(ctx, arguments)
}

func (t ownTool) open(ctx context.Context, credential string, hosts egress.Hosts, guard egress.Guard) (tool.Tool, error) {
	if t.o.Spec.MCP != nil {
		return mcp.Open(ctx, t.o.Name, &t.o.Spec, mcp.Options{Credential: credential, Hosts: hosts, Guard: guard})
	}
	return custom.New(t.o.Name, t.o.Spec, custom.Options{Credential: credential, Hosts: hosts, Guard: guard, Once: true})
}

// judged is a tool like those of runs. Whoever may not create tasks may not call it, because a task could call it as well, and
// policies on calls of tools judge each call as they judge those of runs. They see the caller as the user of the request, and no
// task. A call for which a policy wants an approval is refused, because only a task can wait. The audit event of the request has
// the verdicts.
type judged struct {
	tool.Tool
	x *exchange
	// made counts the calls of the request.
	made *int
}

// Call asks whether the call may be made, and makes it.
func (t judged) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	h, name := t.x.h, t.Definition().Name
	if err := h.o.Models.Authorize(ctx, t.x.caller, t.x.call.namespace, models.Access{Verb: "create", Resource: "tasks"}); err != nil {
		return nil, toolbox.Explain(err)
	}
	s, err := h.o.Judge(ctx, t.x.caller, t.x.call.namespace, name, arguments)
	if err != nil {
		return nil, toolbox.Explain(err)
	}
	*t.made++
	audit.AddAuditAnnotation(ctx, fmt.Sprintf("toolcalls.%s/%d", v1alpha1.GroupName, *t.made), recorded(name, &s))
	switch s.Verdict {
	case v1alpha1.ToolCallAllowed:
	case v1alpha1.ToolCallApprovalRequired:
		return nil, tool.Errorf(tool.TypePolicyDenied, "a policy wants a person to approve this call of %s, for which only a task can wait; it was not made", name).
			Suggest("create a task for an agent that has the tool")
	default:
		return nil, agentloop.Denied(name, s.Findings)
	}
	return t.Tool.Call(ctx, arguments)
}

// held is a tool that reaches the network. Its calls wait while too many are made.
type held struct {
	tool.Tool
	h *Handler
}

// Call waits for a place, and calls the tool.
func (t held) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	select {
	case t.h.reaching <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.h.reaching }()
	return t.Tool.Call(ctx, arguments)
}

// recorded is what the audit event of the request says about a call. It does not have the arguments.
func recorded(name string, s *v1alpha1.ToolCallStatus) string {
	out := name + ": " + string(s.Verdict)
	var by []string
	for _, f := range s.Findings {
		if f.Policy != "" {
			by = append(by, f.Policy)
		}
	}
	if len(by) > 0 {
		out += " (" + strings.Join(by, ", ") + ")"
	}
	return out
}

func newWeb(r Reach) (fetch, search tool.Tool) {
	return web.Fetch(r.guard()), web.Search(web.SearchConfig{URL: r.SearchURL, Key: r.SearchKey})
}
