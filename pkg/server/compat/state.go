// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"slices"
)

// The callers of a Provider share its key, so to its vendor they are one account, and whoever names what the vendor keeps could go
// on with what another caller has begun. This server does not record who began what. Therefore no request goes on with anything,
// whether it is passed on, translated or answered with the server's tools; it is refused with 400 before anything is sent:
//
//	thread                                 of messages and counts, with the error_code thread_unsupported_request
//	container                              of messages and of tools of responses, by its id; new ones are the vendor's to make
//	store: true, background: true          of responses; a store that is left to the default is sent as false
//	previous_response_id, conversation     of responses, and items that are an item_reference
//
// There are no paths for batches, files, or responses that were stored. What is only read may be named: files by their ids, which
// only holders of the key can put there, and prompts. What a request names is part of its input, whose size is not known before
// the vendor has read it, so Budgets reserve the most that it may be (outside.go).

// threadUnsupported is how Anthropic's API says that a request cannot be one of a thread. Its SDKs then send the whole
// conversation without one.
type threadUnsupported struct {
	ErrorCode   string   `json:"error_code"`
	Unsupported []string `json:"unsupported"`
}

// checkThread refuses a message that begins or goes on with a thread, which the vendor would keep.
func (in *incoming) checkThread() error {
	if in.get("thread") == nil {
		return nil
	}
	p := invalid("thread", "thread: this server keeps no conversations, and the callers of a Provider share its account; send the whole conversation in messages, without thread")
	p.details = &threadUnsupported{ErrorCode: "thread_unsupported_request", Unsupported: []string{"thread"}}
	return p
}

// checkContainers refuses a container that an earlier request has begun. New ones are the vendor's to make.
func (in *incoming) checkContainers() error {
	names := false
	param := "container"
	switch in.op {
	case opMessages:
		names = begunContainer(in.get(param))
	case opResponses:
		param = "tools"
		var tools []fields
		_ = json.Unmarshal(in.get(param), &tools) // what cannot be read is the vendor's to refuse
		names = slices.ContainsFunc(tools, func(tool fields) bool {
			var environment fields
			_ = json.Unmarshal(tool["environment"], &environment) // of another tool, it is a text
			return begunContainer(tool["container"]) || !null(environment["container_id"])
		})
	case opChat, opCount, opModels:
	}
	if names {
		return invalid(param, "%s: a container that was begun earlier cannot be used, because the callers of a Provider share its account; leave its id out, and the vendor makes a new one", param)
	}
	return nil
}

// begunContainer reports whether a container is named by its id, alone or in an object.
func begunContainer(raw json.RawMessage) bool {
	var id string
	if null(raw) || json.Unmarshal(raw, &id) == nil {
		return id != ""
	}
	var c fields
	_ = json.Unmarshal(raw, &c) // another value is the vendor's to refuse
	return !null(c["id"])
}
