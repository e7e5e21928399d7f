// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// usageRows returns the rows of usage reports.
func usageRows() []rest.Row {
	row := func(path, mode string, ask []string, fields ...string) rest.Row {
		return rest.Row{
			Method: http.MethodGet, Path: "/api/v1/usage" + path, Namespaces: []string{"teams", "namespace"},
			Native: []rest.Native{{Verb: "create", Path: "usagereports", Ask: "UsageReport", AskFor: slices.Concat(
				[]string{"mode = " + mode, "teams[]", "repository", "kind", "model", "from", "until", "asOf", "limit#", "offset#0"}, ask,
			)}},
			Answer: rest.Answer{
				Errors: []int{http.StatusUnprocessableEntity, http.StatusNotImplemented},
				Fields: rest.Fields(append([]string{"selection: status.selection = {}"}, fields...)...),
			},
		}
	}
	return []rest.Row{
		row("", "summary", nil, "retainedSince: status.retainedSince", "summary: status.summary = {}", "teams: status.teams = []", "works: status.works = []",
			"otherWork: status.otherWork = []", "page: status.page = {}"),
		row("/work/:id", "work", []string{"workID: :id"}, "work: status.work = {}", "page: status.page"),
		row("/other/:category", "other", []string{"category: :category"}, "otherWork: status.other = {}"),
	}
}
