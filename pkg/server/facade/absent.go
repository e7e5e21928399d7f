// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"strings"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// absentRows returns the rows of documented paths that this version does not serve. Callers that are authenticated get
// 501, so that a client can distinguish a missing feature from a missing object. A row moves to the file of its feature
// when that is built.
func absentRows() []rest.Row {
	const finding, scan = "/api/v1/security/findings/:id", "/api/v1/security/repositories/:name"
	const runtime = "/internal/v2/acp/:operation"
	var rows []rest.Row
	for _, a := range []struct{ of, rows string }{
		{"security scans", `
			GET /api/v1/security/repositories, POST /api/v1/security/repositories, GET ` + scan + `, PUT ` + scan + `, DELETE ` + scan + `,
			GET ` + scan + `/threat-model, PUT ` + scan + `/threat-model, GET ` + scan + `/scans, POST ` + scan + `/scans,
			GET ` + scan + `/scans/:scanID/progress, GET ` + scan + `/slices, GET ` + scan + `/slices/:sliceID, GET ` + scan + `/dropped-findings,
			GET ` + scan + `/findings, GET ` + finding + `, POST ` + finding + `/dismiss, POST ` + finding + `/reopen, POST ` + finding + `/validate,
			POST ` + finding + `/patch, GET ` + finding + `/patches, POST ` + finding + `/pull-request`},
		{"events of monitors (see their runs, commands, work-actions and mutations)", `GET /api/v1/monitors/events`},
		// What an implementation changes is pushed to the code host, and the diff is an artifact of its task.
		{"previews of patches (see the artifacts of the task that implements)", `GET /api/v1/monitors/implementation-jobs/:id/patch-preview`},
		{"execution workspaces", `POST /internal/v1/tasks/:namespace/:task/execution-workspace/status`},
		// The server seals the requester of a child when it creates the child.
		{"seals that workers ask for", `POST /internal/v1/tasks/:namespace/:taskName/children/:child/requester-stamp`},
		// Programs of runtime pools ask these, with credentials that only a pool has. There are none yet, so such a program gets 401.
		{"runtimes of coding agents", `GET ` + runtime + `, POST ` + runtime + `, PUT ` + runtime + `, PATCH ` + runtime + `, DELETE ` + runtime},
	} {
		for row := range strings.SplitSeq(a.rows, ",") {
			method, path, _ := strings.Cut(strings.TrimSpace(row), " ")
			rows = append(rows, rest.Row{
				Method: method, Path: path, Below: path == runtime, Native: whoAmI(), Answer: rest.Answer{Unsupported: a.of + ": not supported by this version"},
			})
		}
	}
	return rows
}
