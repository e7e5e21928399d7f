// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/redact"
)

// held is how many bytes of a text that streams are held back, because they may begin a secret.
const held = 48

// cleaner removes secrets from what a turn shows and keeps. What it has removed once from a turn of a session it also removes
// from everything that follows in that session, where nothing identifies the value. The zero cleaner remembers nothing.
type cleaner struct{ seen *redact.Seen }

// text removes secrets from a text.
func (c cleaner) text(s string) string {
	s, _ = c.seen.Text(strings.ToValidUTF8(s, string(utf8.RuneError)))
	return s
}

// json removes secrets from a JSON value. If the string is not valid JSON, it is treated as text.
func (c cleaner) json(s string) string {
	out, _ := c.arguments(s)
	return out
}

// arguments is json. It also reports whether there was a secret: white space is left out in any case, so a text without secrets may
// change, too.
func (c cleaner) arguments(s string) (out string, secret bool) {
	if json.Valid([]byte(s)) {
		if out, secret, err := c.seen.JSON([]byte(s)); err == nil {
			return string(out), secret
		}
	}
	return c.seen.Text(strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// text removes secrets from a text that arrives in pieces. What may be a part of a secret waits for more.
type text struct {
	clean   cleaner
	pending string
}

// add takes a piece and returns what can be shown.
func (t *text) add(piece string) string {
	t.pending += piece
	end := strings.LastIndexByte(t.pending, '\n') + 1
	if _, secret := redact.Text(t.pending); !secret && len(t.pending) > held {
		// No secret has arrived whole, and none that is on its way began before the last space.
		end = max(end, strings.LastIndexByte(t.pending[:len(t.pending)-held], ' ')+1)
	}
	out := t.clean.text(t.pending[:end])
	t.pending = t.pending[end:]
	return out
}

// rest returns what is left when the text is complete.
func (t *text) rest() string {
	out := t.clean.text(t.pending)
	t.pending = ""
	return out
}

// echo holds an answer back as long as it repeats another one, which the client has already.
type echo struct{ of, held string }

// add takes a piece of the answer and returns what can be shown.
func (e *echo) add(piece string) string {
	if e.of == "" {
		return piece
	}
	e.held += piece
	if strings.HasPrefix(e.of, e.held) || e.repeats() {
		return ""
	}
	return e.rest()
}

// repeats reports whether what is held is all of the other answer.
func (e *echo) repeats() bool { return strings.TrimSpace(e.held) == strings.TrimSpace(e.of) }

// rest returns what is left when the answer is complete: nothing of a repetition, after which it waits for the next answer.
func (e *echo) rest() string {
	out := ""
	if e.held != "" && !e.repeats() {
		out = "\n\n" + e.held
		e.of = ""
	}
	e.held = ""
	return out
}
