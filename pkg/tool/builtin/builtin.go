// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin is the catalogue of the platform's own tools: what is known of each tool without the code that carries it out.
// Whoever needs a fact about a tool reads it here: what a run gets without naming it (pkg/plan), what users choose from
// (catalogtools), what policies see of a call (toolcalls), whether a run has read untrusted text (memoryproposals), which names are
// taken, and what a chat and the vendors' APIs offer. All of these are the same list, so a new tool is in none of them by accident.
//
// The code is bound to this list in one place on each side: pkg/worker/tools for runs, pkg/server/chat/toolbox for the server, which
// makes the tools that reach the web from the code of workers (pkg/server/compat). A test on each side compares the two.
//
// Runs and the server have tools of the same name with different arguments (cancel_task), so a name is known in a Place.
package builtin

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// Tool is what is known of one tool. It does not change.
type Tool struct {
	// Name is what models call the tool by; Description is what they read about it.
	Name, Description string
	// Schema returns the JSON Schema of the arguments, which the caller may change.
	Schema func() json.RawMessage
	// In is where models are offered the tool.
	In Place
	// Effects is what a call may do.
	Effects Effects
	// Automatic says which runs get the tool although neither their task nor its agent names it.
	Automatic Automatic
	// Asked is what a user has to speak of before a conversation offers the tool.
	Asked Intent
	// Unlisted is set for tools of runs that are not in the list of tools that users choose from.
	Unlisted bool
	// Dispensable is set if a run goes on without the tool where it cannot work. Otherwise the task is refused.
	Dispensable bool
	// Trusted is set if results hold nothing but text that a person has reviewed, or none. The results of all other tools count as
	// untrusted text.
	Trusted bool
	// Proposes is set if a call proposes a memory. The start of such a call is stored before the call is made.
	Proposes bool
	// Once is set if what a call writes is there once, however often the same call is made. Whoever does not know whether a call was
	// carried out may then repeat it.
	Once bool
	// Typed sets the member of a ToolCall that has the arguments for policies, from spec.arguments. It is nil for tools of
	// which policies see the arguments by their paths alone. The error says which argument has another type.
	Typed func(*v1alpha1.ToolCallSpec) error
	// Absent, if not nil, is the answer to every call, because this version lacks what the tool is for. Nothing carries the tool out.
	Absent *tool.Error
}

// Place is where models are offered tools; a set of bits.
type Place uint8

// Places.
const (
	// Runs are tasks of type ai. A worker carries out their calls.
	Runs Place = 1 << iota
	// Chats are conversations with the server. The server carries out their calls.
	Chats
	// APIs are requests to the vendors' APIs. The server carries out their calls.
	APIs
	// Agents are tasks of type agent. A coding agent has files, programs and a plan of its own, and gets the rest from its worker.
	Agents
)

// Effects is what a call of a tool may do; a set of bits.
type Effects uint8

// Effects.
const (
	// Reads returns what the caller may see: objects, files or pages.
	Reads Effects = 1 << iota
	// Writes changes something that is there after the call.
	Writes
	// Sends passes arguments to a service outside of the platform.
	Sends
	// Executes runs a program that the model wrote.
	Executes
)

// Has reports whether all of the effects are among e.
func (e Effects) Has(all Effects) bool { return e&all == all }

// Automatic says which runs get a tool without naming it. Package plan decides for a task.
type Automatic string

// Automatic values.
const (
	// Named is for runs that name the tool.
	Named Automatic = ""
	// Every is for all runs. Nothing removes such a tool.
	Every Automatic = "Every"
	// Coordinators is for runs whose agent may delegate (spec.coordination.enabled).
	Coordinators Automatic = "Coordinators"
	// Families is for runs of coordinators and of the tasks that were delegated.
	Families Automatic = "Families"
	// Autonomous is for runs that work in iterations (spec.coordination.autonomous).
	Autonomous Automatic = "Autonomous"
	// Reviewers is for runs that review a pull request for a monitor with an image (spec.validation.image).
	Reviewers Automatic = "Reviewers"
	// Conversations is for runs that answer an event of a gateway whose adapter posts texts while a task runs.
	Conversations Automatic = "Conversations"
)

// Intent is what a user speaks of. Package chat recognises it by their words.
type Intent string

// Intents.
const (
	// Anything needs no words.
	Anything Intent = ""
	// Create, Change and Delete are what is done to objects.
	Create Intent = "Create"
	Change Intent = "Change"
	Delete Intent = "Delete"
	// PullRequests are those of a code host.
	PullRequests Intent = "PullRequests"
	// Files are the tools for files, by their names.
	Files Intent = "Files"
)

// all lists the tools in the order in which models see them. Runs get their automatic tools in this order.
var all = []*Tool{
	RecallMemory, Remember, ProposeMemory, SearchTranscript,
	DelegateTask, WaitForTasks, CreateContainerTask, CancelTask, SendMessage, CheckMessages, ReplyInConversation,
	CreatePullRequest, ListPullRequests, CheckPRReviewMarker, CheckPullRequestCI, MergePullRequest, AutoMergePullRequest, ReviewPullRequest, PostReviewComment, CreatePRMonitor,
	CreateAgent, DeleteAgent, UpdatePlan,
	RequestApproval, RunValidation,
	DetachTask, CodeExec, FileRead, FileWrite,
	ListIssues, GetIssue, CommentOnIssue,

	ChatCreateAITask, ChatCreateContainerTask, ChatCreateAgentTask, ChatCheckTaskProgress, ChatFetchTaskOutput, ChatWaitForTask, ChatCancelTask,
	ChatListAgents, ChatListTools, ChatListTasks, ChatLoadTools,
	ChatCreateAgent, ChatUpdateAgent, ChatDeleteAgent, ChatCreateTool, ChatDeleteTool, ChatDeleteSession,
	ChatCreatePRMonitor, ChatCreatePullRequest, ChatCheckPullRequestCI, ChatCodeExec,
	ChatFileRead, ChatFileWrite,

	WebFetch, WebSearch,
}

// In returns the tools of a place, in the order in which models see them.
func In(p Place) []*Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t *Tool) bool { return t.In&p == 0 })
}

// Find returns the tool of runs with the given name, and false if there is none.
func Find(name string) (*Tool, bool) { return FindIn(Runs, name) }

// FindIn returns a tool of a place, or of any of several, and false if there is none.
func FindIn(p Place, name string) (*Tool, bool) {
	i := slices.IndexFunc(all, func(t *Tool) bool { return t.Name == name && t.In&p != 0 })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// Has reports whether runs have a tool with the given name. No Tool object is used under such a name.
func Has(name string) bool {
	_, ok := Find(name)
	return ok
}

// Definition is how the tool is described to a model.
func (t *Tool) Definition() tool.Definition {
	return tool.Definition{Name: t.Name, Description: t.Description, Parameters: t.Schema()}
}

// Definitions returns how the tools that users choose from are described to models, in the order of their names.
func Definitions() []tool.Definition { return slices.Clone(listed()) }

var listed = sync.OnceValue(func() []tool.Definition {
	var list []tool.Definition
	for _, t := range In(Runs) {
		if !t.Unlisted {
			list = append(list, t.Definition())
		}
	}
	slices.SortFunc(list, func(a, b tool.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return list
})

// schema returns the schema of an argument struct.
func schema[A any]() json.RawMessage { return tool.SchemaOf[A]() }

// text returns a schema that is written out, because its argument struct does not describe itself.
func text(s string) func() json.RawMessage {
	return func() json.RawMessage { return json.RawMessage(s) }
}

// typed reads the arguments of a call for policies. The fields of A are those of the schema.
func typed[A any](set func(s *v1alpha1.ToolCallSpec, arguments A)) func(*v1alpha1.ToolCallSpec) error {
	return func(s *v1alpha1.ToolCallSpec) error {
		var a A
		if err := json.Unmarshal(s.Arguments.Raw, &a); err != nil {
			return err
		}
		set(s, a)
		return nil
	}
}
