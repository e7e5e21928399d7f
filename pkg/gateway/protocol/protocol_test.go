// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"
)

// TestUnmarshal: what two readers could understand differently is refused.
func TestUnmarshal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"status":"delivered","providerMessageId":"1"}`: "",
		`{"status":"delivered"} {}`:                      "something follows",
		`{"status":"delivered","status":"delivered"}`:    "twice",
		`{"Status":"delivered"}`:                         "unknown field",
		`{"status":"delivered","extra":1}`:               "unknown field",
		`[]`:                                             "not a JSON object",
		`{"status":`:                                     "not JSON",
		"{\"status\":\"\xff\"}":                          "UTF-8",
		`{"status":` + strings.Repeat("[", 100_000):      "too deep",
		`{"status":1}`:                                   "cannot unmarshal",
	} {
		var a Answer
		err := Unmarshal([]byte(text), &a)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, not %q", text, err, want)
		}
	}
}

// TestAgree: the version that both sides speak.
func TestAgree(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Capabilities{
		"v1 alone":  {ProtocolVersion: Version},
		"a range":   {ProtocolVersion: "platform.gateway.v2", ProtocolVersions: &VersionRange{1, 2}},
		"!v2 alone": {ProtocolVersion: "platform.gateway.v2"},
		"!later":    {ProtocolVersion: Version, ProtocolVersions: &VersionRange{2, 3}},
		"!none":     {ProtocolVersion: Version, ProtocolVersions: &VersionRange{2, 1}},
	} {
		if got, err := c.Agree(); (err != nil) != strings.HasPrefix(want, "!") || err == nil && got != Version {
			t.Errorf("%s: %q, %v", want, got, err)
		}
	}
}

// TestEvent: each rule about an event names its member.
func TestEvent(t *testing.T) {
	t.Parallel()
	for member, change := range map[string]func(*Event){
		"":                func(*Event) {},
		"protocolVersion": func(e *Event) { e.ProtocolVersion = "platform.gateway.v2" },
		"eventType":       func(e *Event) { e.EventType = "image" },
		"externalEventId": func(e *Event) { e.ExternalEventID = " " },
		"accountId":       func(e *Event) { e.AccountID = strings.Repeat("x", MaxID+1) },
		"contextId":       func(e *Event) { e.ContextID = "a\nb" },
		"sender.id":       func(e *Event) { e.Sender.ID = "" },
		"text":            func(e *Event) { e.Text = strings.Repeat("x", MaxText+1) },
		"metadata":        func(e *Event) { e.Metadata = map[string]string{"a b": "c"} },
	} {
		e := &Event{ProtocolVersion: Version, EventType: EventText, ExternalEventID: "e", AccountID: "a", ContextID: "c", Sender: Sender{ID: "s"}, Text: "hello"}
		change(e)
		errs := e.Check()
		if (len(errs) == 0) != (member == "") || len(errs) > 0 && !strings.HasPrefix(errs[0].Error(), member+":") {
			t.Errorf("%s: %v", member, errs)
		}
	}
}
