// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// answered is what of a response the tests look at.
type answered struct {
	Status            string                   `json:"status"`
	IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
	Output            []struct {
		ID, Type, Status, Arguments string
		CallID                      string `json:"call_id"`
		Content                     []struct{ Text string }
	} `json:"output"`
	Usage *struct {
		OutputTokens int64 `json:"output_tokens"`
	} `json:"usage"`
}

// say returns the items of a response in a line.
func (a *answered) say() string {
	out := a.Status
	if a.IncompleteDetails != nil {
		out += " " + a.IncompleteDetails.Reason
	}
	for _, item := range a.Output {
		out += fmt.Sprintf("; %s %s %s%s", item.Type, item.Status, item.CallID, item.Arguments)
		for _, c := range item.Content {
			out += c.Text
		}
	}
	return out
}

// However an answer ends, a response says so, whole and as a stream. The events of a stream are numbered, and those of an item have
// its place in the output. What they add up to is the response at the end.
func TestEndsOfResponses(t *testing.T) {
	t.Parallel()
	const (
		text = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One "}}|{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"two"}}`
		call = `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"%[1]d","name":"f","input":{}}}|{"type":"content_block_delta","index":%[1]d,"delta":{"type":"input_json_delta","partial_json":"{\"n\":%[1]d}"}}|{"type":"content_block_stop","index":%[1]d}`
		end  = `{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":7}}|{"type":"message_stop"}`
	)
	for name, tc := range map[string]struct{ events, want string }{
		"a text":      {text + "|" + fmt.Sprintf(end, "end_turn"), "completed; message completed One two"},
		"too long":    {text + "|" + fmt.Sprintf(end, "max_tokens"), "incomplete max_output_tokens; message incomplete One two"},
		"refused":     {text + "|" + fmt.Sprintf(end, "refusal"), "incomplete content_filter; message incomplete One two"},
		"two calls":   {text + "|" + fmt.Sprintf(call, 1) + "|" + fmt.Sprintf(call, 2) + "|" + fmt.Sprintf(end, "tool_use"), `completed; message completed One two; function_call completed 1{"n":1}; function_call completed 2{"n":2}`},
		"only a call": {fmt.Sprintf(call, 0) + "|" + fmt.Sprintf(end, "tool_use"), `completed; function_call completed 0{"n":0}`},
	} {
		l := newLoop(t, opResponses, v1alpha1.ProviderAnthropic)
		l.answer = stream(append([]string{`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`}, strings.Split(tc.events, "|")...)...)
		body := `{"model":"m","store":false,"stream":%v,"input":"a","tools":[{"type":"function","name":"f"}]}`
		whole, _ := l.post(t, fmt.Sprintf(body, false))
		var a answered
		if err := json.Unmarshal(whole.Body.Bytes(), &a); err != nil || whole.Code != http.StatusOK || a.say() != tc.want || a.Usage == nil || a.Usage.OutputTokens != 7 {
			t.Errorf("%s: %v, %d %s, want %s", name, err, whole.Code, whole.Body, tc.want)
		}
		streamed, _ := l.post(t, fmt.Sprintf(body, true))
		if last := followed(t, streamed.Body.String()); last == nil || last.say() != tc.want || last.Usage == nil || last.Usage.OutputTokens != 7 {
			t.Errorf("%s: %s, want %s", name, streamed.Body, tc.want)
		}
	}
}

// followed checks the events of a stream and returns the response at its end.
func followed(t *testing.T, body string) (last *answered) {
	t.Helper()
	said, ids, number := map[int]string{}, map[int]string{}, 0
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		head, data, _ := strings.Cut(event, "\ndata: ")
		var e struct {
			Type           string
			SequenceNumber int    `json:"sequence_number"`
			OutputIndex    int    `json:"output_index"`
			ItemID         string `json:"item_id"`
			Delta          string
			Item           struct{ ID string }
			Response       *answered
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v: %s", err, event)
		}
		if last != nil && last.Status != responseInProgress || head != "event: "+e.Type || e.SequenceNumber != number {
			t.Errorf("event %d: %s", number, event)
		}
		if number++; e.Response != nil {
			last = e.Response
		}
		if e.Type == "response.output_item.added" {
			ids[e.OutputIndex] = e.Item.ID
		} else if id := e.ItemID + e.Item.ID; id != "" && id != ids[e.OutputIndex] {
			t.Errorf("%s is of another item than %v", event, ids)
		}
		said[e.OutputIndex] += e.Delta
	}
	for i, item := range last.Output {
		all := item.Arguments
		for _, c := range item.Content {
			all += c.Text
		}
		if said[i] != all || ids[i] != item.ID || item.ID == "" {
			t.Errorf("item %d is %q with the id %s, and its events said %q of %s", i, all, item.ID, said[i], ids[i])
		}
	}
	if last.Status != responseFailed && len(said) != max(1, len(last.Output)) {
		t.Errorf("%d items of %v", len(last.Output), said)
	}
	return last
}

// An answer repeats the settings of its request, except long ones, of which it would be many times as long.
func TestSettingsOfResponses(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opResponses, v1alpha1.ProviderAnthropic)
	const instructions, tools = `"instructions":"%s"`, `"tools":[{"type":"function","name":"f","description":"%s"}]`
	for _, size := range []int{10, maxRepeated} {
		for _, streamed := range []bool{false, true} {
			words := strings.Repeat("x", size)
			given := []string{fmt.Sprintf(instructions, words), fmt.Sprintf(tools, words), `"max_output_tokens":99`, `"temperature":0.5`}
			answer, _ := l.post(t, fmt.Sprintf(`{"model":"m","store":false,"stream":%v,"input":"a",%s}`, streamed, strings.Join(given, ",")))
			body := answer.Body.String()
			for i, one := range given {
				if want := size < maxRepeated || i > 1; strings.Contains(body, one) != want {
					t.Errorf("%d, stream %v: repeated %v: %.20s", size, streamed, !want, one)
				}
			}
			if answer.Code != http.StatusOK || len(body) > maxRepeated {
				t.Errorf("%d, stream %v: %d with %d bytes", size, streamed, answer.Code, len(body))
			}
		}
	}
}

// A stream that breaks off ends with a response that failed and never looks complete; an answer that is not a stream is an error.
func TestCutResponses(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opResponses, v1alpha1.ProviderAnthropic)
	l.answer = stream(`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One "}}`)
	for streamed, code := range map[bool]int{true: http.StatusOK, false: http.StatusBadGateway} {
		answer, _ := l.post(t, fmt.Sprintf(`{"model":"m","store":false,"stream":%v,"input":"a"}`, streamed))
		body := answer.Body.String()
		if answer.Code != code || !strings.Contains(body, "the stream ended before the model was done") || strings.Contains(body, `"status":"completed"`) || streamed && (followed(t, body).Status != responseFailed || !strings.Contains(body, "event: response.failed")) {
			t.Errorf("stream %v: %d %s", streamed, answer.Code, body)
		}
	}
}
