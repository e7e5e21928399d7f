// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// Tools that only look at a task.
var toolCheck, toolWait = builtin.ChatCheckTaskProgress.Name, builtin.ChatWaitForTask.Name

// pollEvery is how long one look at tasks that run takes.
const pollEvery = 2 * time.Second

// tools reports whether a request gets the server's tools. A client that brings tools of its own, or the messages of such tools,
// wants those, and many cannot set a header: its request is passed on, unless it asks for the server's tools. So are responses,
// whose clients bring tools of their own. Counts of tokens are passed on in any case. A request that gets the server's tools although
// it brings its own loses those, with their calls and results in the conversation (strip.go).
func (x *exchange) tools(in *incoming) (bool, error) {
	asked := ""
	for _, name := range []string{headerTools, headerToolsAlias} {
		if v := x.call.header.Get(name); strings.EqualFold(v, toolsDisabled) {
			return false, nil
		} else if v != "" {
			asked = name
		}
	}
	o := &x.h.o
	can := o.Tools != nil && o.Limits.Enabled
	switch op := x.call.route.op; {
	case asked != "" && !can:
		return false, problem{code: http.StatusForbidden, message: fmt.Sprintf("header %s: the tools of this server are switched off; set it to %q, or leave it out", asked, toolsDisabled)}
	case asked != "" && op == opCount:
		return false, problem{code: http.StatusBadRequest, message: fmt.Sprintf("header %s: the server has no tools for %s; set it to %q, or leave it out", asked, op, toolsDisabled)}
	case !can || op == opCount:
		return false, nil
	case asked == "" && (op == opResponses || !o.DropClientTools && in.bringsTools()):
		return false, nil
	}
	return true, o.Limits.CheckNamespace(x.call.namespace)
}

// toolset returns the tools for the caller, and what the model is told about them. What they create has names and labels of
// this request. asked is what the user says.
func (x *exchange) toolset(c llm.Candidate, asked string, wrap func(tool.Tool) tool.Tool) (*tool.Catalogue, []string, error) {
	more, notes, err := x.reaching()
	if err != nil {
		return nil, nil, err
	}
	asRuns := []string{builtin.ChatCodeExec.Name}
	for _, t := range more {
		asRuns = append(asRuns, t.Definition().Name)
	}
	id, made := "proxy-"+strings.ToLower(rand.Text()[:8]), 0
	box, err := x.h.o.Tools.Make(x.r.Context(), toolbox.Scope{
		Caller: x.caller, Namespace: x.call.namespace, Provider: c.Provider, Model: c.Name,
		Prefix: id + "-", Words: "create " + asked, In: builtin.APIs, More: more,
		Wrap: func(t tool.Tool) tool.Tool {
			if slices.Contains(asRuns, t.Definition().Name) {
				return judged{t, x, &made}
			}
			return wrap(t)
		},
		Labels: map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByOrchestrator, v1alpha1.LabelChatSession: id},
	})
	if err != nil {
		return nil, nil, err
	}
	return box.Catalogue(), notes, nil
}

// watchful makes models wait for tasks without being asked again and again: if an answer calls nothing but tools that look at
// tasks, they return when one of these tasks has changed.
type watchful struct {
	// beat is called about every 2 s of the time that is waited.
	beat func()
	// inner are the tools that look at tasks.
	inner map[string]tool.Tool
	// polled are the tasks that the last answer looks at; nil if it does something else, too.
	polled []string
}

// wrap notes the tools that look at tasks, and returns what is offered in place of them.
func (w *watchful) wrap(t tool.Tool) tool.Tool {
	name := t.Definition().Name
	if name != toolCheck && name != toolWait {
		return t
	}
	w.inner[name] = t
	return &looking{Tool: t, watchful: w}
}

// answered notes the calls of an answer.
func (w *watchful) answered(calls []llm.ToolCall) {
	w.polled = nil
	var names []string
	for _, c := range calls {
		var a struct {
			Name string `json:"name"`
		}
		if c.Name != toolCheck && c.Name != toolWait || json.Unmarshal([]byte(c.Arguments), &a) != nil || a.Name == "" {
			return
		}
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	w.polled = names
}

// states returns what is known of the tasks, without the time that has passed. It reports false if one has ended or cannot be
// read.
func (w *watchful) states(ctx context.Context) (states []string, run bool) {
	run = true
	for _, name := range w.polled {
		var s struct {
			Phase      v1alpha1.TaskPhase `json:"phase"`
			Message    string             `json:"message"`
			Conditions json.RawMessage    `json:"conditions"`
		}
		data, err := invoke(ctx, w.inner[toolCheck], map[string]any{"name": name})
		if err != nil || json.Unmarshal(data, &s) != nil || s.Phase.Terminal() {
			run = false
		}
		states = append(states, fmt.Sprint(s.Phase, s.Message, string(s.Conditions)))
	}
	return states, run
}

// invoke calls a tool and returns its result as JSON.
func invoke(ctx context.Context, t tool.Tool, arguments map[string]any) ([]byte, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	out, err := t.Call(ctx, raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// await returns when a task that the answer looks at has changed.
func (w *watchful) await(ctx context.Context) {
	if w.polled == nil || w.inner[toolWait] == nil || w.inner[toolCheck] == nil {
		return
	}
	first, run := w.states(ctx)
	for run && ctx.Err() == nil {
		w.beat()
		// It ends early if the first task does.
		_, _ = invoke(ctx, w.inner[toolWait], map[string]any{"name": w.polled[0], "timeout": int(pollEvery / time.Second)})
		var now []string
		if now, run = w.states(ctx); !slices.Equal(first, now) {
			break
		}
	}
	w.polled = nil // the other calls of the answer report what is there
}

// looking is a tool that looks at a task.
type looking struct {
	tool.Tool
	*watchful
}

// Call waits for a change if the model does nothing but wait, and then looks.
func (l *looking) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	l.await(ctx)
	return l.Tool.Call(ctx, raw)
}
