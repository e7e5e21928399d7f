// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// usageRows returns the rows of usage reports.
func usageRows() []rest.Row {
	row := func(path, mode string, ask func(*rest.Query), fields ...string) rest.Row {
		return rest.Row{
			Method: http.MethodGet, Path: "/api/v1/usage" + path, Namespace: firstTeam,
			Native: asked("usagereports", "UsageReport", func(q *rest.Query) {
				ask(q.Set("mode", mode).List("teams").Texts("repository", "kind", "model", "from", "until", "asOf").Number("limit", 1).Number("offset", 0))
			}),
			Answer: rest.Answer{
				Errors: []int{http.StatusUnprocessableEntity, http.StatusNotImplemented},
				Fields: rest.Fields(append([]string{"selection: status.selection = {}"}, fields...)...),
			},
		}
	}
	const requests = "/api/v1/usage/requests"
	return []rest.Row{
		{Method: http.MethodGet, Path: requests, Native: []rest.Native{{Verb: "list", Path: "usagemeasurements", Page: true}}, Answer: rest.Answer{Drop: unlisted()}},
		{Method: http.MethodGet, Path: requests + "/:id/recording", Native: one("get", "usagemeasurements/:id/recording"), Answer: rest.Answer{Drop: []string{"kind", "apiVersion", "metadata"}}},
		row("", "summary", func(*rest.Query) {}, "retainedSince: status.retainedSince", "summary: status.summary = {}", "teams: status.teams = []", "works: status.works = []",
			"otherWork: status.otherWork = []", "page: status.page = {}"),
		row("/work/:id", "work", func(q *rest.Query) { q.Path("workID", "id") }, "work: status.work = {}", "page: status.page"),
		row("/other/:category", "other", func(q *rest.Query) { q.Path("category", "category") }, "otherWork: status.other = {}"),
	}
}

// firstTeam returns the first team of a query. Teams are namespaces.
func firstTeam(q url.Values) string {
	team, _, _ := strings.Cut(q.Get("teams"), ",")
	namespace, _, _ := strings.Cut(q.Get("namespace"), ",")
	return cmp.Or(team, namespace)
}
