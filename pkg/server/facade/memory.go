// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// memoryRows returns the rows of memories and proposals, for users and for workers, whose lists have no envelope, and
// the search in transcripts.
func memoryRows() []rest.Row {
	const users, workers = "/api/v1/", "/internal/v1/"
	transcripts := rest.Row{
		Method: http.MethodGet, Path: workers + "sessions/:namespace/search",
		Native: asked("transcriptsearches", "TranscriptSearch", func(q *rest.Query) {
			q.Text("query", "query", "q").Texts("sessionName", "excludeSessionName").List("roles").Number("limit", 1).Number("maxSnippetLength", 1)
		}),
		Answer: rest.Answer{Bare: true, Fields: list("status.items", rest.Fields(
			`sessionName: sessionName = ""`, "messageId: messageId = 0", `stableMessageId: stableMessageId = ""`, `role: role = ""`, "name: name",
			`snippet: snippet = ""`, "createdAt: createdAt = null",
		))},
	}
	return slices.Concat(
		memories(users+"memories", false), proposals(users+"memory-proposals", false),
		memories(workers+"memories/:namespace", true), proposals(workers+"memory-proposals/:namespace", true), []rest.Row{transcripts},
	)
}

func memories(all string, bare bool) []rest.Row {
	const get, post = http.MethodGet, http.MethodPost
	one := all + "/:id"
	// there hides a discarded memory, and then makes another request about it.
	there := func(verb, sub string) []rest.Native {
		return []rest.Native{
			{Verb: "get", Path: "memories/:id", Hide: func(memory rest.Parts) bool { return memory.Text("status.deleted") == "true" }},
			{Verb: verb, Path: "memories/:id" + sub, Send: `{"apiVersion":"core.platform.ai/v1alpha1","kind":"MemoryChange"}`},
		}
	}
	// A discarded memory is not there for those who may read it; others may discard it again.
	discard := there("create", "/discard")
	discard[0].Optional = true
	body := rest.Body{Max: maxObject, Kind: "Memory", Under: "spec", Same: []string{"namespace"}}
	create := body
	create.Required = []string{"content"}
	done := rest.Answer{Code: http.StatusNoContent}
	return []rest.Row{
		{Method: get, Path: all, Answer: rest.Answer{Bare: bare, Fields: page(bare, list("status.items", append(memory("memory."), rest.Fields("score: score")...)))}, Native: asked("memorysearches", "MemorySearch", func(q *rest.Query) {
			q.Text("query", "query", "q").Texts("sessionName", "agentName", "taskName", "parentTask", "source").List("tags").List("ids").Flag("includeDisabled").Flag("includeDeleted").Number("limit", 1)
		})},
		{Method: post, Path: all, Native: []rest.Native{{Verb: "create", Path: "memories"}}, Body: &create, Answer: rest.Answer{Code: http.StatusCreated, Fields: memory("")}},
		{Method: get, Path: one, Native: there("get", "")[:1], Answer: rest.Answer{Fields: memory("")}},
		{Method: http.MethodPut, Path: one, Native: []rest.Native{there("", "")[0], {Verb: "patch", Path: "memories/:id"}}, Body: &body, Answer: rest.Answer{Fields: memory("")}},
		{Method: http.MethodDelete, Path: one, Native: discard, Answer: done},
		{Method: post, Path: one + "/disable", Native: there("create", "/disable"), Answer: done},
		{Method: post, Path: one + "/enable", Native: there("create", "/enable"), Answer: done},
	}
}

func proposals(all string, bare bool) []rest.Row {
	const get, post = http.MethodGet, http.MethodPost
	one := all + "/:id"
	decide := func(sub, kind string) rest.Row {
		return rest.Row{
			Method: post, Path: one + sub, Native: []rest.Native{{Verb: "create", Path: "memoryproposals/:id" + sub}},
			Body: &rest.Body{Max: maxObject, Kind: kind, Under: "spec", Optional: true, Same: []string{"namespace"}}, Answer: rest.Answer{Code: http.StatusNoContent},
		}
	}
	review, apply := decide("/review", "MemoryProposalReview"), decide("/apply", "MemoryProposalApplication")
	review.Body.Required, apply.Answer = []string{"status"}, rest.Answer{Fields: memory("")}
	return []rest.Row{
		{Method: get, Path: all, Answer: rest.Answer{Bare: bare, Fields: page(bare, list("status.items", proposal()))}, Native: asked("memoryproposalsearches", "MemoryProposalSearch", func(q *rest.Query) {
			q.Text("query", "query", "q").Texts("taskName", "agentName", "type", "status").Number("limit", 1)
		})},
		{
			Method: post, Path: all, Native: []rest.Native{{Verb: "create", Path: "memoryproposals"}}, Answer: rest.Answer{Code: http.StatusCreated, Fields: proposal()},
			Body: &rest.Body{Max: maxObject, Kind: "MemoryProposal", Under: "spec", Required: []string{"title"}, Same: []string{"namespace"}},
		},
		{Method: get, Path: one, Native: []rest.Native{{Verb: "get", Path: "memoryproposals/:id"}}, Answer: rest.Answer{Fields: proposal()}},
		review, apply,
		{Method: post, Path: one + "/archive", Answer: rest.Answer{Code: http.StatusNoContent}, Native: []rest.Native{{
			Verb: "create", Path: "memoryproposals/:id/archive", Send: `{"apiVersion":"core.platform.ai/v1alpha1","kind":"MemoryChange"}`,
		}}},
	}
}

// page adds the envelope of a list. These lists have no further pages.
func page(bare bool, items []rest.Field) []rest.Field {
	if bare {
		return items
	}
	return append(items, rest.Fields("metadata: = {}")...)
}

// memory returns the fields of a memory as REST clients see it.
func memory(of string) []rest.Field {
	return rest.Fields(
		"id: "+of+"metadata.name", "namespace: "+of+"metadata.namespace", "sessionName: "+of+"spec.sessionName", "agentName: "+of+"spec.agentName",
		"taskName: "+of+"spec.taskName", "parentTask: "+of+"spec.parentTask", "source: "+of+"spec.source", "sourceProposalId: "+of+"status.proposalName",
		"content: "+of+`spec.content = ""`, "tags: "+of+"spec.tags = []", "disabled: "+of+"status.disabled = false", "deleted: "+of+"status.deleted = false",
		"createdAt: "+of+"metadata.creationTimestamp = null", "updatedAt: "+of+"status.updatedAt | "+of+"metadata.creationTimestamp = null",
		"lastRecalledAt: "+of+"status.lastRecalledAt", "recalledCount: "+of+"status.recalledCount = 0", "origin: "+of+"status.origin",
	)
}

// proposal returns the fields of a proposal as REST clients see it.
func proposal() []rest.Field {
	return rest.Fields(
		"id: metadata.name", "namespace: metadata.namespace", "taskName: spec.taskName", "agentName: spec.agentName", `type: spec.type = ""`, "skillName: spec.skillName",
		`title: spec.title = ""`, "description: spec.description", "content: spec.content", "patch: spec.patch", `status: status.state = ""`, "reviewer: status.reviewer",
		"reviewNote: status.reviewNote", "appliedMemoryId: status.memoryName", "appliedBy: status.appliedBy", "createdAt: metadata.creationTimestamp = null",
		"updatedAt: status.updatedAt | metadata.creationTimestamp = null", "reviewedAt: status.reviewedAt", "appliedAt: status.appliedAt", "origin: status.origin",
	)
}
