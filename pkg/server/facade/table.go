// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facade is the table of the documented REST paths (/api/v1, /internal/v1). A row is data: the path, the
// native requests that it maps to, and how queries and bodies are converted. Behaviour belongs to the native resource
// or subresource, which is built first. The code that serves rows is in facade/rest.
//
// The language of rows is complete: a new row gets no new field of rest.Row and no new notation. What it does beside a path, targets
// and a mapping is plain Go in handler.go: a function for the one thing that is special (When, Names, Spec, With, Hide, Edit), or
// a Handler for all of its requests. These stay listed in the row: the permissions of callers and the row's description follow from them.
//
// What only kubectl may set is said by a row, too (rest.Fixed, Names): the address of a Provider, the credentials of a
// Tool, and the names of built-in tools. Documented paths that this version does not serve answer 501 (absent.go).
//
// A test limits how many lines of Go this package has per row, and how many it has together with facade/rest, which serves
// rows, and facade/openapi, which describes them.
package facade

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/sse"
)

// Limits of request bodies, in bytes: for an object, for one event, and for a result or an artifact.
const (
	maxObject = intake.MaxJSON
	maxEvent  = 256 << 10
	maxUpload = 10 << 20
)

// Options configure a Facade.
type Options = rest.Options

// Facade serves the table.
type Facade = rest.Facade

// New puts the table in front of the handler chain of an API server. It fails if its metrics are already registered.
func New(chain http.Handler, o Options) (*Facade, error) { return rest.New(chain, Rows(), o) }

// Rows returns the endpoints. Tests compare them with the documented endpoint lists, and their native targets with
// the resources of a server.
func Rows() []rest.Row {
	const (
		get, post, remove = http.MethodGet, http.MethodPost, http.MethodDelete
		tasks             = "/api/v1/tasks"
		task              = tasks + "/:id"
		sessions          = "/api/v1/sessions"
		session           = sessions + "/:id"
		worker            = "/internal/v1"
		visible           = "spec.sessionType!=" + string(v1alpha1.SessionTypeGateway) // sessions of gateways are not visible here
	)
	door := func(s rest.Parts) bool { return s.Text("spec.sessionType") == string(v1alpha1.SessionTypeGateway) }
	summaries := []string{"orderBy", "descending", "phases", "agent", "model", "q", "startedAfter", "startedBefore", "minDuration", "minTokens"}
	frame := []string{"kind", "apiVersion", "metadata"} // of an object
	return slices.Concat(memoryRows(), chatRows(), objectRows(), toolRows(), monitorRows(), gatewayRows(), connectorRows(), absentRows(), usageRows(), []rest.Row{
		documentRow(),
		{
			Method: post, Path: tasks, Native: one("create", "tasks"), Answer: rest.Answer{Code: http.StatusCreated},
			Body: &rest.Body{Max: maxObject, Kind: "Task", Flat: true, Required: []string{"type"}, Keys: rest.NotGiven("requestedby", "transaction")},
		},
		{ // Summaries in an order that a list does not have.
			Method: get, Path: tasks, When: rest.Given(summaries...), Answer: rest.Answer{Fields: foundTasks(), Errors: []int{http.StatusGone}},
			Native: asked("taskqueries", "TaskQuery", func(q *rest.Query) {
				q.Texts("orderBy", "labelSelector", "agent", "model", "startedAfter", "startedBefore", "minDuration", "continue").Text("text", "q").List("phases").Flag("descending").Number("minTokens", 0).Number("limit", 1)
			}),
		},
		{
			Method: get, Path: tasks, Ignored: summaries, // they are empty
			Native: []rest.Native{{Verb: "list", Path: "tasks", Page: true, Unlimited: true, Pass: []string{"labelSelector"}}}, Answer: rest.Answer{Drop: unlisted()},
		},
		{
			Method: get, Path: task, Answer: rest.Answer{Of: "task", Fields: planOfTask()},
			Native: []rest.Native{{Name: "task", Verb: "get", Path: "tasks/:id"}, {Name: "plan", Verb: "get", Path: "tasks/:id/plan", Optional: true}},
		},
		{Method: remove, Path: task, Native: one("delete", "tasks/:id"), Answer: rest.Answer{Code: http.StatusNoContent}},
		{
			Method: get, Path: task + "/logs", When: rest.On("follow"), Ignored: []string{"tailLines"},
			Native: []rest.Native{{Verb: "get", Path: "tasks/:id/log", Pass: []string{"follow"}, Set: map[string]string{"format": "events"}}},
			Answer: rest.Answer{Media: sse.ContentType, Over: true},
		},
		{ // Whoever names a number of lines wants lines of the log.
			Method: get, Path: task + "/logs", When: rest.Given("tailLines"), Ignored: []string{"follow"}, // it is false
			Handler: lines,
			Native: []rest.Native{
				{Name: "log", Verb: "get", Path: "tasks/:id/log", Text: true, Pass: []string{"tailLines"}},
				{Name: "result", Verb: "get", Path: "tasks/:id/result", Unless: "log"},
			},
			Answer: rest.Answer{Fields: rest.Fields(`logs: log | result.result = ""`)},
		},
		{
			Method: get, Path: task + "/logs", Ignored: []string{"follow", "tailLines"}, // they are false and empty
			Handler: outcome,
			Native: []rest.Native{
				{Name: "result", Verb: "get", Path: "tasks/:id/result", Optional: true},
				{Name: "log", Verb: "get", Path: "tasks/:id/log", Text: true, Unless: "result", Set: map[string]string{"tailLines": "100"}},
			},
			Answer: rest.Answer{Fields: rest.Fields(`logs: result.result | log = ""`)},
		},
		{Method: get, Path: task + "/result", Native: one("get", "tasks/:id/result", "structured"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: task + "/artifacts", Native: one("get", "tasks/:id/artifacts"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: task + "/artifacts/:filename", Native: one("get", "tasks/:id/artifacts/:filename"), Answer: rest.Answer{Media: "*/*"}},
		{Method: get, Path: task + "/plan", Native: one("get", "tasks/:id/plan"), Answer: rest.Answer{Fields: plan()}},
		{
			Method: get, Path: task + "/children", Answer: rest.Answer{Drop: unlisted()},
			Native: []rest.Native{{Name: "task", Verb: "get", Path: "tasks/:id"}, {Name: "list", Verb: "list", Path: "tasks", Page: true, Unlimited: true, With: childrenOf}},
		},
		{ // Of any task of the tree: the whole tree, with what waits for a decision anywhere in it.
			Method: get, Path: task + "/tree", Answer: rest.Answer{Fields: treeOfTask()},
			Native: []rest.Native{
				{Name: "task", Verb: "get", Path: "tasks/:id"},
				{Name: "tree", Verb: "list", Path: "tasks", All: true, Set: map[string]string{"limit": "500"}, With: inTree("rootTaskUID=%s")},
				{Name: "approvals", Verb: "list", Path: "approvals", With: inTree("spec.rootTaskUID=%s,status.state=pending")},
			},
		},

		{Method: get, Path: task + "/events", Native: one("get", "tasks/:id/events", "after", "before", "around", "order", "limit", "type", "q"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: task + "/events/counts", Native: one("get", "tasks/:id/events/counts", "buckets", "type"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: task + "/stream", Native: one("get", "tasks/:id/stream", "after", "type", "tasks", "sessions", "tree"), Answer: rest.Answer{Media: sse.ContentType, Over: true}},
		// The metadata of a trace is kept, because it exists only if there are more pages.
		{Method: get, Path: task + "/recording", Native: one("get", "tasks/:id/recording", "after", "before", "limit", "q", "type"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: task + "/recording/:seq", Native: one("get", "tasks/:id/recording/:seq"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: task + "/trace", Native: one("get", "tasks/:id/trace", "timeline", "limit", "continue", "spans", "after"), Answer: rest.Answer{Drop: frame[:2]}},
		{
			Method: post, Path: task + "/fork", Native: one("create", "tasks/:id/fork"), Handler: rest.StatusIf("status.replayed", "true", http.StatusOK),
			Body:   &rest.Body{Max: maxObject, Kind: "TaskFork", Under: "spec", Optional: true, Headers: map[string]string{"Idempotency-Key": "idempotencyKey"}},
			Answer: rest.Answer{Code: http.StatusCreated, Also: map[int]string{http.StatusOK: "Created"}, Fields: forked()},
		},
		{
			Method: get, Path: task + "/approvals", Answer: rest.Answer{Fields: approvals()},
			Native: []rest.Native{{Name: "task", Verb: "get", Path: "tasks/:id"}, {Name: "approvals", Verb: "list", Path: "approvals", With: func(c *rest.Call, q url.Values) {
				q.Set("fieldSelector", "spec.taskUID="+c.Text("task.metadata.uid"))
			}}},
		},
		{
			Method: post, Path: task + "/approvals/:approvalID/decision", Native: one("create", "approvals/:approvalID/decision"),
			Body: &rest.Body{
				Max: maxObject, Kind: "ApprovalDecision", Under: "spec", Required: []string{"decision"}, Edit: decidedTask,
				Members: struct {
					Decision string `json:"decision"`
					Reason   string `json:"reason"`
				}{},
			},
			Answer: rest.Answer{Fields: approval()},
		},

		{
			Method: get, Path: sessions, When: rest.Given("limit", "continue"), Answer: rest.Answer{Fields: paged(sessionRow())},
			Native: []rest.Native{{Verb: "list", Path: "sessions", Page: true, Set: map[string]string{"fieldSelector": visible}}},
		},
		{ // All of them, for clients that ask for no page.
			Method: get, Path: sessions, Ignored: []string{"limit", "continue"},
			Native: []rest.Native{{Verb: "list", Path: "sessions", All: true, Set: map[string]string{"limit": "500", "fieldSelector": visible}}}, Answer: rest.Answer{Fields: append(list("items", sessionRow()), rest.Fields("metadata: = {}")...)},
		},
		{
			Method: get, Path: session, Answer: rest.Answer{Fields: conversation()},
			Native: []rest.Native{
				{Name: "session", Verb: "get", Path: "sessions/:id", Hide: door},
				{Name: "transcript", Verb: "get", Path: "sessions/:id/transcript", Text: true, Set: map[string]string{"format": "lines"}},
			},
		},
		{
			Method: remove, Path: session, Handler: rest.DeleteSame, Answer: rest.Answer{Code: http.StatusNoContent},
			Native: []rest.Native{{Name: "session", Verb: "get", Path: "sessions/:id", Hide: door, Optional: true}, {Verb: "delete", Path: "sessions/:id"}},
		},
		{Method: get, Path: session + "/events", Native: one("get", "sessions/:id/events", "after", "before", "around", "order", "limit", "type", "q"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: session + "/events/counts", Native: one("get", "sessions/:id/events/counts", "buckets", "type"), Answer: rest.Answer{Drop: frame}},
		{Method: get, Path: session + "/stream", Native: one("get", "sessions/:id/stream", "after", "type", "tasks", "sessions"), Answer: rest.Answer{Media: sse.ContentType}},

		{Method: get, Path: "/api/v1/auth/validate", Native: whoAmI(), Answer: rest.Answer{Fields: rest.Fields("authenticated: = true")}},
		{Method: get, Path: "/api/v1/auth/whoami", Native: whoAmI(), Answer: rest.Answer{Fields: identity()}},

		{
			Method: post, Path: worker + "/events/:namespace/:streamType/:streamID", Native: one("create", "tasks/:streamID/events"),
			Names:  streamOfTask,
			Body:   &rest.Body{Max: maxEvent, AnyValues: true, Kind: "ExecutionEvent"},
			Answer: rest.Answer{Code: http.StatusCreated, Fields: stored()},
		},
		{
			Method: post, Path: worker + "/plans/:namespace/:task", Native: one("create", "tasks/:task/plan"), Answer: rest.Answer{Code: http.StatusNoContent},
			Body: &rest.Body{
				Max: maxEvent, Kind: "TaskPlan", Rename: map[string]string{"plan_document": "planDocument", "progress_pct": "progressPct", "goal_complete": "goalComplete"},
				Members: struct {
					Summary      string `json:"summary"`
					PlanDocument string `json:"plan_document"`
					ProgressPct  int32  `json:"progress_pct"`
					GoalComplete bool   `json:"goal_complete"`
				}{},
			},
		},
		{
			Method: post, Path: worker + "/messages/:namespace", Native: one("create", "tasks/:fromTask/messages"), Answer: rest.Answer{Code: http.StatusNoContent},
			Body: &rest.Body{Max: maxEvent, Kind: "TaskMessage", Under: "spec", Edit: rest.AsParam("fromTask"), Also: []string{"fromTask"}, Required: []string{"toTask", "parentTask", "content"}},
		},
		{
			Method: get, Path: worker + "/messages/:namespace/:task",
			Native: asked("tasks/:task/inbox", "TaskInbox", func(q *rest.Query) { q.Required("parentTask", "parentTask").Flag("markRead") }),
			Answer: rest.Answer{Bare: true, Fields: list("status.messages", messages())},
		},
		{
			Method: get, Path: worker + "/sessions/:namespace/:name/transcript", Ignored: []string{"taskName"}, // the credential says which task asks
			Native: []rest.Native{{Verb: "get", Path: "sessions/:name/transcript", Set: map[string]string{"format": "lines"}}},
			Answer: rest.Answer{Media: "application/jsonl"},
		},
		{Method: get, Path: worker + "/plans/:namespace/:task", Native: one("get", "tasks/:task/plan"), Answer: rest.Answer{Fields: plan()}},
		{Method: post, Path: worker + "/results/:namespace/:task", Native: one("create", "tasks/:task/result"), Body: &rest.Body{Max: maxUpload, Raw: true}, Answer: rest.Answer{Passes: http.StatusNoContent}},
		{Method: post, Path: worker + "/artifacts/:namespace/:task/:filename", Native: one("create", "tasks/:task/artifacts/:filename"), Body: &rest.Body{Max: maxUpload, Raw: true}, Answer: rest.Answer{Passes: http.StatusCreated}},
	})
}

// one returns a single request with the query parameters that have the same meaning natively.
func one(verb, path string, pass ...string) []rest.Native {
	return []rest.Native{{Verb: verb, Path: path, Pass: pass}}
}

// asked returns a single request that creates a query of a kind.
func asked(path, kind string, spec func(*rest.Query)) []rest.Native {
	return []rest.Native{{Verb: "create", Path: path, Ask: kind, Spec: spec}}
}

// whoAmI returns the request for the caller's identity.
func whoAmI() []rest.Native {
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	return []rest.Native{{Verb: "create", Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", Send: review}}
}
