// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/usage"
)

// sends returns what a vendor sends with any status and type.
func sends(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// asking returns the members of a short request.
func asking(op operation) string {
	if op == opResponses {
		return helloItem
	}
	return hello + `,"max_tokens":99`
}

// What comes with a success status and is no answer is 502 in the form of the API, also in place of a stream, whether the request was
// passed on or translated. It may have used tokens, and how many is unknown.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	const whole, events = "application/json", "text/event-stream"
	for name, tc := range map[string]struct {
		code       int
		kind, body string
	}{
		"a page":                         {200, "text/html", "<!doctype html><title>Log in</title>"},
		"a page that is called JSON":     {200, whole, "<html>"},
		"a page that is called a stream": {200, events, "<html>"},
		"an error":                       {200, whole, `{"error":{"message":"boom","type":"server_error"}}`},
		"an error that is a text":        {200, whole, `{"error":"boom"}`},
		"null":                           {200, whole, "null"},
		"nothing":                        {200, whole, ""},
		"no content":                     {204, whole, ""},
		"nothing, accepted":              {202, whole, ""},
		"white space":                    {200, whole, "\n \n"},
		"a list":                         {200, whole, "[]"},
		"no JSON":                        {200, "text/plain", "upstream connect error"},
		"cut JSON":                       {200, whole, `{"choices":[{"mess`},
		"no choice":                      {200, whole, `{"choices":[ ` + "\n" + ` ]}`},
		"JSON of something else":         {200, whole, `{"status":"ok"}`},
		"JSON of something else, 201":    {201, whole, `{"id":"job_1"}`},
		"an empty stream":                {200, events, ""},
		"a stream of comments":           {200, events, ": waiting\n\n"},
		"a stream of its end":            {200, events, "data: [DONE]\n\n"},
		"a stream of an error":           {200, events, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\n\n"},
		"a stream of an error, later":    {200, events, ": waiting\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"boom\"}}\n\n"},
		"a stream of null":               {200, events, "data: null\n\n"},
	} {
		for _, op := range []operation{opChat, opResponses, opMessages} {
			for _, kind := range []v1alpha1.ProviderType{v1alpha1.ProviderOpenAI, v1alpha1.ProviderAnthropic} {
				for _, streamed := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s at %s, stream %v", name, op, kind, streamed), func(t *testing.T) {
						t.Parallel()
						l := newLoop(t, op, kind)
						l.answer = sends(tc.code, tc.kind, tc.body)
						answer, _ := l.post(t, fmt.Sprintf(`{"model":"m","stream":%v,%s}`, streamed, asking(op)))
						form := `{"error":{"message":"`
						if op == opMessages {
							form = `{"type":"error","error":{"type":"api_error","message":"`
						}
						if answer.Code != http.StatusBadGateway || !strings.HasPrefix(answer.Body.String(), form) {
							t.Errorf("%d %s", answer.Code, answer.Body)
						}
						if len(l.ended) == 0 {
							t.Fatal("nothing was sent")
						}
						if e := <-l.ended; e.Refused || e.Status != usage.StatusFailed || e.Usage != (llm.Usage{}) || len(l.ended) > 0 {
							t.Errorf("the end says %+v", e)
						}
					})
				}
			}
		}
	}
}

// An answer is one whatever its status and the name of its type say.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const stream = `data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for name, answer := range map[string]http.HandlerFunc{
		"201": says(http.StatusCreated, wholeChat), "202": says(http.StatusAccepted, wholeChat), "a mark of the order of bytes": says(200, "\xef\xbb\xbf"+wholeChat),
		"a stream that is called a text": sends(200, "text/plain", stream), "a whole that is called a stream": sends(200, "text/event-stream", wholeChat),
		"comments before it": sends(200, "text/event-stream", strings.Repeat(": waiting\n\n", 100)+stream), "blank lines before it": sends(200, "text/plain", strings.Repeat("\n", 4000)+stream),
		"a stream, 201": sends(201, "text/event-stream", stream),
	} {
		for _, op := range []operation{opChat, opMessages} {
			l := newLoop(t, op, v1alpha1.ProviderOpenAI)
			l.answer = answer
			got, _ := l.post(t, `{"model":"m","max_tokens":99,"stream":true,`+hello+`}`)
			if got.Code/100 != 2 || !strings.Contains(got.Body.String(), "Hello.") || strings.Contains(got.Body.String(), "error") {
				t.Errorf("%s for %s: %d %s", name, op, got.Code, got.Body)
			}
			if e := <-l.ended; e.Status != usage.StatusCompleted {
				t.Errorf("%s for %s: the end says %+v", name, op, e)
			}
		}
	}
}

// A response whose stream breaks off ends with the response that has failed, or with an error that has a number if there is no response.
func TestFailedResponses(t *testing.T) {
	t.Parallel()
	const created, delta = `data: {"type":"response.created","response":{"id":"r1","status":"in_progress","error":null,"output":[],"usage":null},"sequence_number":0}` + "\n\n",
		`data: {"type":"response.output_text.delta","delta":"One","sequence_number":7}` + "\n\n"
	const broke = `"message":"Provider \"default\": the answer broke off"`
	for name, tc := range map[string]struct{ sent, ends string }{
		"created":     {created + delta, `event: response.failed` + "\n" + `data: {"type":"response.failed","response":{"id":"r1","status":"failed","error":{"code":"server_error",` + broke + `},"output":[],"usage":null},"sequence_number":8}` + "\n\n"},
		"not created": {delta, `event: error` + "\n" + `data: {"type":"error","code":"server_error",` + broke + `,"param":null,"sequence_number":8}` + "\n\n"},
	} {
		for _, aborted := range []bool{false, true} {
			l := newLoop(t, opResponses, v1alpha1.ProviderOpenAI)
			l.answer = func(w http.ResponseWriter, r *http.Request) {
				sends(200, "text/event-stream", tc.sent+"data: {\"type\":\"resp")(w, r)
				_ = http.NewResponseController(w).Flush()
				if aborted {
					panic(http.ErrAbortHandler)
				}
			}
			answer, _ := l.post(t, `{"model":"m","stream":true,"input":"a"}`)
			if answer.Code != http.StatusOK || answer.Body.String() != tc.sent+tc.ends {
				t.Errorf("%s, aborted %v: %d %s\nwant %s", name, aborted, answer.Code, answer.Body, tc.ends)
			}
			if e := <-l.ended; e.Status != usage.StatusFailed {
				t.Errorf("%s: the end says %+v", name, e)
			}
		}
	}
	l := newLoop(t, opResponses, v1alpha1.ProviderOpenAI)
	const said = created + `data: {"type":"response.failed","response":{"id":"r1","status":"failed","error":{"code":"x"}},"sequence_number":1}` + "\n\n"
	l.answer = sends(200, "text/event-stream", said)
	if answer, _ := l.post(t, `{"model":"m","stream":true,"input":"a"}`); answer.Body.String() != said {
		t.Errorf("what the vendor says itself: %s", answer.Body)
	}
}
