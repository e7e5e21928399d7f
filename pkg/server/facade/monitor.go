// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// Fields by which records of monitors are found.
const (
	ofMonitor, ofKind, ofNumber, ofState = "spec.monitorName", "spec.targetKind", "spec.number", "status.state"
	ofAction                             = "spec.desiredAction"
)

// monitorRows returns the rows of what monitors of repositories do. The monitors themselves are objects (typeRows).
func monitorRows() []rest.Row {
	const all, one = "/api/v1/monitors", "/api/v1/monitors/repositories/:name"
	// below lists records of the monitor in the path, which must exist.
	below := func(sub, resource string, narrow func(*rest.Query)) rest.Row {
		return rest.Row{Method: http.MethodGet, Path: one + sub, Answer: rest.Answer{Drop: unlisted()}, Native: []rest.Native{
			{Name: "monitor", Verb: "get", Path: "repositorymonitors/:name"},
			{Name: "list", Verb: "list", Path: resource, Page: true, Spec: func(q *rest.Query) { narrow(q.Path(ofMonitor, "name")) }},
		}}
	}
	post := func(sub string, body rest.Body) rest.Row {
		return rest.Row{Method: http.MethodPost, Path: one + sub, Native: []rest.Native{{Verb: "create", Path: "repositorymonitors/:name" + sub}}, Body: &body, Answer: rest.Answer{Code: http.StatusCreated}}
	}
	about := func(q *rest.Query) *rest.Query { return q.Number(ofNumber, 1, "number").Text(ofState, "state") }
	return slices.Concat(
		[]rest.Row{
			post("/runs", rest.Body{Max: maxObject, Kind: "MonitorRunRequest", Optional: true, Members: struct {
				TargetKind   string `json:"targetKind"`
				TargetNumber int64  `json:"targetNumber"`
				TargetSHA    string `json:"targetSHA"`
			}{}}),
			below("/runs", "monitorruns", func(q *rest.Query) { q.Text(ofState, "state") }),
			below("/items", "monitoritems", func(q *rest.Query) {
				about(q).Text(ofKind, "kind").Text("status.review.verdict", "reviewVerdict").Text("status.repair.phase", "repairState").Text("status.automerge.state", "automergeState")
			}),
			post("/commands", rest.Body{Max: maxObject, Kind: "MonitorCommandRequest", Rename: map[string]string{"kind": "targetKind"}, Required: []string{"kind", "number", "intent"}, Members: struct {
				Kind      string `json:"kind"`
				Number    int64  `json:"number"`
				Intent    string `json:"intent"`
				TargetSHA string `json:"targetSHA"`
			}{}}),
		},
		records(all+"/commands", "monitorcommands", func(q *rest.Query) { about(q).Text(ofKind, "kind").Text("spec.intent", "intent") }),
		records(all+"/work-actions", "monitorworkactions", func(q *rest.Query) { about(q).Text(ofKind, "kind").Text(ofAction, "intent") }),
		records(all+"/mutations", "monitormutations", func(q *rest.Query) { about(q).Text(ofKind, "kind").Text("spec.operation", "operation") }),
		only(ofKind, string(v1alpha1.MonitorIssue), records(all+"/actions", "monitorworkactions", func(q *rest.Query) { about(q).Text(ofAction, "intent") })),
		only(ofAction, string(v1alpha1.MonitorImplement), records(all+"/implementation-jobs", "monitorworkactions", func(q *rest.Query) { about(q) })),
	)
}

// records returns the rows of the records of a monitor, which the query names, and of one record.
func records(path, resource string, narrow func(*rest.Query)) []rest.Row {
	return []rest.Row{
		{Method: http.MethodGet, Path: path, Answer: rest.Answer{Drop: unlisted()}, Native: []rest.Native{{
			Verb: "list", Path: resource, Page: true, Spec: func(q *rest.Query) { narrow(q.Required(ofMonitor, "name")) },
		}}},
		{Method: http.MethodGet, Path: path + "/:id", Native: one("get", resource+"/:id")},
	}
}

// only limits the rows of records to those whose field has the value. Others are not found.
func only(field, value string, rows []rest.Row) []rest.Row {
	list, single := &rows[0].Native[0], &rows[1].Native[0]
	narrow := list.Spec
	list.Spec = func(q *rest.Query) { narrow(q.Set(field, value)) }
	single.Name, single.Hide = "record", func(record rest.Parts) bool { return record.Text(field) != value }
	rows[1].Answer = rest.Answer{Of: "record", Fields: []rest.Field{}} // it is read before it is passed on
	return rows
}
