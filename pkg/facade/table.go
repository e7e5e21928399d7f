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
	)
	return []row{
		{post, tasks, []string{"create tasks"}, createTask},
		{get, tasks, []string{"list tasks"}, listTasks},
		{get, task, []string{"get tasks"}, getTask},
		{remove, task, []string{"delete tasks"}, deleteTask},

		{get, "/api/v1/auth/validate", []string{"create selfsubjectreviews"}, validate},
		{get, "/api/v1/auth/whoami", []string{"create selfsubjectreviews"}, whoAmI},
	}
}
