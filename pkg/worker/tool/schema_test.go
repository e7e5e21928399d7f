// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestDrafts: schemas of every draft are checked against the rules of their draft, also when several are compiled at once.
func TestDrafts(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, draft := range []string{
		"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema",
	} {
		for range 4 {
			all.Go(func() {
				s, err := compile(json.RawMessage(fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"n":{"type":"integer","minimum":3}}}`, draft)))
				if err != nil {
					t.Errorf("%s: %v", draft, err)
					return
				}
				if s.check(json.RawMessage(`{"n":3}`)) != nil || s.check(json.RawMessage(`{"n":2}`)) == nil {
					t.Errorf("%s: the minimum is not applied", draft)
				}
				if _, err := compile(json.RawMessage(fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"n":{"minimum":"3"}}}`, draft))); err == nil {
					t.Errorf("%s: a minimum that is a text is accepted", draft)
				}
				if _, err := compile(json.RawMessage(fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"n":{"type":"strnig"}}}`, draft))); err == nil {
					t.Errorf("%s: an unknown type is accepted", draft)
				}
			})
		}
	}
}

// TestSchemasAreKept: a schema is compiled once, and a long one each time.
func TestSchemasAreKept(t *testing.T) {
	of := func(description string) *schema {
		s, err := compile(json.RawMessage(fmt.Sprintf(`{"type":"object","description":%q}`, description)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	kept, again := of("kept"), of("kept")
	if kept != again || kept == of("another") {
		t.Error("one text must be one schema, and two texts two")
	}
	text := strings.Repeat("a", maxKept)
	if long, again := of(text), of(text); long == again {
		t.Error("a long schema is kept")
	}
}

// BenchmarkCatalogue makes the catalogue of a request with 30 tools.
func BenchmarkCatalogue(b *testing.B) {
	type arguments struct {
		Name  string   `json:"name" desc:"The name of the task" minLength:"1"`
		State string   `json:"state,omitempty" desc:"Only tasks in this state" enum:"Pending,Running,Succeeded"`
		Limit *int64   `json:"limit,omitempty" desc:"How many" minimum:"1" maximum:"100"`
		Tags  []string `json:"tags,omitempty" desc:"Labels of it"`
	}
	for b.Loop() {
		var tools []Tool
		for i := range 30 {
			tools = append(tools, New(fmt.Sprintf("tool_%d", i), "does something", func(context.Context, arguments) (any, error) { return nil, nil }))
		}
		if _, err := NewCatalogue(tools...); err != nil {
			b.Fatal(err)
		}
	}
}
