// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolbox has the tools of the orchestrator: the model that answers chats, and requests to the vendors' APIs, has them.
//
//	toolbox.go    the tools that are offered, within their limits
//	caller.go     requests to this server as the caller
//	intent.go     which tools are offered for what the user says
//	load.go       tools that the model asks for, in the user's words
//	made.go       what the tools create: names, labels, marks
//	running.go    tasks that a conversation has not finished with
//	explain.go    errors of the API in words for the model
//
// The other files have a tool or a few each, by what they work on.
//
// Every operation of a tool is a request to this server's own API in the name of the caller, so authorization, admission
// and audit treat it as the caller's own. A refusal is data for the model. The server acts for itself only to be woken when a task
// that the caller may read has changed.
package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/server/prmonitor"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// Options configure a Maker. All fields but Uncovered are required.
type Options struct {
	// Loopback is the configuration of the server's client of itself.
	Loopback *rest.Config
	// MaxTasks is how many tasks the tools of one turn may create.
	MaxTasks int
	// CallTimeout bounds one call of a tool.
	CallTimeout time.Duration
	// Uncovered, if set, returns the tools that are not offered, because the caller's transaction does not cover them: own
	// are those of the catalogue, and served those of Scope.More.
	Uncovered func(ctx context.Context, caller user.Info, own, served []string) []string
	// FindSecret finds the Secret of a monitor of pull requests. The server reads Secrets for this; the caller need not be able to.
	FindSecret prmonitor.Find
	Clock      clock.WithDelayedExecution
}

// Maker makes the tools for one turn after the other.
type Maker struct {
	o       Options
	callers *callers
	own     versioned.Interface
}

// New makes a Maker. It makes no request.
func New(o Options) (*Maker, error) {
	c, err := newCallers(o.Loopback)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	own, err := c.client(nil)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	return &Maker{o, c, own}, nil
}

// Server returns the client that acts as the server itself.
func (m *Maker) Server() versioned.Interface { return m.own }

// Scope says for whom the tools work, and where. ForSession begins the scope of a chat.
type Scope struct {
	// Caller is the user in whose name the tools act.
	Caller    user.Info
	Namespace string
	// Provider and Model answer the conversation; tasks without an agent use them, too.
	Provider, Model string
	// Session is the name of the session that the tools must not delete; empty for none.
	Session string
	// Prefix begins the names of tasks, so that conversations do not take each other's names. Labels are on everything
	// that the tools create.
	Prefix string
	Labels map[string]string
	// Words are what the user says. They decide which of the tools that manage objects are offered. Said is what the user has said in the
	// conversation, for load_tools.
	Words string
	Said  []string
	// In is where the tools are offered: Chats or APIs.
	In builtin.Place
	// More are offered besides, within the limit of time for one call.
	More []tool.Tool
	// Wrap, if set, returns what is offered in place of a tool.
	Wrap func(tool.Tool) tool.Tool
	// Created is how many tasks the turn has created before, if it is continued.
	Created int32
}

// Make returns the tools, within the limits of tasks for one turn and of time for one call. Each operation is authorized as the
// caller's own, and a refusal is a result for the model.
func (m *Maker) Make(ctx context.Context, s Scope) (*Box, error) {
	caller, err := m.callers.client(s.Caller)
	if err != nil {
		return nil, fmt.Errorf("client of the caller: %w", err)
	}
	b := &Box{Scope: s, o: &m.o, caller: caller, own: m.own, created: s.Created}
	b.catalogue, err = b.offered(ctx)
	return b, err
}

// Box holds the tools of one turn, and what they work with. It is for one goroutine.
//
//large:lines each tool of the orchestrator is a method of it
type Box struct {
	Scope
	o      *Options
	caller versioned.Interface // acts as the caller; every operation of a tool goes through it
	own    versioned.Interface // acts as the server; only wakes tools that wait

	catalogue *tool.Catalogue
	// created counts the tasks of this turn.
	created int32
	// call identifies the call that is made now; empty if it is not made again after a crash.
	call string
}

// Catalogue returns the tools that are offered for what the user says.
func (b *Box) Catalogue() *tool.Catalogue { return b.catalogue }

// Created returns how many tasks the turn has created.
func (b *Box) Created() int32 { return b.created }

// Calling gives the call that is made next an id. Objects that the call creates are marked with it, so that a call which is repeated
// after a crash finds what it has created.
func (b *Box) Calling(id string) { b.call = id }

// binding is a tool of the catalogue with the code that carries it out.
type binding struct {
	of   *builtin.Tool
	make func(*Box) tool.Tool
}

// operation binds a tool to a method of the Box.
func operation[A any](of *builtin.Tool, call func(*Box, context.Context, A) (any, error)) binding {
	return binding{of, func(b *Box) tool.Tool {
		return tool.New(of.Definition(), func(ctx context.Context, arguments A) (any, error) { return call(b, ctx, arguments) })
	}}
}

// bindings binds the tools of chats and of the vendors' APIs. Tools that runs have as well are the code of workers, and Scope.More
// has them.
func bindings() []binding {
	return []binding{
		operation(builtin.ChatCreateAITask, (*Box).createAITask),
		operation(builtin.ChatCreateContainerTask, (*Box).createContainerTask),
		operation(builtin.ChatCreateAgentTask, (*Box).createAgentTask),
		operation(builtin.ChatCheckTaskProgress, (*Box).checkTask),
		operation(builtin.ChatFetchTaskOutput, (*Box).fetchOutput),
		operation(builtin.ChatWaitForTask, (*Box).waitForTask),
		operation(builtin.ChatCancelTask, (*Box).cancelTask),
		operation(builtin.ChatListAgents, (*Box).listAgents),
		operation(builtin.ChatListTools, (*Box).listTools),
		operation(builtin.ChatListTasks, (*Box).listTasks),
		operation(builtin.ChatLoadTools, (*Box).loadTools),
		operation(builtin.ChatCreateAgent, (*Box).createAgent),
		operation(builtin.ChatUpdateAgent, (*Box).updateAgent),
		operation(builtin.ChatDeleteAgent, (*Box).deleteAgent),
		operation(builtin.ChatCreateTool, (*Box).createTool),
		operation(builtin.ChatDeleteTool, (*Box).deleteTool),
		operation(builtin.ChatDeleteSession, (*Box).deleteSession),
		operation(builtin.ChatCreatePRMonitor, (*Box).createPRMonitor),
		operation(builtin.ChatCreatePullRequest, (*Box).createPullRequest),
		operation(builtin.ChatCheckPullRequestCI, (*Box).checkPullRequestCI),
		{builtin.ChatCodeExec, func(b *Box) tool.Tool { return codeTool{b} }},
	}
}

// carriedOut returns the code of a tool.
func carriedOut(b *Box, t *builtin.Tool, all []binding) (tool.Tool, error) {
	if t.Absent != nil {
		return refuser{t}, nil //nolint:nilerr // the refusal is what a call is answered
	}
	i := slices.IndexFunc(all, func(one binding) bool { return one.of == t })
	if i < 0 {
		return nil, fmt.Errorf("the tool %s has no code", t.Name)
	}
	return all[i].make(b), nil
}

// refuser is a tool that refuses every call.
type refuser struct{ of *builtin.Tool }

// Definition is that of the catalogue.
func (r refuser) Definition() tool.Definition { return r.of.Definition() }

// Call returns the reason.
func (r refuser) Call(context.Context, json.RawMessage) (any, error) { return nil, r.of.Absent }

// Repeats reports whether a call of a tool may be made again: it only reads, or what it creates is marked with the id of the call. A
// call of a tool that does not exist does nothing.
func Repeats(name string) bool {
	t, ok := builtin.FindIn(builtin.Chats, name)
	return !ok || t.Once || !t.Effects.Has(builtin.Writes)
}

// Names returns the names of all tools of chats.
func Names() []string {
	var names []string
	for _, t := range builtin.In(builtin.Chats) {
		names = append(names, t.Name)
	}
	return names
}

// offered returns the tools that are offered for what the user says.
func (b *Box) offered(ctx context.Context) (*tool.Catalogue, error) {
	tools, err := b.serve(ctx, func(of *builtin.Tool) bool {
		if of == builtin.ChatLoadTools {
			return slices.ContainsFunc(loadable, func(of builtin.Intent) bool { return !wanted(of, b.Words) })
		}
		return wanted(of.Asked, b.Words)
	}, b.More)
	if err != nil {
		return nil, err
	}
	return tool.NewCatalogue(tools...)
}

// serve makes tools of the catalogue, and more beside them, as they are offered to the caller.
func (b *Box) serve(ctx context.Context, which func(*builtin.Tool) bool, more []tool.Tool) ([]tool.Tool, error) {
	var tools []tool.Tool
	var own, served []string
	all := bindings()
	for _, of := range builtin.In(b.In) {
		if of.In&builtin.Runs != 0 || !which(of) {
			continue
		}
		t, err := carriedOut(b, of, all)
		if err != nil {
			return nil, err
		}
		tools, own = append(tools, t), append(own, of.Name)
	}
	for _, t := range more {
		tools, served = append(tools, t), append(served, t.Definition().Name)
	}
	if b.o.Uncovered != nil {
		without := b.o.Uncovered(ctx, b.Caller, own, served)
		tools = slices.DeleteFunc(tools, func(t tool.Tool) bool { return slices.Contains(without, t.Definition().Name) })
	}
	for i, t := range tools {
		tools[i] = bounded{t, b.o.CallTimeout, b.o.Clock}
		if b.Wrap != nil {
			tools[i] = b.Wrap(tools[i])
		}
	}
	return tools, nil
}

// bounded limits how long a call may take.
type bounded struct {
	tool.Tool
	limit time.Duration
	clock clock.WithDelayedExecution
}

var errToolTimeout = errors.New("the call of the tool took too long")

// Call calls the tool and ends it in time.
func (t bounded) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := t.clock.AfterFunc(t.limit, func() { cancel(errToolTimeout) })
	defer timer.Stop()
	out, err := t.Tool.Call(ctx, raw)
	if typed, ok := errors.AsType[*tool.Error](err); ok && typed.Type == tool.TypeOutcomeUnknown {
		return nil, err
	}
	if err != nil && errors.Is(context.Cause(ctx), errToolTimeout) {
		return nil, tool.Errorf(tool.TypeTimeout, "the call took longer than the %s that the server allows (--chat-tool-timeout)", t.limit).Suggest("ask for less at a time, or look again later")
	}
	return out, err
}

// in returns an error if a namespace is given that is not that of the chat.
func (b *Box) in(namespace string) error {
	if namespace == "" || namespace == b.Namespace {
		return nil
	}
	return tool.Errorf(tool.TypePermissionDenied, "namespace: this chat works in namespace %s only", b.Namespace).
		Suggest("leave namespace out; the user can begin a chat in another namespace")
}
