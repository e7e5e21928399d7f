// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// spellings are the normalised content keys of each lifted field, the preferred one first.
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

// nested are the normalised keys of objects in content that may also hold such fields.
var nested = map[string]bool{
	"usage": true, "tokenusage": true, "context": true,
	"prompttokensdetails": true, "inputtokensdetails": true, "inputtokendetails": true,
}

// lift sets the provider, model, stop reason and token fields from content, if they are not set, on the
// types that carry them.
func lift(e *v1alpha1.ExecutionEvent) {
	if table[e.Type].trait&model == 0 || e.Content == nil {
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

// collect notes the members of an object by normalised key, and those of the nested objects that report
// usage. If a key occurs more than once, the outer and earlier one is used.
func collect(found map[string]json.RawMessage, raw json.RawMessage, depth int) {
	if depth > 2 || !bytes.HasPrefix(raw, []byte("{")) {
		return
	}
	var inner []json.RawMessage
	members(raw, func(key []byte, value json.RawMessage) {
		var buf [maxLiftedKey]byte
		k := normalizeKey(buf[:0], key)
		if nested[string(k)] {
			inner = append(inner, value)
		}
		if !lifted[string(k)] {
			return
		}
		if _, ok := found[string(k)]; !ok {
			found[string(k)] = value
		}
	})
	for _, v := range inner {
		collect(found, v, depth+1)
	}
}

// maxLiftedKey is longer than every key in spellings, in bytes.
const maxLiftedKey = 48

// lifted is the set of all normalised keys in spellings.
var lifted = func() map[string]bool {
	all := map[string]bool{}
	for _, keys := range spellings {
		for _, k := range keys {
			all[k] = true
		}
	}
	return all
}()

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
