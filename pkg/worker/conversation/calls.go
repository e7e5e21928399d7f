// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/acp"
)

// calls are the tool calls of the agent that have not ended, and what was decided about them.
//
// The start of a call is recorded when the agent says that it makes the call, when the call was permitted, or at the latest when it
// ends; an announcement alone is none, because agents announce calls before they ask. The start of a gated call is recorded only once
// people have approved it, and stored before the agent is told so. If an agent began a call and then had to wait for people, because
// only a policy demands that, its record ends and another one begins.
type calls struct {
	mu    sync.Mutex
	open  map[string]*call
	count int
}

// call is one of them.
type call struct {
	// Call is how the agent last described it, and name is how its events call it.
	*acp.Call
	name        string
	seen, began time.Time
	// announced is set if the agent has reported it, and not only asked for it.
	announced bool
	// deciding is how many requests for its permission are undecided. permitted or refusal is the last decision: permitted is how the
	// agent described the call when it asked.
	deciding  int
	permitted *acp.Call
	refusal   *tool.Error
	// begun is set if its start is recorded, with approvalID if people approved it.
	begun      bool
	approvalID string
	// accepted are the digests of the arguments that it may report: those that were decided on, and those of before.
	accepted map[string]bool
	// written are the files that the worker has written for it since people approved it.
	written map[string]bool
	// starting is set while its start is being stored. Its end is recorded after that.
	starting bool
}

func (t *Talk) newCall(c *acp.Call) *call {
	return &call{Call: c, name: c.Name(), seen: t.Clock.Now(), accepted: map[string]bool{}}
}

// changed reports whether the agent reports other arguments than it may.
func (k *call) changed() bool {
	b := bind(k.Call)
	return b.note == "" && !k.accepted[b.digest]
}

// find returns a call as it is described now. The caller holds mu.
func (t *Talk) find(c *acp.Call) *call {
	k := t.open[c.ID]
	if k == nil {
		k = t.newCall(c)
		t.open[c.ID] = k
	}
	k.Call = c
	return k
}

// called takes a call that the agent reports.
func (t *Talk) called(c *acp.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.find(c)
	if !k.announced {
		k.announced = true
		t.count++
		t.Log.Line("%s: %s", c.Name(), c.Title)
	}
	if k.begun || k.deciding > 0 || k.refusal != nil {
		return
	}
	if k.permitted != nil || c.Running && !t.rules.gates(c) {
		t.begin(k, map[string]any{})
	}
}

// ended takes a call that the agent reports to have ended.
func (t *Talk) ended(c *acp.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.find(c); !k.starting {
		t.close(k)
	}
}

// close records the end of a call, and its start if that is not recorded. The caller holds mu.
func (t *Talk) close(k *call) {
	delete(t.open, k.ID)
	content := map[string]any{}
	if !k.begun {
		if k.Failed && (k.deciding > 0 || toldElsewhere(k.refusal)) {
			return
		}
		if !k.Failed && k.permitted == nil && (k.refusal != nil || k.deciding > 0 || t.rules.gates(k.Call)) {
			content["withoutPermission"] = true
		}
		began := k.seen
		t.begin(k, content)
		k.began = began
	} else if !k.Failed && k.refusal != nil {
		content["withoutPermission"] = true
	}
	if content["withoutPermission"] != nil {
		t.Log.Line("%s: the coding agent made this call without permission", k.name)
	}
	if len(k.Diffs) > 0 {
		content["changedFiles"] = len(k.Diffs)
	}
	if k.approvalID != "" && k.changed() {
		content["argumentsChanged"] = true
		t.Log.Line("%s: the coding agent reports other arguments than those that were approved", k.name)
	}
	failure := tool.ErrorType("")
	if k.Failed {
		failure = tool.TypeUnavailable
		if k.refusal != nil {
			failure = k.refusal.Type
		}
	}
	t.end(k, failure, content)
}

// toldElsewhere reports whether the stream says without an event of the call why it was not made.
func toldElsewhere(e *tool.Error) bool {
	if e == nil {
		return false
	}
	switch e.Type {
	case tool.TypePolicyDenied, tool.TypeApprovalDeclined, tool.TypeApprovalExpired, tool.TypeApprovalCancelled, tool.TypeCancelled:
		return true
	}
	return false
}

// closeAll records the ends of the calls that have none when the agent has ended.
func (t *Talk) closeAll(stopped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range slices.SortedFunc(maps.Values(t.open), func(a, b *call) int { return cmp.Or(a.seen.Compare(b.seen), cmp.Compare(a.ID, b.ID)) }) {
		failure := tool.TypeOutcomeUnknown
		if stopped {
			failure = tool.TypeCancelled
		}
		if !k.begun {
			if !k.announced || toldElsewhere(k.refusal) {
				continue
			}
			if k.refusal != nil {
				failure = k.refusal.Type
			}
			t.begin(k, map[string]any{})
		}
		t.end(k, failure, map[string]any{})
	}
	clear(t.open)
}

// begin records the start of a call. The caller holds mu.
func (t *Talk) begin(k *call, content map[string]any) {
	t.tell(k, t.start(k, k.Name(), maps.Clone(content)))
}

// tell records an event of a call. What became of an approved one is never left out. The caller holds mu.
func (t *Talk) tell(k *call, e *v1alpha1.ExecutionEvent) {
	if k.approvalID != "" {
		t.Recorder.Record(e)
		return
	}
	t.Record(e)
}

// start notes that a call begins, and returns the event of that. The caller holds mu.
func (t *Talk) start(k *call, name string, content map[string]any) *v1alpha1.ExecutionEvent {
	k.begun, k.began, k.name = true, t.Clock.Now(), name
	content["argumentBytes"] = k.ArgumentBytes
	severity := v1alpha1.SeverityInfo
	if content["withoutPermission"] != nil {
		severity = v1alpha1.SeverityWarning
	}
	return t.event(v1alpha1.EventToolCallStarted, severity, k, "calling "+k.name, content)
}

// end records the end of a call that has begun. failure is empty if it was successful. The caller holds mu.
func (t *Talk) end(k *call, failure tool.ErrorType, content map[string]any) {
	content["resultLength"], content["durationMs"] = k.ResultBytes, t.Clock.Since(k.began).Milliseconds()
	kind, severity, text := v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, " completed"
	if failure != "" {
		content["errorType"] = failure
		kind, severity, text = v1alpha1.EventToolCallFailed, v1alpha1.SeverityWarning, " failed: "+string(failure)
	}
	switch failure {
	case tool.TypeOutcomeUnknown:
		text = " may have been carried out: its outcome is unknown"
	case tool.TypeCancelled:
		text = " was stopped"
	case tool.TypeApprovalRequired:
		severity, text = v1alpha1.SeverityInfo, " is held back: it needs an approval"
	}
	if content["withoutPermission"] != nil || content["argumentsChanged"] != nil {
		severity = v1alpha1.SeverityWarning
	}
	t.tell(k, t.event(kind, severity, k, k.name+text, content))
}

// event makes an event of a call. Titles are not in it, because agents put arguments there.
func (t *Talk) event(kind v1alpha1.EventType, severity v1alpha1.EventSeverity, k *call, summary string, content map[string]any) *v1alpha1.ExecutionEvent {
	content["toolName"], content["toolCallID"], content["kind"] = k.name, k.ID, k.Kind
	if len(k.Paths) > 0 {
		content["files"] = len(k.Paths)
	}
	if k.approvalID != "" {
		content["approvalID"] = k.approvalID
	}
	e := event.New(kind, severity, "", summary, content)
	e.ToolName, e.ToolCallID, e.AgentName = k.name, k.ID, t.agent
	return e
}
