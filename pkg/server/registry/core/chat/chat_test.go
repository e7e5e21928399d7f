// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
)

func TestAccepts(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"text/event-stream": true, "application/json, text/event-stream;q=0.5": true, "*/*": false, "": false, "text/event-streams": false,
	} {
		req := &http.Request{Header: http.Header{"Accept": {header}}}
		if accepts(req, sse.ContentType) != want {
			t.Errorf("Accept: %q", header)
		}
	}
}

// A server without chats says so, and its configuration has one name.
func TestConfigWithoutService(t *testing.T) {
	t.Parallel()
	c := &config{New(Options{})}
	got, err := c.Get(t.Context(), "default", nil)
	if err != nil || got.(*v1alpha1.ChatConfig).Enabled {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Get(t.Context(), "other", nil); !apierrors.IsNotFound(err) {
		t.Errorf("another name: %v", err)
	}
}
