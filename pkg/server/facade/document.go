// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/openapi"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/version"
)

// DocumentPath is the path of the document that describes all rows.
const DocumentPath = "/api/v1/openapi.json"

// Document describes all rows as an OpenAPI document.
func Document(definitions common.GetOpenAPIDefinitions) ([]byte, error) {
	return openapi.Document(openapi.Source{ //nolint:wrapcheck // the package belongs to this one
		Rows: Rows(), Kinds: kinds(), Parameters: parameters(), Definitions: definitions, Version: version.Version(),
	})
}

// documentRow serves the document to every authenticated caller.
func documentRow() rest.Row {
	return rest.Row{Method: http.MethodGet, Path: DocumentPath, Native: whoAmI(), Answer: rest.Answer{Document: true}}
}

// kinds returns the kinds of native answers: of each resource the kind whose plural it is, and those of subresources.
func kinds() map[string]string {
	all := map[string]string{
		"secrets": "Secret", "selfsubjectreviews": "SelfSubjectReview",
		"approvals/decision": "Approval", "memoryproposals/apply": "Memory", "chats/config": "ChatConfig", "sessions/events": "ExecutionEventPage", "get sessions/events/counts": "ExecutionEventCounts",
		"tasks/result": "TaskResult", "tasks/artifacts": "TaskArtifactList", "tasks/plan": "TaskPlan", "tasks/trace": "TaskTrace", "tasks/recording": "TaskRecording", "usagemeasurements/recording": "RequestRecording", "tasks/fork": "TaskFork", "repositorymonitors/runs": "MonitorRun", "repositorymonitors/commands": "MonitorCommand", "gatewaydeliveries/retry": "GatewayDelivery", "connections/authorize": "ConnectionAuthorization", "connections/complete": "ConnectionCompletion", "tasks/connectortool": "TaskConnectorCall",
		"get tasks/events": "ExecutionEventPage", "get tasks/events/counts": "ExecutionEventCounts", "create tasks/events": "ExecutionEvent", "tasks/inbox": "TaskInbox",
	}
	for _, o := range v1alpha1.KnownTypes() {
		kind, resource := names(o)
		all[resource] = kind
	}
	return all
}

// names returns the kind of an object and the resource whose singular the kind is.
func names(o runtime.Object) (kind, resource string) {
	kind = reflect.TypeOf(o).Elem().Name()
	return kind, v1alpha1.Plural(kind)
}

// parameters describes the query parameters that have the same meaning natively.
func parameters() map[string]rest.Parameter {
	return map[string]rest.Parameter{
		"labelSelector": {Type: "string", Text: "A label selector, as kubectl has it."},
		"after":         {Type: "integer", Text: "Events with a greater sequence number are returned."},
		"tasks":         {Type: "string", Text: "Other tasks whose events are in the same stream, separated by commas, each as NAME or NAME:SEQ to begin after a sequence number. The id of each frame has the positions in the stream of the path, in tasks and in sessions, in this order, with dots between them. At most 64 in all."},
		"sessions":      {Type: "string", Text: "Sessions whose events are in the same stream, as with tasks."},
		"tree":          {Type: "boolean", Text: "Whether the stream has the events of the task and of everything that it delegated, directly or not, in the order in which they were stored. The ids of its frames, and the parameter after, are resource versions. The task must not be a delegated one. It needs the right to watch the events of the namespace."},
		"before":        {Type: "integer", Least: 1, Text: "Events with a smaller sequence number are returned, the newest first. prevSeq of the answer is before of the next older page."},
		"around":        {Type: "integer", Least: 1, Text: "The event with this sequence number and those on both sides of it are returned, in order."},
		"order":         {Type: "string", Text: "asc, which is the default, or desc: the newest events of the stream come first. Pages before a sequence number always do."},
		"q":             {Type: "string", Text: "Only events that have this text, in any letter case, in their summary, text, content, tool, call, agent, model or provider; of a recording, in what was new with the event. A request looks at 20,000 events or 8 MiB of them at most; go on from nextSeq or prevSeq even if the page has no events."},
		"buckets":       {Type: "integer", Least: 1, Text: "How many periods of equal length the events are counted in, 500 at most. Default: none."},
		"limit":         {Type: "integer", Least: 1, Text: "How many events a page has at most."},
		"type":          {Type: "string", Repeated: true, Text: "Only events of these types."},
		"timeline":      {Type: "boolean", Text: "Whether the trace has a timeline of all events."},
		"spans":         {Type: "integer", Least: 1, Text: "With timeline=false: the groups cover a part of the stream, which begins with the event after the parameter after and ends with so many model requests and tool calls, 10,000 at most, or with eight times as many events. part of the answer says where it ends."},
		"continue":      {Type: "string", Text: "metadata.continue of the page before."},
		"taskName":      {Type: "string", Text: "Is ignored: the credential says which task asks."},
		"structured":    {Type: "boolean", Text: "Whether the answer has the result in parts, too, as the member structured: if the task has a repository, or its result is a JSON object whose version is 1."},
		"tailLines":     {Type: "integer", Least: 1, Text: "How many lines of the end of the log are returned."},
		"streamType":    {Only: "task"},
		"follow":        {Type: "boolean", Text: "Whether the log is streamed as it is written, as server-sent events."},
	}
}
