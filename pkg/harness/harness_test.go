// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
)

// TestExamples: the examples of docs/harness-v2.md are what the code makes.
func TestExamples(t *testing.T) {
	raw, err := os.ReadFile("../../docs/harness-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := harness.Digest(http.MethodPut, harness.PathDrain, 0, "op-1", []byte(`{ "drain": true }`))
	if err != nil {
		t.Fatal(err)
	}
	f := harness.Fence{Instance: "i-1", Epoch: 7, Operation: "op-1", Digest: digest}
	capability, err := f.Capability([]byte("0123456789abcdef0123456789abcdef"), time.Unix(1_900_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{digest, capability} {
		if !strings.Contains(string(raw), "\n"+want+"\n") {
			t.Errorf("docs/harness-v2.md lacks %s", want)
		}
	}
}

// TestFence: a capability is good for one fence, one key and a while.
func TestFence(t *testing.T) {
	key, now := []byte(strings.Repeat("k", 32)), time.Unix(1_800_000_000, 0)
	f := harness.Fence{Instance: "i", Epoch: 3, Generation: 2, Operation: "o", Digest: "sha256:" + strings.Repeat("a", 64)}
	good, err := f.Capability(key, now.Add(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(key, good, now); err != nil {
		t.Error(err)
	}
	h := http.Header{}
	f.Set(h)
	if read, err := harness.ReadFence(h); err != nil || read != f {
		t.Errorf("%+v, %v", read, err)
	}
	for name, other := range map[string]harness.Fence{
		"instance":   {Instance: "j", Epoch: 3, Generation: 2, Operation: "o", Digest: f.Digest},
		"epoch":      {Instance: "i", Epoch: 4, Generation: 2, Operation: "o", Digest: f.Digest},
		"generation": {Instance: "i", Epoch: 3, Generation: 1, Operation: "o", Digest: f.Digest},
		"operation":  {Instance: "i", Epoch: 3, Generation: 2, Operation: "p", Digest: f.Digest},
		"digest":     {Instance: "i", Epoch: 3, Generation: 2, Operation: "o", Digest: "sha256:" + strings.Repeat("b", 64)},
	} {
		if other.Verify(key, good, now) == nil {
			t.Errorf("it is good for another %s", name)
		}
	}
	far, err := f.Capability(key, now.Add(16*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		capability string
		at         time.Time
	}{
		"expired": {good, now.Add(6 * time.Minute)}, "far": {far, now}, "empty": {"", now}, "no MAC": {"1800000300", now}, "padded": {good + "=", now},
		"other time": {"1800000301" + good[10:], now},
	} {
		if f.Verify(key, bad.capability, bad.at) == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
	if f.Verify([]byte(strings.Repeat("l", 32)), good, now) == nil {
		t.Error("it is good for another key")
	}
}

// TestDigest: a digest is one of what is asked for, however it is written.
func TestDigest(t *testing.T) {
	one, err := harness.Digest("PUT", "/v2/drain", 0, "o", []byte(`{"a":1,"b":"é"}`))
	if err != nil {
		t.Fatal(err)
	}
	same, err := harness.Digest("PUT", "/v2/drain", 0, "o", []byte("{ \"b\": \"\\u00e9\",\n\"a\": 1 }"))
	if err != nil || same != one {
		t.Errorf("%s, %v", same, err)
	}
	seen := map[string]bool{one: true}
	for _, other := range []func() (string, error){
		func() (string, error) {
			return harness.Digest("DELETE", "/v2/drain", 0, "o", []byte(`{"a":1,"b":"é"}`))
		},
		func() (string, error) { return harness.Digest("PUT", "/v2/drain2", 0, "o", []byte(`{"a":1,"b":"é"}`)) },
		func() (string, error) { return harness.Digest("PUT", "/v2/drain", 1, "o", []byte(`{"a":1,"b":"é"}`)) },
		func() (string, error) { return harness.Digest("PUT", "/v2/drain", 0, "p", []byte(`{"a":1,"b":"é"}`)) },
		func() (string, error) { return harness.Digest("PUT", "/v2/drain", 0, "o", []byte(`{"a":2,"b":"é"}`)) },
		func() (string, error) { return harness.Digest("PUT", "/v2/drain", 0, "o", nil) },
		func() (string, error) { return harness.DigestBytes("PUT", "/v2/drain", 0, "o", [32]byte{}) },
	} {
		d, err := other()
		if err != nil || seen[d] {
			t.Errorf("%s, %v", d, err)
		}
		seen[d] = true
	}
	for _, bad := range []string{`{`, `{"a":1,"a":1}`, `"\ud800"`} {
		if d, err := harness.Digest("PUT", "/v2/drain", 0, "o", []byte(bad)); err == nil {
			t.Errorf("%q has the digest %s", bad, d)
		}
	}
}

// TestEvents: each type has its members and no others.
func TestEvents(t *testing.T) {
	for line, says := range map[string]string{
		`{"seq":1,"type":"accepted","session":"s","generation":1,"prompt":"p","leaseMillis":1}`:                 "",
		`{"seq":2,"type":"message","text":"x","messageID":"m","_meta":{"a":[1]}}`:                               "",
		`{"seq":2,"type":"callStarted","call":{"id":"c","kind":"read","arguments":{"n":12345678901234567890}}}`: "",
		`{"seq":2,"type":"planChanged","plan":[]}`:                                                              "",
		`{"seq":2,"type":"commandsChanged","commands":[]}`:                                                      "",
		`{"seq":2,"type":"contextChanged","context":{"used":0,"size":0}}`:                                       "",
		`{"seq":2,"type":"modeChanged","mode":"plan"}`:                                                          "",
		`{"seq":2,"type":"permissionSettled","permission":{"id":"p","decision":"deny"}}`:                        "",
		`{"seq":2,"type":"permissionRequested","permission":{"id":"p","call":{"id":"c"},"argumentsDigest":"sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"}}`: "",
		`{"seq":9,"type":"result","result":{"outcome":"completed","stopReason":"end_turn","usage":{"inputTokens":0}}}`:                                                                 "",
		`{"seq":9,"type":"result","result":{"outcome":"failed","reason":"AgentFailed"}}`:                                                                                               "",
		`{"type":"alive"}`: "",

		`{"seq":2,"type":"message"}`:                                           "missing or empty",
		`{"seq":2,"type":"message","text":"x","mode":"y"}`:                     "of another type",
		`{"seq":2,"type":"message","text":"x","extra":1}`:                      "unknown field",
		`{"seq":2,"type":"message","Text":"x"}`:                                "unknown field",
		`{"seq":2,"seq":3,"type":"message","text":"x"}`:                        "duplicate field",
		`{"seq":2,"type":"message","text":"x"} {}`:                             "after top-level value",
		`{"seq":2.5,"type":"message","text":"x"}`:                              "cannot unmarshal",
		`{"seq":-1,"type":"message","text":"x"}`:                               "cannot unmarshal",
		`{"seq":9007199254740992,"type":"message","text":"x"}`:                 "seq must be",
		`{"type":"message","text":"x"}`:                                        "seq must be",
		`{"seq":1,"type":"alive"}`:                                             "seq must be",
		`{"seq":2,"type":"progress","text":"x"}`:                               "the type is unknown",
		`{"seq":2,"type":"callStarted","call":{"id":""}}`:                      "call.id",
		`{"seq":2,"type":"callStarted","call":{"id":"c","kind":"cook"}}`:       "call.kind",
		`{"seq":2,"type":"callEnded","call":{"id":"c","resultBytes":-1}}`:      "must not be negative",
		`{"seq":2,"type":"planChanged","plan":[{"text":"a","status":"soon"}]}`: "plan[0]",
		`{"seq":2,"type":"permissionRequested","permission":{"id":"p","call":{"id":"c","arguments":{}},"argumentsDigest":"sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"}}`: "argumentsDigest is not",
		`{"seq":2,"type":"permissionSettled","permission":{"id":"p","decision":"maybe"}}`:                                                                                                             "permission must have",
		`{"seq":9,"type":"result","result":{"outcome":"done"}}`:                                                                                                                                       "result.outcome",
		`{"seq":9,"type":"result","result":{"outcome":"completed"}}`:                                                                                                                                  "result.stopReason",
		`{"seq":9,"type":"result","result":{"outcome":"cancelled","reason":"X"}}`:                                                                                                                     "result.reason",
		`{"seq":9,"type":"result","result":{"outcome":"failed"}}`:                                                                                                                                     "result.reason",
		"{\"seq\":2,\"type\":\"message\",\"text\":\"\xff\"}":                                                                                                                                          "not UTF-8",
		`[]`: "cannot unmarshal",
		``:   "unexpected end",
	} {
		e, err := harness.DecodeEvent([]byte(line))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %+v, %v; want %q", line, e, err, says)
		}
	}
}

// TestErrors: an error has the status of its reason and the members that belong to it.
func TestErrors(t *testing.T) {
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"error":{"code":409,"reason":"StaleEpoch","message":"m","controllerEpoch":7}}`: {409, ""},
		`{"error":{"code":409,"reason":"WrongGeneration","message":"m"}}`:                {409, ""},
		`{"error":{"code":409,"reason":"Busy","message":"m"},"_meta":{}}`:                {409, ""},
		`{"error":{"code":409,"reason":"StaleEpoch","message":"m"}}`:                     {409, "no member controllerEpoch"},
		`{"error":{"code":409,"reason":"Busy","message":"m","controllerEpoch":7}}`:       {409, "has the member controllerEpoch"},
		`{"error":{"code":409,"reason":"NotFound","message":"m"}}`:                       {409, "it must be 404"},
		`{"error":{"code":404,"reason":"NotFound","message":"m"}}`:                       {500, "came with status 500"},
		`{"error":{"code":409,"reason":"Strange","message":"m"}}`:                        {409, "unknown reason"},
		`{"error":null}`: {409, "has no error"},
		`<html>`:         {502, "not an error of the protocol"},
		`{"error":{"code":404,"reason":"NotFound","message":"` + strings.Repeat("x", 1025) + `"}}`: {404, "more than 1024 bytes"},
	} {
		_, err := harness.DecodeError(want.status, []byte(body))
		if want.says == "" && err != nil || want.says != "" && (err == nil || !strings.Contains(err.Error(), want.says)) {
			t.Errorf("%s: %v; want %q", body, err, want.says)
		}
	}
}
