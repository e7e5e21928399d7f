// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"fmt"
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
