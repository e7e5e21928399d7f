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
		{post, tasks, maxObject, []string{"create tasks"}, createTask},
		{get, tasks, 0, []string{"list tasks"}, listTasks},
		{get, task, 0, []string{"get tasks"}, getTask},
		{remove, task, 0, []string{"delete tasks"}, deleteTask},
		{get, task + "/logs", 0, []string{"get tasks/log", "get tasks/result"}, logs},
		{get, task + "/result", 0, []string{"get tasks/result"}, result},
		{get, task + "/artifacts", 0, []string{"get tasks/artifacts"}, artifacts},
		{get, task + "/artifacts/:filename", 0, []string{"get tasks/artifacts"}, artifact},
		{get, task + "/plan", 0, []string{"get tasks"}, plan},
		{get, task + "/children", 0, []string{"get tasks", "list tasks"}, children},

		{get, task + "/events", 0, []string{"get tasks/events"}, events("tasks")},
		{get, task + "/stream", 0, []string{"get tasks/stream"}, stream("tasks")},
		{get, task + "/trace", 0, []string{"get tasks/trace"}, trace()},
		{post, task + "/fork", maxObject, []string{"create tasks/fork"}, fork},
		{get, task + "/approvals", 0, []string{"get tasks", "list approvals"}, listApprovals},
		{post, task + "/approvals/:approvalID/decision", maxObject, []string{"create approvals/decision"}, decide},

		{get, sessions, 0, []string{"list sessions"}, listSessions},
		{get, session, 0, []string{"get sessions", "get sessions/transcript"}, getSession},
		{remove, session, 0, []string{"get sessions", "delete sessions"}, deleteSession},
		{get, session + "/events", 0, []string{"get sessions/events"}, events("sessions")},
		{get, session + "/stream", 0, []string{"get sessions/stream"}, stream("sessions")},

		{get, "/api/v1/auth/validate", 0, []string{"create selfsubjectreviews"}, validate},
		{get, "/api/v1/auth/whoami", 0, []string{"create selfsubjectreviews"}, whoAmI},

		{post, worker + "/events/:namespace/:streamType/:streamID", maxEvent, []string{"create tasks/events"}, submit},
		{post, worker + "/results/:namespace/:task", maxUpload, []string{"create tasks/result"}, upload("result")},
		{post, worker + "/artifacts/:namespace/:task/:filename", maxUpload, []string{"create tasks/artifacts"}, upload("artifacts", "filename")},
	}
}
