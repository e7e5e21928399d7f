// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
)

// Each row of the table can be read, stands alone, and has a fate at each protocol; what is not carried has no equivalent, and says why.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, api := range APIs() {
		seen := map[string]bool{}
		for _, r := range Table(api) {
			for rest := strings.TrimPrefix(r.Path, anywhere); rest != ""; {
				part := segment.FindString(rest)
				if part == "" {
					t.Fatalf("%s: %s: cannot be read from %q", api, r.Path, rest)
				}
				rest = rest[len(part):]
			}
			if seen[r.Path] {
				t.Errorf("%s: %s occurs twice", api, r.Path)
			}
			seen[r.Path] = true
			if r.Default != "" && !json.Valid([]byte(r.Default)) {
				t.Errorf("%s: %s has the default %s", api, r.Path, r.Default)
			}
			for _, c := range []Cell{r.OpenAI, r.Anthropic} {
				if c.Fate != Carried && (c.As != "" || r.Why == "") {
					t.Errorf("%s: %s is %s as %q, because %q", api, r.Path, c.Fate, c.As, r.Why)
				}
			}
		}
	}
}

// One request goes through every rule: absent, carried, left out and refused.
func TestReduce(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"model":"m", "n":1 ,"seed":null,"user":"u","stop":[ ],"logit_bias":{}}`:                                        `{"model":"m","stop":[ ]} user`,
		`{"top_p":1.0,"temperature":1e0}`:                                                                                `{"temperature":1e0} `,
		`{"messages":[{"role":"user","content":"a","name":"b"},{"role":"user","content":[{"type":"text","text":"<"}]}]}`: `{"messages":[{"content":"a","role":"user"},{"content":[{"text":"<","type":"text"}],"role":"user"}]} messages[].name`,
		`{"messages":[{"role":"assistant","content":[{"type":"thinking","x":1},{"type":"text","text":"a"}]}]}`:           `{"messages":[{"content":[{"text":"a","type":"text"}],"role":"assistant"}]} messages[].content[thinking]`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{"a":1,"a":2}}},{"type":"x y"}]}`:              `{"tools":[{"function":{"name":"f","parameters":{"a":1,"a":2}},"type":"function"}]} tools[*]`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"arguments":"{}"},"cache_control":{}}]}]}`: `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"},"id":"1"}]}]} messages[].tool_calls[].cache_control`,
		`{"tools":[null]}`:                                              `tools[]: an element that is null`,
		`{"user":"","metadata":[]}`:                                     `{} `,
		`{"messages":{"role":"user"},"stream_options":1}`:               `{"messages":{"role":"user"},"stream_options":1} `,
		`{"Model":"m"}`:                                                 `Model`,
		`{"seed":1}`:                                                    `seed`,
		`{"messages":[{"content":[{"type":"file"}]}]}`:                  `messages[].content[file]`,
		`{"messages":[{"content":[{"type":1}]}]}`:                       `messages[].content[*]`,
		`{"messages":[{"content":[{"text":"a"}]}]}`:                     `messages[].content[]`,
		`{"messages":[{"role":"user","role":"tool"}]}`:                  `messages[]: a member that occurs twice`,
		`{"model":"m","model":"n"}`:                                     `: a member that occurs twice`,
		`{"tools":[{"type":"function","function":{"name":"f","x":1}}]}`: `tools[function].function.x`,
	} {
		got, err := Reduce(Chat, []byte(given), llm.ProtocolAnthropic)
		said := string(got.Body) + " " + strings.Join(got.Left, " ")
		if refused, ok := IsRefused(err); ok {
			said = refused.Error()
		} else if err != nil {
			t.Errorf("%s: %v", given, err)
		}
		if said != want {
			t.Errorf("%s:\n%s, want\n%s", given, said, want)
		}
	}
}
