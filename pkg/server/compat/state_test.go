// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A request of a thread is refused before anything is sent, whatever the Provider, with what makes Anthropic's SDKs send the whole
// conversation instead.
func TestThreads(t *testing.T) {
	t.Parallel()
	const refusal = `"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}}}`
	for _, op := range []operation{opMessages, opCount} {
		for _, kind := range []v1alpha1.ProviderType{v1alpha1.ProviderAnthropic, v1alpha1.ProviderOpenAI} {
			l := newLoop(t, op, kind)
			for thread, messages := range map[string]string{
				`{"type":"create"}`: `[{"role":"user","content":"h"}]`, `{"type":"continue","previous_message_id":"msg_1"}`: `[]`, `"x"`: `[{"role":"user","content":"h"}]`,
			} {
				answer, got := l.post(t, fmt.Sprintf(`{"model":"m","max_tokens":9,"thread":%s,"messages":%s}`, thread, messages))
				if answer.Code != http.StatusBadRequest || len(got) > 0 || len(l.ended) > 0 || !strings.HasPrefix(answer.Body.String(), `{"type":"error","error":{"type":"invalid_request_error"`) ||
					!strings.HasSuffix(answer.Body.String(), refusal) {
					t.Errorf("%s at %s, %s: %d %s, after %d requests to the vendor", op, kind, thread, answer.Code, answer.Body, len(got))
				}
			}
		}
	}
}

// A container that an earlier request began is nobody's to go on with. The vendor makes new ones.
func TestContainers(t *testing.T) {
	t.Parallel()
	const message, response = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"h"}],"container":%s}`, `{"model":"m","input":"h","tools":[{"type":"computer","environment":"browser"},%s]}`
	for _, tc := range []struct {
		op      operation
		body    string
		refused string
	}{
		{opMessages, fmt.Sprintf(message, `"c1"`), `"message":"container: `},
		{opMessages, fmt.Sprintf(message, `{"id":"c1"}`), `"message":"container: `},
		{opMessages, fmt.Sprintf(message, `{"id":null,"skills":[]}`), ""},
		{opMessages, fmt.Sprintf(message, `null`), ""},
		{opResponses, fmt.Sprintf(response, `{"type":"code_interpreter","container":"c1"}`), `"param":"tools"`},
		{opResponses, fmt.Sprintf(response, `{"type":"shell","environment":{"type":"container_reference","container_id":"c1"}}`), `"param":"tools"`},
		{opResponses, fmt.Sprintf(response, `{"type":"code_interpreter","container":{"type":"auto"}}`), ""},
	} {
		kind := v1alpha1.ProviderOpenAI
		if tc.op == opMessages {
			kind = v1alpha1.ProviderAnthropic
		}
		l := newLoop(t, tc.op, kind)
		l.answer = says(http.StatusOK, `{"type":"message","content":[],"output":[]}`)
		answer, got := l.post(t, tc.body)
		if refused := tc.refused != ""; refused != (answer.Code == http.StatusBadRequest) || refused != (len(got) == 0) || !strings.Contains(answer.Body.String(), tc.refused) {
			t.Errorf("%s: %d %s, after %d requests to the vendor", tc.body, answer.Code, answer.Body, len(got))
		}
	}
}
