// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// What decodePosted decodes is what resource.DecodeBody decodes, and it leaves everything unusual to it.
func TestDecodePosted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	const version = `"apiVersion":"core.platform.ai/v1alpha1"`
	for name, tc := range map[string]struct {
		body, media, query string
		once               bool
	}{
		"event":               {body: `{` + version + `,"kind":"ExecutionEvent","type":"ModelMessage","content":{"a": [1, 2.50]},"inputTokens":3}`, once: true},
		"without kind":        {body: `{"type":"ModelMessage","summary":"\u00e9"}`, media: "application/json; charset=utf-8", once: true},
		"list":                {body: `{"kind":"ExecutionEventList","metadata":{"resourceVersion":"7"},"items":[{"type":"a"},{"kind":"ExecutionEvent","type":"b","metadata":{"name":"c"}}]}`, once: true},
		"items of no list":    {body: `{"type":"a","items":[{"type":"b"}]}`, once: true},
		"names in other case": {body: `{"Type":"a","SUMMARY":"b","summary":"c","kind":"ExecutionEvent"}`, once: true},
		"twice":               {body: `{"type":"a","type":"b"}`, once: true},
		"list with a type":    {body: `{"kind":"ExecutionEventList","type":"a","items":[]}`, once: true},
		"wrong items":         {body: `{"type":"a","items":3}`},
		"other kind":          {body: `{` + version + `,"kind":"Task"}`},
		"other version":       {body: `{"apiVersion":"core.platform.ai/v9","kind":"ExecutionEvent"}`},
		"mistake":             {body: `{"type":7}`},
		"no JSON":             {body: `{"type":`},
		"two values":          {body: `{"type":"a"}{"type":"b"}`},
		"YAML":                {body: "type: a\n", media: runtime.ContentTypeYAML},
		"protobuf":            {body: "k8s", media: runtime.ContentTypeProtobuf},
		"strict":              {body: `{"type":"a","typo":1}`, query: "fieldValidation=Strict"},
	} {
		t.Run(name, func(t *testing.T) {
			req := &http.Request{Header: http.Header{}, URL: &url.URL{RawQuery: tc.query}}
			if tc.media != "" {
				req.Header.Set("Content-Type", tc.media)
			}
			want, err := resource.DecodeBody(scheme, req, []byte(tc.body), v1alpha1.SchemeGroupVersion.WithKind("ExecutionEvent"))
			got := decodePosted(req, []byte(tc.body))
			if (got != nil) != tc.once {
				t.Fatalf("decoded in one pass: %v, want %v", got != nil, tc.once)
			}
			if got != nil {
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("error %v, difference:\n%s", err, diff)
				}
			}
		})
	}
}

func TestPrefersMinimal(t *testing.T) {
	for header, want := range map[string]bool{
		"return=minimal": true, "respond-async, Return = Minimal": true, "return=representation": false, "": false,
	} {
		req := &http.Request{Header: http.Header{"Prefer": strings.Split(header, "|")}}
		if got := resource.PrefersMinimal(req); got != want {
			t.Errorf("Prefer: %s: %v, want %v", header, got, want)
		}
	}
}
