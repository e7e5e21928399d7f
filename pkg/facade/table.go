// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import "net/http"

// table lists every row. Tests compare it with the endpoint lists of the contract, and its native targets with what a
// server offers.
func table() []row {
	const (
		get, post, remove = http.MethodGet, http.MethodPost, http.MethodDelete
		tasks             = "/api/v1/tasks"
		task              = tasks + "/:id"
		sessions          = "/api/v1/sessions"
		session           = sessions + "/:id"
		worker            = "/internal/v1"
	)
	return []row{
		{post, tasks, []string{"create tasks"}, createTask},
		{get, tasks, []string{"list tasks"}, listTasks},
		{get, task, []string{"get tasks"}, getTask},
		{remove, task, []string{"delete tasks"}, deleteTask},
		{get, task + "/logs", []string{"get tasks/log", "get tasks/result"}, logs},
		{get, task + "/result", []string{"get tasks/result"}, result},
		{get, task + "/artifacts", []string{"get tasks/artifacts"}, artifacts},
		{get, task + "/artifacts/:filename", []string{"get tasks/artifacts"}, artifact},
		{get, task + "/plan", []string{"get tasks"}, plan},
		{get, task + "/children", []string{"get tasks", "list tasks"}, children},

		{get, task + "/events", []string{"get tasks/events"}, events("tasks")},
		{get, task + "/stream", []string{"get tasks/stream"}, stream("tasks")},
		{get, task + "/trace", []string{"get tasks/trace"}, trace()},
		{post, task + "/fork", []string{"create tasks/fork"}, fork},
		{get, task + "/approvals", []string{"get tasks", "list approvals"}, listApprovals},
		{post, task + "/approvals/:approvalID/decision", []string{"create approvals/decision"}, decide},

		{get, sessions, []string{"list sessions"}, listSessions},
		{get, session, []string{"get sessions", "get sessions/transcript"}, getSession},
		{remove, session, []string{"get sessions", "delete sessions"}, deleteSession},
		{get, session + "/events", []string{"get sessions/events"}, events("sessions")},
		{get, session + "/stream", []string{"get sessions/stream"}, stream("sessions")},

		{get, "/api/v1/auth/validate", []string{"create selfsubjectreviews"}, validate},
		{get, "/api/v1/auth/whoami", []string{"create selfsubjectreviews"}, whoAmI},

		{post, worker + "/events/:namespace/:streamType/:streamID", []string{"create tasks/events"}, submit},
		{post, worker + "/results/:namespace/:task", []string{"create tasks/result"}, upload("result")},
		{post, worker + "/artifacts/:namespace/:task/:filename", []string{"create tasks/artifacts"}, upload("artifacts", "filename")},
	}
}
