// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbox turns messages between tasks into events of the recipient's stream, and these events back into what the
// recipient has not read yet. It has no clock and no store.
//
// Messages of a recipient are numbered from 1. What was read is a number, too: the newest event of type TaskMessagesRead
// holds it. An attempt that failed has read for nothing, because the next one begins with an empty conversation, so what
// it had read is unread for the next. What an iteration that succeeded has read stays read.
package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Limits.
const (
	// MaxContentChars is the maximum length of a message, in characters.
	MaxContentChars = 16384
	// MaxIDChars is the maximum length of the id that a sender chooses, in characters.
	MaxIDChars = 128
	// MaxUnread is how many messages a task may have that it has not read.
	MaxUnread = 100
	// MaxMessages is how many messages a task may get in all.
	MaxMessages = 1000
	// Page is how many messages are read at a time.
	Page = 20
)

// Check returns why a message cannot be sent, and nil if it can. The error names the field and the rule.
func Check(m *v1alpha1.TaskMessageSpec) error {
	switch n := utf8.RuneCountInString(m.Content); {
	case m.ToTask == "":
		return errors.New("spec.toTask: is required")
	case strings.TrimSpace(m.Content) == "":
		return errors.New("spec.content: must not be blank")
	case n > MaxContentChars:
		return fmt.Errorf("spec.content: must be at most %d characters, and has %d", MaxContentChars, n)
	case utf8.RuneCountInString(m.MessageID) > MaxIDChars:
		return fmt.Errorf("spec.messageID: must be at most %d characters", MaxIDChars)
	}
	return nil
}

// Message is a message to one recipient.
type Message struct {
	From    string
	FromUID types.UID
	Parent  string
	Content string
	Key     string // de-duplication key; may be empty
	Number  int64
}

// content is the content of a TaskMessageReceived event.
type content struct {
	Number      int64     `json:"number"`
	FromTask    string    `json:"fromTask"`
	FromTaskUID types.UID `json:"fromTaskUID"`
	ParentTask  string    `json:"parentTask"`
}

// Event returns the event that stores a message. It is sanitized: it has no secrets. The error says that the text is too
// long without its secrets, whose replacements can be longer than they are.
func Event(m Message) (*v1alpha1.ExecutionEvent, error) {
	e := event.New(v1alpha1.EventTaskMessageReceived, v1alpha1.SeverityInfo, m.Key, "message from "+m.From, map[string]any{
		"number": m.Number, "fromTask": m.From, "fromTaskUID": m.FromUID, "parentTask": m.Parent,
	})
	e.ContentText = m.Content
	if r := event.Sanitize(e); r.Truncated {
		return nil, errors.New("spec.content: is too long after its secrets were removed")
	}
	return e, nil
}

// Of returns the message that an event holds.
func Of(e *v1alpha1.ExecutionEvent) v1alpha1.ReceivedMessage {
	c := read[content](e)
	return v1alpha1.ReceivedMessage{
		ID: e.Name, Number: c.Number, Namespace: e.StreamNamespace, FromTask: c.FromTask, ToTask: e.TaskName, ParentTask: c.ParentTask,
		Content: e.ContentText, CreatedAt: e.CreatedAt,
	}
}

// Number returns the number of the message that an event holds; 0 if the event is nil.
func Number(e *v1alpha1.ExecutionEvent) int64 { return read[content](e).Number }

// Reader is the run that reads: an attempt of an iteration.
type Reader struct {
	Run       types.UID
	Iteration int32
}

// mark is the content of a TaskMessagesRead event.
type mark struct {
	Through   int64     `json:"through"`
	Run       types.UID `json:"run"`
	Iteration int32     `json:"iteration"`
	// Before is what the iterations before that one had read.
	Before int64 `json:"before"`
}

// Read returns the number up to which a reader has read, by the newest mark, which may be nil.
func Read(newest *v1alpha1.ExecutionEvent, by Reader) int64 {
	m := read[mark](newest)
	if m.Run == by.Run || m.Iteration < by.Iteration {
		return m.Through
	}
	return m.Before
}

// Mark returns the event which records that a reader has read up to a number. newest is the mark before it, or nil.
func Mark(newest *v1alpha1.ExecutionEvent, by Reader, through int64) *v1alpha1.ExecutionEvent {
	m := read[mark](newest)
	before := m.Before
	if m.Iteration < by.Iteration {
		before = m.Through
	}
	return event.New(v1alpha1.EventTaskMessagesRead, v1alpha1.SeverityDebug, "", fmt.Sprintf("messages read up to number %d", through), map[string]any{
		"through": through, "run": by.Run, "iteration": by.Iteration, "before": before,
	})
}

// read reads the content of an event. Fields that it lacks, or that have another type, are zero.
func read[C any](e *v1alpha1.ExecutionEvent) (c C) {
	if e == nil || e.Content == nil {
		return c
	}
	if json.Unmarshal(e.Content.Raw, &c) != nil {
		return *new(C)
	}
	return c
}
