// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// AppendRow appends the JSON of an event as pages, streams and traces show it. The result is the same as
// that of Row, except that content is copied unchanged; it must be JSON and was made compact when it was
// stored. Encoding is most of the cost of showing many events, and AppendRow takes about a tenth of the
// encoder's time.
func AppendRow(b []byte, e *v1alpha1.ExecutionEvent) []byte {
	r := row{b: append(b, '{')}
	r.text("id", e.ID)
	r.text("namespace", e.StreamNamespace)
	r.text("streamType", string(e.StreamType))
	r.text("streamID", e.StreamID)
	r.number("seq", e.Seq)
	r.key("type")
	r.value(string(e.Type))
	r.text("severity", string(e.Severity))
	r.time("createdAt", e.CreatedAt)
	r.number("attempt", int64(e.Attempt))
	r.count("elapsedMicros", e.ElapsedMicros)
	r.text("taskName", e.TaskName)
	r.text("rootTask", e.RootTask)
	r.text("sessionName", e.SessionName)
	r.text("agentName", e.AgentName)
	r.text("toolName", e.ToolName)
	r.text("toolCallID", e.ToolCallID)
	r.text("provider", e.Provider)
	r.text("model", e.Model)
	r.text("stopReason", e.StopReason)
	r.count("inputTokens", e.InputTokens)
	r.count("outputTokens", e.OutputTokens)
	r.count("cachedInputTokens", e.CachedInputTokens)
	r.count("contextWindowUsed", e.ContextWindowUsed)
	r.count("contextWindowSize", e.ContextWindowSize)
	r.text("summary", e.Summary)
	if e.Content != nil {
		r.key("content")
		if len(e.Content.Raw) > 0 {
			r.b = append(r.b, e.Content.Raw...)
		} else {
			r.b = append(r.b, "null"...)
		}
	}
	r.text("contentText", e.ContentText)
	if e.Truncation != nil {
		r.key("truncation")
		r.encode(e.Truncation)
	}
	r.number("taskSeq", e.TaskSeq)
	r.text("taskStreamID", e.TaskStreamID)
	return append(r.b, '}')
}

// row is a JSON object under construction.
type row struct{ b []byte }

func (r *row) key(name string) {
	if r.b[len(r.b)-1] != '{' {
		r.b = append(r.b, ',')
	}
	r.b = append(r.b, '"')
	r.b = append(r.b, name...)
	r.b = append(r.b, '"', ':')
}

// text writes a member, which is left out if it is empty.
func (r *row) text(name, s string) {
	if s != "" {
		r.key(name)
		r.value(s)
	}
}

func (r *row) value(s string) {
	if !plain(s) {
		r.encode(s)
		return
	}
	r.b = append(r.b, '"')
	r.b = append(r.b, s...)
	r.b = append(r.b, '"')
}

// encode encodes rare values with the standard encoder. Text and plain structs always encode.
func (r *row) encode(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null")
	}
	r.b = append(r.b, raw...)
}

// plain reports whether a text needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

func (r *row) number(name string, n int64) {
	if n != 0 {
		r.key(name)
		r.b = strconv.AppendInt(r.b, n, 10)
	}
}

func (r *row) count(name string, n *int64) {
	if n != nil {
		r.key(name)
		r.b = strconv.AppendInt(r.b, *n, 10)
	}
}

// time writes a time, which is never left out, as in metav1.
func (r *row) time(name string, t metav1.MicroTime) {
	r.key(name)
	if t.IsZero() {
		r.b = append(r.b, "null"...)
		return
	}
	r.b = append(r.b, '"')
	r.b = t.UTC().AppendFormat(r.b, metav1.RFC3339Micro)
	r.b = append(r.b, '"')
}
