// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// approval returns the fields of an approval as REST clients see it.
func approval() []rest.Field {
	return rest.Fields(
		"id: metadata.name", `action: spec.action = ""`, "riskSummary: spec.riskSummary", "severity: spec.severity", "targetTool: spec.targetTool",
		"toolCallID: spec.toolCallID", "taskUID: spec.taskUID", "targetArgsDigest: spec.targetArgsDigest", "targetSpecDigest: spec.targetSpecDigest",
		"targetArgsPreview: spec.targetArgsPreview", `status: status.state = ""`, "createdAt: metadata.creationTimestamp = null",
		"expiresAt: spec.expiresAt", "timeout: spec.timeout", "decisionSeq: status.decisionSeq", "decisionTime: status.decisionTime",
		"decisionReason: status.decisionReason", "decisionActor: status.decisionActor", "binding: spec.binding",
		"executionOutcome: status.executionOutcome", "executionReason: status.executionReason",
	)
}

// approvals returns the fields of a task's approvals. Those of the task show whether a decision is still possible.
func approvals() []rest.Field {
	return append(
		rest.Fields("namespace: request.namespace", "taskName: task.metadata.name", "taskUID: task.metadata.uid", `taskPhase: task.status.phase = ""`),
		rest.Field{Name: "taskDeleting", From: []string{"task.metadata.deletionTimestamp"}, Default: "false", As: present, Type: "boolean"},
		rest.Field{Name: "approvals", From: []string{"approvals.items"}, Default: "[]", Each: approval()},
	)
}

func present(json.RawMessage) json.RawMessage { return json.RawMessage("true") }

// plan returns the fields of a task's plan, whose names are in capital case.
func plan() []rest.Field {
	return rest.Fields(
		"TaskName: metadata.name", "Namespace: metadata.namespace", "Iteration: iteration = 0", `Summary: summary = ""`, "ProgressPct: progressPct = 0",
		"GoalComplete: goalComplete = false", `PlanDocument: planDocument = ""`, "CreatedAt: createdAt = null", "UpdatedAt: updatedAt = null",
	)
}

// planOfTask returns the plan as a member of its task, if there is one.
func planOfTask() []rest.Field {
	return []rest.Field{{Name: "plan", From: []string{"plan"}, Only: rest.Fields(
		`summary: summary = ""`, "progressPct: progressPct = 0", "goalComplete: goalComplete = false", `planDocument: planDocument = ""`, "iteration: iteration = 0",
	)}}
}

// foundTasks returns a page of summaries of tasks.
func foundTasks() []rest.Field {
	return append(rest.Fields("items: status.items = []"),
		rest.Field{Name: "metadata", From: []string{"status"}, Default: "{}", Only: rest.Fields("continue: continue", "matched: matched = 0", "asOf: asOf")})
}

// treeOfTask returns the tasks of a tree, each as the native API returns it, and the approvals that are pending in it.
func treeOfTask() []rest.Field {
	return append(rest.Fields(`rootTask: task.status.delegation.root | task.metadata.name = ""`, "items: tree.items = []"),
		rest.Field{Name: "pendingApprovals", From: []string{"approvals.items"}, Default: "[]", Each: append(rest.Fields(`taskName: spec.taskName = ""`), approval()...)})
}

// figures returns the fields that the row of a session and its detail share. Token counts that nobody reported are
// left out, because they are not zero.
func figures(of string) []rest.Field {
	return rest.Fields(
		"name: "+of+"metadata.name", "namespace: "+of+"metadata.namespace", "messageCount: "+of+"status.messageCount = 0",
		"inputTokens: "+of+"status.inputTokens", "outputTokens: "+of+"status.outputTokens", "activeTask: "+of+`status.activeTask = ""`,
		"createdAt: "+of+"metadata.creationTimestamp = null", "updatedAt: "+of+"status.updatedAt | "+of+"metadata.creationTimestamp = null",
	)
}

// sessionRow returns what a list says of a session.
func sessionRow() []rest.Field {
	return append(rest.Fields("id: metadata.name", `sessionType: spec.sessionType = ""`), figures("")...)
}

// conversation returns the fields of a session with its whole transcript, one JSON object per line.
func conversation() []rest.Field {
	return slices.Concat(figures("session."), rest.Fields(`transcript: transcript = ""`, "executionControl: session.status.executionControl"))
}

// forked returns the fields of the result of a fork. A sequence of 0 is valid.
func forked() []rest.Field {
	return rest.Fields(
		`namespace: status.namespace = ""`, `sourceTaskName: status.sourceTaskName = ""`, `newTaskName: status.newTaskName = ""`,
		"afterSeq: status.afterSeq = 0", "forkContext: status.forkContext",
	)
}

// messages returns the fields of a message between tasks.
func messages() []rest.Field {
	return append(rest.Fields("id: id", "namespace: namespace", "fromTask: fromTask", "toTask: toTask", "parentTask: parentTask", `content: content = ""`, "read: read = false"),
		rest.Field{Name: "createdAt", From: []string{"createdAt"}, As: shortTime, Type: "date-time"})
}

// stored returns the fields that say where an event was stored. Its time has no trailing zeros.
func stored() []rest.Field {
	return append(rest.Fields(`id: id = ""`, "seq: seq = 0"), rest.Field{Name: "createdAt", From: []string{"createdAt"}, Default: `"0001-01-01T00:00:00Z"`, As: shortTime, Type: "date-time"})
}

func shortTime(raw json.RawMessage) json.RawMessage {
	var t time.Time
	if json.Unmarshal(raw, &t) != nil {
		return nil
	}
	short, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	return short
}

// list returns an array of items of an answer.
func list(from string, each []rest.Field) []rest.Field {
	return []rest.Field{{Name: "items", From: []string{from}, Default: "[]", Each: each}}
}
