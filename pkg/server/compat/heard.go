// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/members"
	"github.com/platform-ai/platform/pkg/llm/transcribe"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// heard is what an attempt says, for a namespace that records it.
type heard struct {
	models.Said

	// stream is an answer that comes in events; nil for none. answer is any other one.
	stream *transcribe.Stream
	answer *v1alpha1.RecordedMessage
}

// apiOf returns the API of an operation; empty if it asks nobody anything.
func apiOf(op operation) members.API {
	return map[operation]members.API{opChat: members.Chat, opResponses: members.Responses, opMessages: members.Messages}[op]
}

// hear prepares for what the attempt says; nil if it asks nobody anything.
func (a *attempt) hear() *models.Said {
	api := apiOf(a.in.op)
	if api == "" {
		return nil
	}
	h := &a.heard
	h.Request = func() *recording.Request {
		c := transcribe.Request(api, a.in.data)
		return &recording.Request{Conversation: c.Messages, Tools: c.Tools, Parameters: c.Parameters}
	}
	h.Answer = func() *v1alpha1.RecordedMessage {
		if h.stream != nil {
			return h.stream.Answer()
		}
		return h.answer
	}
	return &h.Said
}

// listen returns what hears the events of a stream; nil if nobody wants to know.
func (h *heard) listen(op operation) *transcribe.Stream {
	if h.Wanted {
		h.stream = &transcribe.Stream{API: apiOf(op)}
	}
	return h.stream
}

// whole hears an answer that is not a stream.
func (h *heard) whole(op operation, data []byte) {
	if h.Wanted {
		h.answer = transcribe.Answer(apiOf(op), data)
	}
}

// response hears the answer of a model of another API.
func (h *heard) response(r *llm.Response) {
	if h.Wanted {
		h.answer = models.Answered(r)
	}
}
