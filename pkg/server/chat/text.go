// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/redact"
)

const (
	// held is how many bytes of a text that streams are held back from a word on that may begin a secret, or announce one.
	held = 48
	// remembered is how many bytes of what was shown are looked at again with what follows, because they may say that it is a secret.
	remembered = 256
	// longestWord is how many letters a word of ordinary text has at most.
	longestWord = 24
)

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

// text removes secrets from a text that arrives in pieces. Words of ordinary text are shown as they arrive; from the first other word on,
// what may be a part of a secret waits for more. What was shown is looked at again with what follows it.
type text struct {
	clean cleaner
	// before is the end of what was shown, as it arrived.
	before  string
	pending string
}

// add takes a piece and returns what can be shown.
func (t *text) add(piece string) string {
	t.pending += piece
	end := max(strings.LastIndexByte(t.pending, '\n')+1, ordinary(t.pending))
	if len(t.pending) > held {
		if _, secret := redact.Text(t.before + t.pending); !secret {
			// No secret has arrived whole, and none that is on its way began before the last space.
			end = max(end, strings.LastIndexByte(t.pending[:len(t.pending)-held], ' ')+1)
		}
	}
	return t.show(end)
}

// show returns the beginning of what is pending.
func (t *text) show(end int) string {
	if end == 0 {
		return ""
	}
	shown := t.pending[:end]
	out, ok := strings.CutPrefix(t.clean.text(t.before+shown), t.clean.text(t.before))
	if !ok {
		out = t.clean.text(shown)
	}
	t.before += shown
	t.before, t.pending = t.before[max(0, len(t.before)-remembered):], t.pending[end:]
	return out
}

// ordinary returns how much of a text is ordinary words at its beginning, each with the space after it.
func ordinary(s string) int {
	at := 0
	for {
		n := strings.IndexByte(s[at:], ' ')
		if n < 0 || !ordinaryWord(s[at:at+n]) {
			return at
		}
		at += n + 1
	}
}

// ordinaryWord reports whether a word consists of a few letters or digits, with the marks of a sentence after it, and does not name
// secrets. Nothing is removed for the sake of such a word but at its own end.
func ordinaryWord(w string) bool {
	w = strings.TrimRight(strings.TrimLeft(w, "("), ".,;!?)")
	letters, digits := 0, 0
	for _, r := range w {
		switch {
		case unicode.IsLetter(r):
			letters++
		case r >= '0' && r <= '9':
			digits++
		case r != '\'' && r != '’':
			return false
		}
	}
	if digits > 0 {
		return letters == 0 && digits <= 3
	}
	return letters <= longestWord && !redact.NamesSecret(w)
}

// rest returns what is left when the text is complete.
func (t *text) rest() string { return t.show(len(t.pending)) }

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
