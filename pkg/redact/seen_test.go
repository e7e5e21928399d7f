// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

const tell = "Zk4Qx7hunter2"

// TestAgain checks that a value that something identifies is removed where nothing does.
func TestAgain(t *testing.T) {
	for _, text := range []string{
		"login with " + tell + "\npassword: " + tell + "\nthen /x/" + tell + "/y",
		"https://bob:" + tell + "@example.com/ said: bad value '" + tell + "'",
		"Authorization: Bearer " + tell + "\n\nthe server answered " + tell,
		tell + tell + " token=" + tell,
	} {
		got, changed := redact.Text(text)
		if !changed || strings.Contains(got, tell) {
			t.Errorf("%q became %q", text, got)
		}
		if again, more := redact.Text(got); more {
			t.Errorf("a second time: %q became %q", got, again)
		}
	}
	for _, doc := range []string{
		`{"log":"used ` + tell + `","password":"` + tell + `","n":[1,{"` + tell + `":2}]}`,
		`[{"value":"` + tell + `","name":"API_KEY"},"` + tell + `"]`,
		`{"arguments":"{\"token\":\"` + tell + `\"}","out":"` + tell + `"}`,
	} {
		got, changed, err := redact.JSON([]byte(doc))
		if err != nil || !changed || strings.Contains(string(got), tell) {
			t.Errorf("%s became %s, %v", doc, got, err)
		}
	}
	// Ordinary words stay, even if they are someone's password.
	if got, _ := redact.Text("password=swordfish\nThe swordfish is a fish."); !strings.Contains(got, "The swordfish is") {
		t.Errorf("got %q", got)
	}
}

// TestSeen checks that what one text gives away is removed from the next ones.
func TestSeen(t *testing.T) {
	var seen redact.Seen
	if got, _ := seen.Text("nothing " + tell); got != "nothing "+tell {
		t.Errorf("before: %q", got)
	}
	if got, _ := seen.Text("export API_TOKEN=" + tell); strings.Contains(got, tell) {
		t.Errorf("got %q", got)
	}
	if got, changed := seen.Text("it printed " + tell + "."); !changed || got != "it printed [REDACTED]." {
		t.Errorf("text: %q", got)
	}
	if got, changed := seen.Output("result: " + tell); !changed || got != "result: [REDACTED]" {
		t.Errorf("output: %q", got)
	}
	if got, changed, err := seen.JSON([]byte(`{"a":["` + tell + `"]}`)); err != nil || !changed || string(got) != `{"a":["[REDACTED]"]}` {
		t.Errorf("JSON: %s, %v", got, err)
	}
	stream := redact.Stream{Seen: &seen}
	if got := stream.Write("a "+tell+"\n") + stream.Flush(true); got != "a [REDACTED]\n" {
		t.Errorf("stream: %q", got)
	}
	stream.Write("PASSWORD=Qm9" + tell + "x\n")
	stream.Flush(true)
	if got := seen.Remove("Qm9" + tell + "x"); got != redact.Marker {
		t.Errorf("from the stream: %q", got)
	}
}
