// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"crypto/sha256"
	"encoding/json"
	"math"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
)

// Bounds of what others than the platform's own workers say. Who makes the requests of a coding agent may put anything into them.
const (
	// maxAsked is how many messages of a request are recorded, and maxRanges the ranges of their numbers. The rest is shown as one
	// message that is missing.
	maxAsked, maxRanges = 19_000, 4000
	// maxKnown is how many parts a Recording knows. Beyond it forgets them all, and they are stored again when they are said again.
	maxKnown = 1 << 16
	// maxRole bounds the role of a message, in bytes.
	maxRole = 64
	// lastNumber is the highest number of a part. After it nothing is recorded.
	lastNumber = math.MaxInt32 - 2*maxKnown
	// missing is the number of no part.
	missing = math.MaxInt32 - 1
)

// ResumeRecording returns a Recording of requests that come as they are recorded; see Asked and Answered. It goes on where another
// process ended: next is the number of the next part, and kept are the numbers of parts that are stored, by their digests.
func ResumeRecording(next int32, kept map[[sha256.Size]byte]int32) *Recording {
	r := NewRecording(v1alpha1.RecordingFull)
	r.next, r.kept = next, kept
	return r
}

// Asked returns what is recorded of a request to the model; nil if nothing can be.
func (r *Recording) Asked(mode v1alpha1.RecordingMode, messages []v1alpha1.RecordedMessage, tools []v1alpha1.RecordedTool, p *v1alpha1.RecordedParameters) *v1alpha1.EventRecording {
	to := r.resume(mode)
	if to == nil {
		return nil
	}
	numbers := make([]int32, 0, min(len(messages), maxAsked)+1)
	for i := range messages[:min(len(messages), maxAsked)] {
		numbers = append(numbers, r.said(to, &messages[i]))
	}
	if to.Conversation = ranges(numbers); len(to.Conversation) > maxRanges || len(messages) > maxAsked {
		to.Conversation = append(to.Conversation[:min(len(to.Conversation), maxRanges)], v1alpha1.RecordedRange{From: missing, To: missing})
	}
	if len(tools) > 0 {
		to.Tools = new(r.part(to, v1alpha1.RecordedPart{Tools: tools}))
	}
	to.Parameters = p
	return to
}

// Answered returns what is recorded of an answer; nil if none came.
func (r *Recording) Answered(mode v1alpha1.RecordingMode, m *v1alpha1.RecordedMessage) *v1alpha1.EventRecording {
	if m == nil {
		return nil
	}
	to := r.resume(mode)
	if to != nil {
		to.Message = new(r.said(to, m))
	}
	return to
}

// Undo forgets the parts that are new in what was returned last, because it was not stored. Their numbers are not used again.
func (r *Recording) Undo() {
	for _, sum := range r.fresh {
		delete(r.numbers, sum)
	}
	r.fresh = nil
}

func (r *Recording) resume(mode v1alpha1.RecordingMode) *v1alpha1.EventRecording {
	if r.next > lastNumber {
		return nil
	}
	if r.fresh = nil; len(r.numbers) > maxKnown {
		clear(r.numbers)
		r.kept = nil
	}
	r.mode = mode
	return r.begin()
}

func (r *Recording) said(to *v1alpha1.EventRecording, m *v1alpha1.RecordedMessage) int32 {
	m.Role = clip.Text(m.Role, maxRole/2)
	return r.part(to, v1alpha1.RecordedPart{Message: m})
}

// keptAs returns the number under which a part was stored by another process, without the secrets in it.
func (r *Recording) keptAs(p *v1alpha1.RecordedPart) (int32, bool) {
	if len(r.kept) == 0 {
		return 0, false
	}
	clean := p.DeepCopy()
	event.CleanPart(clean, new(redact.Seen))
	raw, err := json.Marshal(clean)
	if err != nil {
		return 0, false
	}
	n, known := r.kept[sha256.Sum256(raw)]
	return n, known
}
