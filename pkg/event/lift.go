// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// spellings are the normalised content keys of each lifted field, best first.
var spellings = map[string][]string{
	"provider":          {"provider", "providername", "modelprovider"},
	"model":             {"model", "modelname", "modelid"},
	"stopReason":        {"stopreason", "finishreason"},
	"inputTokens":       {"inputtokens", "prompttokens", "inputtokencount", "prompttokencount"},
	"outputTokens":      {"outputtokens", "completiontokens", "outputtokencount", "candidatestokencount"},
	"cachedInputTokens": {"cachedinputtokens", "cachedtokens", "cachereadinputtokens", "cachedprompttokens"},
	"contextWindowUsed": {"contextwindowused", "contextused", "contexttokens"},
	"contextWindowSize": {"contextwindowsize", "contextwindow", "contextsize", "contextlimit"},
}

// nested are the normalised keys of objects in content that hold such fields too.
var nested = map[string]bool{
	"usage": true, "tokenusage": true, "context": true,
	"prompttokensdetails": true, "inputtokensdetails": true, "inputtokendetails": true,
}

// lift fills the provider, model, stop reason and token fields that are not
// set from content, on the types that carry them.
func lift(e *v1alpha1.ExecutionEvent) {
	if table[e.Type]&model == 0 || e.Content == nil {
		return
	}
	found := map[string]json.RawMessage{}
	collect(found, e.Content.Raw, 0)
	if len(found) == 0 {
		return
	}
	for _, l := range labels(e) {
		if *l.value == "" {
			*l.value = liftText(found, spellings[l.name])
		}
	}
	for _, c := range counts(e) {
		if *c.value == nil {
			*c.value = liftCount(found, spellings[c.name])
		}
	}
}

// collect notes the members of an object by normalised key, and those of the
// nested objects that report usage. Of equal keys the outer wins.
func collect(found map[string]json.RawMessage, raw json.RawMessage, depth int) {
	var members map[string]json.RawMessage
	if depth > 2 || !bytes.HasPrefix(raw, []byte("{")) || json.Unmarshal(raw, &members) != nil {
		return
	}
	var inner []json.RawMessage
	for k, v := range members {
		k = strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(k))
		if nested[k] {
			inner = append(inner, v)
		}
		if _, ok := found[k]; !ok {
			found[k] = v
		}
	}
	for _, v := range inner {
		collect(found, v, depth+1)
	}
}

func liftText(found map[string]json.RawMessage, keys []string) string {
	for _, k := range keys {
		var s string
		if raw, ok := found[k]; ok && json.Unmarshal(raw, &s) == nil && s != "" && len(s) <= MaxLabelBytes {
			return s
		}
	}
	return ""
}

func liftCount(found map[string]json.RawMessage, keys []string) *int64 {
	for _, k := range keys {
		var f float64
		raw, ok := found[k]
		if !ok || bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &f) != nil {
			continue
		}
		if f >= 0 && f <= 1<<53 && f == math.Trunc(f) {
			n := int64(f)
			return &n
		}
	}
	return nil
}
