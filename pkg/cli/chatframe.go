// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxShown is how many characters of arguments and results are shown.
const maxShown = 160

// chatFrame is the data of one event of a stream.
type chatFrame struct {
	SessionID string                 `json:"sessionId"`
	Content   string                 `json:"content"`
	Restart   bool                   `json:"restart"`
	ToolCall  *v1alpha1.ChatToolCall `json:"toolCall"`
	Outcome   v1alpha1.ChatOutcome   `json:"outcome"`
	Usage     *v1alpha1.ChatUsage    `json:"usage"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// show prints one event and reports whether it was the last.
func (c *conversation) show(kind string, f *chatFrame) (done bool, err error) {
	if f.SessionID != "" && c.spec.SessionID == "" {
		c.spec.SessionID = f.SessionID
		if !c.quiet {
			note(c.Err, c.paint(dim, "session "+clean(f.SessionID)))
		}
	}
	switch kind {
	case "message":
		if f.Restart {
			c.endLine()
			note(c.Err, c.paint(yellow, "the model begins its answer again"))
		}
		if f.Content != "" {
			if _, err := io.WriteString(c.Out, f.Content); err != nil {
				return false, &outcome{codeError, fmt.Sprintf("standard output: %v", err)}
			}
			c.lineOpen = !strings.HasSuffix(f.Content, "\n")
		}
	case "tool_call", "tool_result":
		c.endLine()
		c.showCall(kind, f.ToolCall)
	case "error":
		c.endLine()
		code := codeFailed
		if f.Error == nil {
			return true, &outcome{codeUnknown, "the turn ended for a reason that the server did not name"}
		}
		if f.Error.Code == "cancelled" {
			code = codeCancelled
		}
		return true, &outcome{code, fmt.Sprintf("%s (%s)", clean(f.Error.Message), clean(f.Error.Code))}
	case "done":
		c.endLine()
		if f.Outcome == v1alpha1.ChatIterationLimit {
			note(c.Err, c.paint(yellow, "the turn used up its iterations; this is a summary"))
		}
		return true, nil
	}
	return false, nil
}

func (c *conversation) showCall(kind string, call *v1alpha1.ChatToolCall) {
	if c.quiet || call == nil {
		return
	}
	mark, text := "→ ", ""
	if call.Args != nil {
		text = string(call.Args.Raw)
	}
	color := cyan
	if kind == "tool_result" {
		mark, color = "← ", green
		var r struct {
			Success   bool   `json:"success"`
			Error     string `json:"error"`
			ErrorType string `json:"errorType"`
		}
		if call.Result != nil {
			text = string(call.Result.Raw)
			if json.Unmarshal(call.Result.Raw, &r) == nil && !r.Success {
				color, text = red, r.ErrorType+": "+r.Error
			}
		}
	}
	note(c.Err, c.paint(color, mark+clean(call.Name))+" "+c.paint(dim, fit(clean(text), maxShown)))
}

// endLine ends a line of the answer, so that what comes next begins on its own.
func (c *conversation) endLine() {
	if c.lineOpen {
		_, _ = io.WriteString(c.Out, "\n")
		c.lineOpen = false
	}
}
