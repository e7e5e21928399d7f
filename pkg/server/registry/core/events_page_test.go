// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/test/kit"
)

// TestPagesOfLargeEvents: a page of large events ends before 16 MiB and says where to go on, and a list without a limit that would
// take more than 64 MiB is refused, with what to do.
func TestPagesOfLargeEvents(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const events, atOnce, text = 2200, 200, 30 << 10
	s := start(t)
	task := s.mustTask("large", `{type: container}`)
	content, err := json.Marshal(map[string]string{"text": strings.Repeat("some words of a log\n", text/20)})
	if err != nil {
		t.Fatal(err)
	}
	for range events / atOnce {
		var page []*v1alpha1.ExecutionEvent // to the log itself, because a request would be looked through for secrets
		for range atOnce {
			e := ev(v1alpha1.EventModelMessage)
			e.Content = &apiextensionsv1.JSON{Raw: content}
			page = append(page, e)
		}
		if _, err := s.Log.Append(t.Context(), eventlog.Stream{Namespace: "default", Task: task.Name, UID: task.UID}, page); err != nil {
			t.Fatal(err)
		}
	}
	list := func(o *internalversion.ListOptions) (*v1alpha1.ExecutionEventList, error) {
		obj, err := s.Storage["executionevents"].(rest.Lister).List(s.User(), o)
		if err != nil {
			return nil, err
		}
		return obj.(*v1alpha1.ExecutionEventList), nil
	}
	if _, err := list(&internalversion.ListOptions{}); !apierrors.IsBadRequest(err) || !strings.Contains(fmt.Sprint(err), "limit: is required") {
		t.Errorf("a list without a limit: %v", err)
	}
	seen, token := int64(0), ""
	for {
		page, err := list(&internalversion.ListOptions{Limit: events, Continue: token})
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for i := range page.Items {
			if seen++; page.Items[i].Seq != seen {
				t.Fatalf("event %d has the sequence %d", seen, page.Items[i].Seq)
			}
			bytes += len(page.Items[i].Content.Raw)
		}
		if bytes > 16<<20 || len(page.Items) < 400 && page.Continue != "" {
			t.Errorf("a page of %d events with %d bytes", len(page.Items), bytes)
		}
		if token = page.Continue; token == "" {
			break
		}
	}
	if seen != events {
		t.Errorf("%d events in all pages, want %d", seen, events)
	}
}
