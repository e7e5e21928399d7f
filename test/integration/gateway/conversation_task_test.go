// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/test/chatadapter"
)

// TestTaskInAConversation: a task of an editor of the same namespace that names the session of a conversation neither reads nor continues it, and
// nobody says for which sender of a gateway a task is.
func TestTaskInAConversation(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	e, _ := answered(x)
	editor := x.REST(t, "default", "editor", "platform-editor").At(x.URL)
	messages := len(x.Transcript(e.Status.SessionName, 100))
	session := `"name":"` + e.Status.SessionName + `"`
	for name, spec := range map[string]string{
		"reads":     `"sessionRef":{` + session + `}`,
		"continues": `"sessionRef":{` + session + `,"append":true}`,
		"creates":   `"sessionRef":{` + session + `,"create":true}`,
		"through":   `"sessionRef":{` + session + `,"promptIncluded":true,"throughMessageId":"` + gateway.MessageID(e.Name, v1alpha1.RoleUser) + `"}`,
		"requested": `"requestedBy":{"issuer":"platform.gateway.v1:default/x/chat/x","subject":"ada","groups":["gateway:chat"],"roles":["gateway-sender"]}`,
	} {
		a := editor.Post(api("default")+"tasks", fmt.Sprintf(
			`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},"spec":{"type":"ai","prompt":"What is the plan?","ai":{"providerRef":{"name":"model"}},%s}}`, name, spec))
		if a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body, "Forbidden: is ") {
			t.Errorf("%s: %d %.300s", name, a.Code, a.Body)
		}
	}
	if n := len(x.Transcript(e.Status.SessionName, 100)); n != messages || len(x.adapter.Said("")) != 1 {
		t.Errorf("%d messages, not %d; the chat has %q", n, messages, x.adapter.Said(""))
	}
}
