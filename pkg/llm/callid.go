// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"slices"
	"strconv"
)

// DistinctCalls gives each call of an answer an id of its own. Some vendors use one id for several calls, and their results
// would be mixed up.
func DistinctCalls(calls []ToolCall) {
	used := map[string]bool{}
	for i := range calls {
		calls[i].ID = unused(used, calls[i].ID)
	}
}

// DistinctIDs returns a conversation in which no two calls have the same id, as some vendors demand: others begin anew with
// call_0 in each answer. Each result keeps to its call, which is the first of that id, since the last answer with one, that has
// no result yet. as turns an id into one that the vendor takes. Messages of the conversation that change are copied.
func DistinctIDs(messages []Message, as func(string) string) []Message {
	out := slices.Clone(messages)
	used := map[string]bool{}
	waiting := map[string][]string{} // new ids of the calls of one id in the last answer, without a result yet
	for i := range out {
		m := &out[i]
		switch {
		case m.Role == RoleTool:
			if ids := waiting[m.ToolCallID]; len(ids) > 0 {
				m.ToolCallID, waiting[m.ToolCallID] = ids[0], ids[1:]
			} else {
				m.ToolCallID = as(m.ToolCallID)
			}
		case len(m.ToolCalls) > 0:
			m.ToolCalls = slices.Clone(m.ToolCalls)
			clear(waiting)
			for j := range m.ToolCalls {
				c := &m.ToolCalls[j]
				was := c.ID
				c.ID = unused(used, as(was))
				waiting[was] = append(waiting[was], c.ID)
			}
		}
	}
	return out
}

// unused returns an id, with a number if it is in use, and marks what it returns as used.
func unused(used map[string]bool, id string) string {
	free := id
	for n := 2; used[free]; n++ {
		free = id + "_" + strconv.Itoa(n)
	}
	used[free] = true
	return free
}
