// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
)

// turn says something and prints the answer as it arrives. When ctx ends, the connection does. The server then cancels the
// turn, unless it is a background turn.
func (c *conversation) turn(ctx context.Context, message string) error {
	said := v1alpha1.Chat{Spec: c.spec}
	said.APIVersion, said.Kind = v1alpha1.SchemeGroupVersion.String(), "Chat"
	said.Spec.Message = message
	body, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	ask := c.client.Post().Namespace(c.namespace).Resource("chats").SetHeader("Content-Type", "application/json").Body(body)
	if c.detach {
		return c.leave(ctx, ask)
	}
	c.after = 0
	err = c.read(ctx, ask)
	switch {
	case ctx.Err() != nil:
		c.interrupted()
		return ctx.Err()
	case !errors.Is(err, errCut):
		return err
	case c.spec.Background && c.after > 0:
		return c.follow(ctx)
	}
	return &outcome{codeUnknown, "the answer was cut; what was done is not known: see 'platform task list'"}
}

// leave begins a background turn and prints its session.
func (c *conversation) leave(ctx context.Context, ask *rest.Request) error {
	begun := &v1alpha1.Chat{}
	if err := ask.SetHeader("Accept", "application/json").Do(ctx).Into(begun); err != nil {
		return err
	}
	return c.say("%s", clean(begun.Status.SessionID))
}

// follow prints the frames of the session's background turn that were not printed yet, until the turn is over. It
// reconnects when the connection is cut.
func (c *conversation) follow(ctx context.Context) error {
	session := c.spec.SessionID
	err := persist(ctx, c.clock, func() int64 { return c.after }, func(ctx context.Context) error {
		return c.read(ctx, c.client.Get().Namespace(c.namespace).Resource("sessions").Name(session).SubResource("turn").
			Param("after", strconv.FormatInt(c.after, 10)))
	})
	if ctx.Err() != nil {
		c.interrupted()
		return ctx.Err()
	}
	if lost, ok := errors.AsType[*cutError](err); ok {
		return &outcome{codeUnknown, fmt.Sprintf("the turn could not be followed any more: %s; to try again: platform chat attach %s", explain(lost.err), clean(session))}
	}
	return err
}

// read prints the frames of one answer. The error is errCut if the answer ends before the turn does.
func (c *conversation) read(ctx context.Context, ask *rest.Request) error {
	stream, err := ask.SetHeader("Accept", sse.ContentType).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // it was only read
	in := sse.NewReader(stream, sse.Options{})
	for {
		e, err := in.Next()
		if errors.Is(err, sse.ErrTooLong) {
			return &outcome{codeError, fmt.Sprintf("the answer cannot be read: %v", err)}
		}
		if err != nil {
			c.endLine()
			return fmt.Errorf("%w: %w", errCut, err)
		}
		var f chatFrame
		if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
			return &outcome{codeError, fmt.Sprintf("the server sent a frame that cannot be read (id %s): %v", clean(e.ID), err)}
		}
		if seq, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
			c.after = seq
		}
		if done, err := c.show(e.Type, &f); done || err != nil {
			return err
		}
	}
}

// interrupted tells the user how to go on after Ctrl-C.
func (c *conversation) interrupted() {
	c.endLine()
	session := clean(c.spec.SessionID)
	switch {
	case session == "":
	case c.spec.Background:
		note(c.Err, "detached; the turn goes on. To see it: platform chat attach "+session+
			"; to cancel it: platform chat cancel "+session)
	default:
		note(c.Err, "cancelled; to go on: platform chat --session "+session)
	}
}
