// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// Recording makes what is recorded beside the events of one run. It gives each message, and each list of tools, a number when it
// is said first, and sends it with that event; afterwards the number is enough. So what is sent grows with what is said, and not with
// what the model is asked. It is for one run in one process, and not safe for concurrent use.
type Recording struct {
	mode    v1alpha1.RecordingMode
	numbers map[[sha256.Size]byte]int32
	next    int32
	// sent is how many bytes of parts the event that is being made has.
	sent int
	// asked is the conversation of the last request, with its numbers.
	asked   []llm.Message
	askedAs []int32
	// offered are the tools of the last request, with their number.
	offered   []tool.Definition
	offeredAs int32
	// calls are the numbers of the answers with calls, by the id of the call.
	calls map[string]int32
	// kept are the numbers of parts that another process stored, by their digests without secrets. fresh are the parts that are new in
	// the event that is being made.
	kept  map[[sha256.Size]byte]int32
	fresh [][sha256.Size]byte
}

// NewRecording returns a Recording with the mode of the agent, which may be empty; nil for none at all.
func NewRecording(mode v1alpha1.RecordingMode) *Recording {
	if mode == v1alpha1.RecordingOff {
		return nil
	}
	return &Recording{mode: mode, numbers: map[[sha256.Size]byte]int32{}, calls: map[string]int32{}}
}

// What is sent with one event, which the server takes in one request. A conversation that a run begins with may be longer; what does not
// fit has its number, and is shown as missing.
const (
	maxSentParts = 4000
	maxSentBytes = 8 << 20
)

func (r *Recording) begin() *v1alpha1.EventRecording {
	r.sent, r.fresh = 0, nil
	return &v1alpha1.EventRecording{Mode: r.mode, First: r.next}
}

// part returns the number of a part, and adds it to what is sent if it has none.
func (r *Recording) part(to *v1alpha1.EventRecording, p v1alpha1.RecordedPart) int32 {
	raw, err := json.Marshal(p)
	if err != nil { // texts, and JSON that was parsed before
		raw = nil
	}
	sum := sha256.Sum256(raw)
	if n, known := r.numbers[sum]; known {
		return n
	}
	if n, known := r.keptAs(&p); known {
		r.numbers[sum] = n
		return n
	}
	n := r.next
	r.numbers[sum], r.next = n, n+1
	r.fresh = append(r.fresh, sum)
	if len(to.Parts) == maxSentParts || int(n-to.First) != len(to.Parts) { // numbers of what is sent follow each other
		return n
	}
	if len(raw) > event.MaxRecordedPart {
		stub := v1alpha1.RecordedPart{Bytes: int64(len(raw)), Omitted: event.PartTooLarge}
		if p.Message != nil {
			stub.Message = &v1alpha1.RecordedMessage{Role: p.Message.Role, Failed: p.Message.Failed}
		}
		p, raw = stub, nil
	}
	if r.sent += len(raw); r.sent > maxSentBytes {
		return n
	}
	to.Parts = append(to.Parts, p)
	return n
}

// Said returns a message as it is recorded.
func Said(m *llm.Message) *v1alpha1.RecordedMessage {
	out := &v1alpha1.RecordedMessage{Role: string(m.Role), Text: m.Text, ToolCallID: m.ToolCallID, Failed: m.Failed}
	if m.Opaque != nil {
		out.Thinking = m.Opaque.Thinking
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, v1alpha1.RecordedToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	for _, c := range m.Images() {
		sum := sha256.Sum256([]byte(c.Image.Data + c.Image.URL))
		out.Images = append(out.Images, v1alpha1.RecordedImage{MediaType: c.Image.MediaType, Digest: hex.EncodeToString(sum[:]), Bytes: int64(len(c.Image.Data)) / 4 * 3})
	}
	return out
}

// Offered returns tools as they are recorded.
func Offered(tools []tool.Definition) []v1alpha1.RecordedTool {
	var list []v1alpha1.RecordedTool
	for _, t := range tools {
		out := v1alpha1.RecordedTool{Name: t.Name, Description: t.Description}
		if json.Valid(t.Parameters) {
			out.Parameters = &apiextensionsv1.JSON{Raw: t.Parameters}
		}
		list = append(list, out)
	}
	return list
}

// Parameters returns the parameters of a request as they are recorded.
func Parameters(req *llm.Request) *v1alpha1.RecordedParameters {
	p := &v1alpha1.RecordedParameters{MaxTokens: req.MaxTokens, Format: string(req.Format)}
	if req.Temperature != nil {
		p.Temperature = strconv.FormatFloat(*req.Temperature, 'g', -1, 64)
	}
	return p
}

func (r *Recording) message(to *v1alpha1.EventRecording, m *llm.Message) int32 {
	n := r.part(to, v1alpha1.RecordedPart{Message: Said(m)})
	for _, c := range m.ToolCalls {
		r.calls[c.ID] = n
	}
	return n
}

// request returns what is recorded of a request to the model. It is nil for a nil Recording, as the results of the other methods are.
func (r *Recording) request(req *llm.Request) *v1alpha1.EventRecording {
	if r == nil {
		return nil
	}
	to := r.begin()
	as := make([]int32, len(req.Messages))
	for i := range req.Messages {
		if m := &req.Messages[i]; i < len(r.asked) && same(m, &r.asked[i]) {
			as[i] = r.askedAs[i]
		} else {
			as[i] = r.message(to, m)
		}
	}
	r.asked, r.askedAs = slices.Clone(req.Messages), as
	to.Conversation = ranges(as)
	if len(req.Tools) > 0 {
		if !slices.EqualFunc(req.Tools, r.offered, sameTool) {
			r.offered, r.offeredAs = req.Tools, r.part(to, v1alpha1.RecordedPart{Tools: Offered(req.Tools)})
		}
		to.Tools = new(r.offeredAs)
	}
	to.Parameters = Parameters(req)
	return to
}

// answer returns what is recorded of an answer of the model.
func (r *Recording) answer(resp *llm.Response) *v1alpha1.EventRecording {
	if r == nil {
		return nil
	}
	to, m := r.begin(), resp.Message()
	to.Message = new(r.message(to, &m))
	return to
}

// call returns what is recorded of a call that begins: the answer that asks for it has its arguments.
func (r *Recording) call(c llm.ToolCall) *v1alpha1.EventRecording {
	if r == nil {
		return nil
	}
	to := r.begin()
	n, known := r.calls[c.ID]
	if !known { // of an answer before this process
		n = r.message(to, &llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{c}})
	}
	to.Message, to.ToolCallID = new(n), c.ID
	return to
}

// result returns what is recorded of the result of a call.
func (r *Recording) result(c llm.ToolCall, result tool.Result) *v1alpha1.EventRecording {
	if r == nil {
		return nil
	}
	to, m := r.begin(), resultOf(c, result)
	to.Message, to.ToolCallID = new(r.message(to, &m)), c.ID
	return to
}

// resultOf returns the message with which a call is answered.
func resultOf(c llm.ToolCall, r tool.Result) llm.Message {
	return llm.Message{Role: llm.RoleTool, ToolCallID: c.ID, Text: r.Text}
}

// same reports whether two messages are the same. Those of one conversation mostly share their texts, which makes this quick.
func same(a, b *llm.Message) bool {
	return a.Role == b.Role && a.Text == b.Text && a.ToolCallID == b.ToolCallID && a.Failed == b.Failed &&
		slices.Equal(a.ToolCalls, b.ToolCalls) && slices.EqualFunc(a.Content, b.Content, sameContent)
}

func sameContent(a, b llm.Content) bool {
	return a.Text == b.Text && (a.Image == nil) == (b.Image == nil) && (a.Image == nil || *a.Image == *b.Image)
}

func sameTool(a, b tool.Definition) bool {
	return a.Name == b.Name && a.Description == b.Description && string(a.Parameters) == string(b.Parameters)
}

// ranges returns numbers as ranges of numbers that follow each other.
func ranges(numbers []int32) (list []v1alpha1.RecordedRange) {
	for _, n := range numbers {
		if last := len(list) - 1; last >= 0 && list[last].To+1 == n {
			list[last].To = n
		} else {
			list = append(list, v1alpha1.RecordedRange{From: n, To: n})
		}
	}
	return list
}
