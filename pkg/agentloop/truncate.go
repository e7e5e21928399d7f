// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"slices"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/llm"
)

const (
	removedNotice = "[platform notice] Earlier messages were removed because the conversation became too long."
	cutMark       = "\n[cut: the conversation became too long]"
)

// halve returns a conversation of about half the size, or false if nothing can be removed.
func halve(messages []llm.Message, prompt string) ([]llm.Message, bool) {
	head, turns := split(messages)
	return shrink(head, turns, prompt, size(slices.Concat(turns...))/2)
}

// trim returns a conversation that has at most limit bytes without its system messages, as far as something can be removed; false
// if it is short enough as it is. Turns have half of the limit, however long the first prompt is.
func trim(messages []llm.Message, prompt string, limit int) ([]llm.Message, bool) {
	head, turns := split(messages)
	first := 0
	for _, m := range head {
		if m.Role != llm.RoleSystem {
			first += sizeOf(m)
		}
	}
	target := max(limit-first, limit/2)
	if size(slices.Concat(turns...)) <= target {
		return nil, false
	}
	return shrink(head, turns, prompt, target)
}

// shrink returns a conversation whose turns have about target bytes, or false if nothing can be removed. It keeps the
// beginning (system messages and the first prompt) and the prompt of the run, which may come after history. It removes whole
// turns, oldest first, so that no result loses its call. If the rest is still too large, it cuts tool results.
func shrink(head []llm.Message, turns [][]llm.Message, prompt string, target int) ([]llm.Message, bool) {
	if len(turns) == 0 {
		return nil, false
	}
	kept := slices.Clone(turns)
	for size(slices.Concat(kept...)) > target {
		oldest := slices.IndexFunc(kept[:len(kept)-1], func(turn []llm.Message) bool {
			return turn[0].Role != llm.RoleUser || turn[0].Text != prompt
		})
		if oldest < 0 {
			break
		}
		kept = slices.Delete(kept, oldest, oldest+1)
	}
	tail := slices.Concat(kept...)
	changed := len(kept) < len(turns)
	if over := size(tail) - target; over > 0 {
		changed = cutResults(tail, target) || changed
	}
	if !changed {
		return nil, false
	}
	out := slices.Clone(head)
	if len(kept) < len(turns) && (len(head) == 0 || head[len(head)-1].Text != removedNotice) {
		out = append(out, llm.Message{Role: llm.RoleUser, Text: removedNotice})
	}
	return append(out, tail...), true
}

// split divides the conversation into its beginning and its turns. A turn is an answer with the
// results of its calls, or a message of the user.
func split(messages []llm.Message) (head []llm.Message, turns [][]llm.Message) {
	i := 0
	for i < len(messages) && messages[i].Role == llm.RoleSystem {
		i++
	}
	if i < len(messages) && messages[i].Role == llm.RoleUser {
		i++
	}
	if i < len(messages) && messages[i].Text == removedNotice {
		i++
	}
	for _, m := range messages[i:] {
		if m.Role == llm.RoleTool && len(turns) > 0 {
			turns[len(turns)-1] = append(turns[len(turns)-1], m)
		} else {
			turns = append(turns, []llm.Message{m})
		}
	}
	return messages[:i], turns
}

// cutResults shortens tool results so that the messages fit into target bytes, as far as that
// is possible by shortening results. It reports whether it cut any.
func cutResults(messages []llm.Message, target int) bool {
	results, fixed := 0, 0
	for _, m := range messages {
		if m.Role == llm.RoleTool {
			results++
		} else {
			fixed += sizeOf(m)
		}
	}
	if results == 0 {
		return false
	}
	// Each result gets an equal share, but enough to show what it was.
	share := max((target-fixed)/results, 200)
	cut := false
	for i := range messages {
		m := &messages[i]
		if m.Role != llm.RoleTool || len(m.Text) <= share+len(cutMark) {
			continue
		}
		m.Text = clip.Text(m.Text, share) + cutMark
		cut = true
	}
	return cut
}

func size(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += sizeOf(m)
	}
	return n
}

func sizeOf(m llm.Message) int {
	n := len(m.Text)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	if m.Opaque != nil {
		n += len(m.Opaque.Data)
	}
	return n
}
