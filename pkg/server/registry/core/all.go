// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core lists the resources of the group core.platform.ai.
//
//large:imports it lists every resource, and each is a package
package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	turns "github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/registry/core/agent"
	"github.com/platform-ai/platform/pkg/server/registry/core/agentruntime"
	"github.com/platform-ai/platform/pkg/server/registry/core/approval"
	"github.com/platform-ai/platform/pkg/server/registry/core/budget"
	"github.com/platform-ai/platform/pkg/server/registry/core/catalogtool"
	"github.com/platform-ai/platform/pkg/server/registry/core/chat"
	"github.com/platform-ai/platform/pkg/server/registry/core/codehostdelivery"
	"github.com/platform-ai/platform/pkg/server/registry/core/connection"
	"github.com/platform-ai/platform/pkg/server/registry/core/executionevent"
	"github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/core/memory"
	"github.com/platform-ai/platform/pkg/server/registry/core/memoryproposal"
	"github.com/platform-ai/platform/pkg/server/registry/core/provider"
	"github.com/platform-ai/platform/pkg/server/registry/core/repositorymonitor"
	"github.com/platform-ai/platform/pkg/server/registry/core/runtimepool"
	"github.com/platform-ai/platform/pkg/server/registry/core/session"
	"github.com/platform-ai/platform/pkg/server/registry/core/skill"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/core/taskquery"
	"github.com/platform-ai/platform/pkg/server/registry/core/tool"
	"github.com/platform-ai/platform/pkg/server/registry/core/toolcall"
	"github.com/platform-ai/platform/pkg/server/registry/core/tooleffect"
	"github.com/platform-ai/platform/pkg/server/registry/core/usagereport"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/transcript"
	"github.com/platform-ai/platform/pkg/usage"
)

// Options are what the resources need besides the object store. All fields are
// required unless task.Options says otherwise.
type Options struct {
	task.Options
	// Stored is what is stored of the resources, for those who need it before there are resources. Default: NewStored.
	Stored *Stored
	// Transcripts stores the messages of sessions.
	Transcripts *transcript.Store
	// Memories is the index of memories. The object store writes it; see memory.Indexed.
	Memories *fulltext.Index
	// Requests decides about model requests, also about those of chats and of the vendors' APIs. Default: one for tasks alone.
	Requests *modelrequest.Requests
	// Chat answers chats, and keeps them in the sessions of this server; nil for a server without.
	Chat *turns.Service
	// Turns are what is stored of turns of chats; nil for a server without chats.
	Turns resource.Content
	// ChatBytes bounds what is kept of a session of type chat. Default: session.DefaultChatBytes.
	ChatBytes int64
	// StreamTimeout is how long a client of a chat's stream may take to accept what was sent.
	StreamTimeout time.Duration
	// Usage has the records that reports are made of. Without it they are refused.
	Usage usage.Reader
	// ChangeLink stores links to pull requests beside them. Without it links are refused.
	ChangeLink usagereport.ChangeLink
	// Replayed is called when a person has had a delivery of a code host decided again. Default: nothing.
	Replayed func()
	// REST reports whether a request was made by REST. Default: none is.
	REST func(ctx context.Context) bool
	// Gateways are what gateways need of the server; All sets what they have in common with others.
	Gateways gateway.Options
	// Connectors are the same for connectors.
	Connectors connection.Options
}

// originMessages is how many messages of a session are read at a time to find out where a proposal comes from.
const originMessages = 500

// All returns every resource of the group, in the order of discovery. The
// result must be used for one server only.
func All(o Options) []resource.Resource {
	st := cmp.Or(o.Stored, NewStored())
	workers := &guard.Workers{Task: st.Tasks.Get, Agent: st.Agents.Get, Session: st.Sessions.Get}
	owners := &guard.Gateways{REST: o.REST, Authorizer: o.Authorizer, Task: st.Tasks.Get}
	if o.REST == nil {
		owners.REST = func(context.Context) bool { return false }
	}
	tools := tool.Definition(st.Tools, workers.Tools())
	agents := agent.New(agent.Options{
		Stored: st.Agents, LocalRuns: o.LocalRuns, Tool: st.Tools.Get, Providers: st.Connectors.Providers, Caller: workers.Caller,
	}, workers.Agents())
	requests := o.Requests
	if requests == nil {
		requests = modelrequest.New(modelrequest.Options{Readers: st.ModelRequests(), Clock: o.Clock})
	}
	reports := usagereport.New(usagereport.Options{
		Ledger: o.Usage, Authorizer: o.Authorizer, Clock: o.Clock, Providers: st.Providers.List, ChangeLink: o.ChangeLink, Recordings: o.Recordings,
	})
	tasks := task.New(o.Options, st.Tasks, task.Resources{
		Agent: st.Agents.Get, Tool: st.Tools.Get, ConnectorProviders: st.Connectors.Providers, Connections: st.Connectors.Connections, Requests: requests, Claim: reports.Claim, GatewayEvent: st.Gateways.Events.Get, Reply: st.Gateways.Reply, MaxReply: gateway.MaxReplyBytes,
	}, owners.Tasks(workers.Tasks()))
	st.tasks = tasks
	scope := func(ctx context.Context, t *v1alpha1.Task) (v1alpha1.MemoryScope, error) {
		return guard.RecallScope(ctx, workers, t)
	}
	memories := memory.New(memory.Options{
		Stored: st.Memories, Clock: o.Clock, Index: o.Memories, Caller: workers.Caller, Scope: scope, Guard: workers.Memories(),
		Session: st.Sessions.Get,
	})
	proposals := memoryproposal.New(memoryproposal.Options{
		Stored: st.Proposals, Clock: o.Clock, Log: o.Log, Caller: workers.Caller, Make: memories.Make, Unmake: memories.Unmake, Memory: st.Memories.Get,
		Guard: workers.MemoryProposals(), Task: tasks.Get,
		History: func(ctx context.Context, name string, after int64) (transcript.Page, error) {
			s, err := st.Sessions.Get(ctx, name)
			if err != nil {
				return transcript.Page{}, err
			}
			return o.Transcripts.Page(ctx, s.UID, after, originMessages, "")
		},
	})
	chats := chat.New(chat.Options{Service: o.Chat, Clock: o.Clock, WriteTimeout: o.StreamTimeout, Guard: guard.Closed[*v1alpha1.Chat](workers, "chats")})
	sessions := session.New(session.Options{
		Stored: st.Sessions, Timelines: o.Timelines, Transcripts: o.Transcripts, Task: tasks.Get, Clock: o.Clock, Caller: workers.Caller, Scope: scope, Guard: workers.Sessions(),
		Deleted: func(ctx context.Context, s *v1alpha1.Session) {
			memories.Bind(ctx, s)
			o.Chat.Forget(ctx, s)
		},
		MaxChatBytes: o.ChatBytes, EndTurn: o.Chat.Cancel, Turn: chats.Frames, Turns: o.Turns,
	})
	if o.Timelines != nil { // nil where only the definitions are wanted
		o.Timelines.Join(others(tasks, sessions, o.Authorizer))
		o.Timelines.JoinTrees(trees(tasks, o.Authorizer))
	}
	monitors := repositorymonitor.New(repositorymonitor.Options{Stored: st.Monitors, Access: o.CodeHosts, Clock: o.Clock, Links: reports.Unmerged})
	replayed := o.Replayed
	if replayed == nil {
		replayed = func() {}
	}
	connectors := o.Connectors
	connectors.Stored, connectors.Clock, connectors.REST, connectors.Workers = st.Connectors, o.Clock, owners.REST, workers
	gateways := o.Gateways
	gateways.Stored, gateways.Clock, gateways.Authorizer = st.Gateways, o.Clock, o.Authorizer
	return guard.Close(workers, slices.Concat([]resource.Resource{
		tasks,
		agents,
		provider.Definition(st.Providers, workers.Providers()),
		tools,
		catalogtool.Definition(st.Tools, workers.CatalogTools()),
		skill.Definition(workers.Skills()),
		budget.New(budget.Options{Stored: st.Budgets, Accounts: o.Accounts, Clock: o.Clock}),
		runtimepool.Definition(),
		agentruntime.Definition(),
		sessions,
		sessions.Searches(workers.TranscriptSearches()),
		chats,
		toolcall.Definition(toolcall.Options{Tasks: tasks, Judge: st.Judge()}, workers.ToolCalls()),
		executionevent.Definition(o.Log, tasks.Append, tasks.IsLeftover, workers.Events()),
		memories,
		memories.Searches(workers.MemorySearches()),
		proposals,
		proposals.Searches(workers.MemoryProposalSearches()),
		approval.Definition(approval.Options{Log: o.Log, Tasks: tasks, Tool: st.Tools.Get, Clock: o.Clock, Guard: owners.Approvals(workers.Approvals())}),
		tooleffect.Definition(tooleffect.Kind{Stored: st.Effects, Clock: o.Clock, Task: st.Tasks.Get}),
		taskquery.Definition(taskquery.Options{
			Tasks: tasks, Authorizer: o.Authorizer, Clock: o.Clock, Summary: task.Summary, Sees: owners.Sees,
		}),
		reports,
		reports.Measurements(),
		reports.Links(),
		codehostdelivery.Definition(codehostdelivery.Options{Stored: st.Deliveries, Clock: o.Clock, Wake: replayed}),
		monitors,
	}, repositorymonitor.Records(st.Monitors, o.Clock), gateway.Resources(gateways), connection.Resources(connectors)))
}
