// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fork makes the history that a forked task receives. The history is bounded and sanitized, and
// comes as data for the response and as a block before the prompt. The package has no clock and no store.
package fork

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// MaxEvents is the maximum number of events in a history.
	MaxEvents = 200
	// MaxBytes is the maximum size of a history's events as JSON.
	MaxBytes = 256 << 10
	// maxSummary is the length to which summaries are cut if space is short, in characters.
	maxSummary = 1024
)

// Context returns the history of a task up to afterSeq. events are the newest ones up to there, in sequence
// order; older says that there were more. If they do not fit, it drops first payloads, then long summaries,
// then events, each from the oldest on.
func Context(namespace, task string, afterSeq int64, events []*v1alpha1.ExecutionEvent, older bool) *v1alpha1.ForkContext {
	if len(events) > MaxEvents {
		events, older = events[len(events)-MaxEvents:], true
	}
	c := &v1alpha1.ForkContext{
		SourceNamespace: namespace, SourceTask: task, AfterSeq: afterSeq,
		Events: make([]v1alpha1.ForkContextEvent, len(events)), Truncated: older,
	}
	for i, e := range events {
		c.Events[i] = v1alpha1.ForkContextEvent{
			Seq: e.Seq, Type: e.Type, Severity: e.Severity, Summary: e.Summary,
			ToolName: e.ToolName, ToolCallID: e.ToolCallID, Content: e.Content, ContentText: e.ContentText,
		}
		c.Truncated = c.Truncated || e.Truncation != nil
	}
	fit(c)
	return c
}

// fit makes the events fit into MaxBytes.
func fit(c *v1alpha1.ForkContext) {
	sizes := make([]int, len(c.Events))
	total := 0
	for i := range c.Events {
		sizes[i] = size(&c.Events[i])
		total += sizes[i]
	}
	for _, drop := range []func(*v1alpha1.ForkContextEvent){
		func(e *v1alpha1.ForkContextEvent) { e.Content, e.ContentText = nil, "" },
		func(e *v1alpha1.ForkContextEvent) { e.Summary = cut(e.Summary) },
	} {
		for i := range c.Events {
			if total <= MaxBytes {
				return
			}
			drop(&c.Events[i])
			n := size(&c.Events[i])
			c.Truncated = c.Truncated || n != sizes[i]
			total, sizes[i] = total+n-sizes[i], n
		}
	}
	first := 0
	for ; total > MaxBytes && first < len(c.Events); first++ {
		total -= sizes[first]
		c.Truncated = true
	}
	c.Events = c.Events[first:]
}

func size(e *v1alpha1.ForkContextEvent) int { return len(line(e)) + 1 }

// line returns an event as one line of JSON. The line contains no "<", so it cannot end a block. It is
// empty if the content is not JSON, which does not happen for stored events.
func line(e *v1alpha1.ForkContextEvent) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	return b
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxSummary {
		return s
	}
	return string([]rune(s)[:maxSummary-1]) + "…"
}

// A block begins with open, which has attributes, and ends with end.
const (
	open = "<fork-context "
	end  = "</fork-context>\n\n"
)

// Prompt puts the history before the prompt. If the source task is a fork itself, its prompt begins with
// earlier histories, one block each. They stay in front as far as all blocks fit into MaxBytes; the oldest
// blocks are dropped first. The newest history is always kept.
func Prompt(c *v1alpha1.ForkContext, prompt string) string {
	blocks, prompt := split(prompt)
	blocks = append(blocks, block(c))
	total := 0
	keep := len(blocks)
	for keep > 0 && (total == 0 || total+len(blocks[keep-1]) <= MaxBytes) {
		keep--
		total += len(blocks[keep])
	}
	return strings.Join(blocks[keep:], "") + prompt
}

func block(c *v1alpha1.ForkContext) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%stask=%q after=%q truncated=%q>\n", open,
		c.SourceNamespace+"/"+c.SourceTask, strconv.FormatInt(c.AfterSeq, 10), strconv.FormatBool(c.Truncated))
	b.WriteString("You continue the work of another task. These are its events up to the point where you take over, one JSON object a line, oldest first.\n")
	for i := range c.Events {
		b.Write(line(&c.Events[i]))
		b.WriteByte('\n')
	}
	b.WriteString(end)
	return b.String()
}

// Own returns a prompt without the histories that the prompt of a fork begins with.
func Own(prompt string) string {
	_, rest := split(prompt)
	return rest
}

// split separates the blocks at the start of a prompt from the rest.
func split(prompt string) (blocks []string, rest string) {
	for strings.HasPrefix(prompt, open) {
		before, after, ok := strings.Cut(prompt, end)
		if !ok {
			break
		}
		blocks, prompt = append(blocks, before+end), after
	}
	return blocks, prompt
}
