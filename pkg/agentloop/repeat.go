// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/platform-ai/platform/pkg/llm"
)

// Rules about calls that are repeated.
const (
	repeatsBeforeWarning = 3
	repeatPenalty        = 5
)

// repetition is how often a call with equal arguments had the same result, without another result in between.
type repetition struct {
	result [sha256.Size]byte
	times  int
}

// repeat notes a call with its result and reports whether it was made too often. A call that gets another result than the
// time before is counted anew: tests that run after an edit, or a file that changed, are progress. Calls of tools that
// poll never count.
func (l *loop) repeat(c llm.ToolCall, result string) bool {
	if l.c.Tools != nil {
		if d, _ := l.c.Tools.Definition(c.Name); d.Polls {
			return false
		}
	}
	key, digest := c.Name+"\x00"+canonical(c.Arguments), sha256.Sum256([]byte(result))
	r := l.repeats[key]
	if r.result != digest {
		r = repetition{result: digest}
	}
	r.times++
	l.repeats[key] = r
	return r.times >= repeatsBeforeWarning
}

// canonical returns the same text for equal argument objects, regardless of white space and the
// order of keys.
func canonical(arguments string) string {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return arguments
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return string(raw)
}
