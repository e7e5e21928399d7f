// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// FuzzEvent: an event that is accepted is written as one that is accepted and is the same.
func FuzzEvent(f *testing.F) {
	for _, line := range []string{
		`{"seq":1,"type":"accepted","session":"s","generation":1,"prompt":"p","leaseMillis":1}`,
		`{"seq":2,"type":"message","text":"x","messageID":"m","_meta":{}}`,
		`{"seq":3,"type":"callEnded","call":{"id":"c","diffs":[{"path":"p","bytes":1}],"arguments":[1e400]}}`,
		`{"seq":4,"type":"planChanged","plan":[{"text":"a","status":"pending"}]}`,
		`{"seq":5,"type":"result","result":{"outcome":"failed","reason":"A","usage":{"inputTokens":1}}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := DecodeEvent(line)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Fatal(err)
			}
			return
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeEvent(written)
		if err != nil {
			t.Fatalf("%s became %s: %v", line, written, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(written, twice) {
			t.Fatalf("%s became %s: %v", written, twice, err)
		}
	})
}

// FuzzStream: whatever comes, a stream ends, counts without gaps, and has at most one result.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"seq":1,"type":"accepted","session":"s","generation":1,"prompt":"p","leaseMillis":1}` + "\n" + `{"type":"alive"}` + "\n" +
		`{"seq":2,"type":"callStarted","call":{"id":"c"}}` + "\n" + `{"seq":3,"type":"result","result":{"outcome":"cancelled"}}` + "\n"))
	f.Add([]byte("\n\n{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := &Stream{
			body: io.NopCloser(bytes.NewReader(nil)), in: bufio.NewReaderSize(bytes.NewReader(raw), 16), end: func(error) {}, cause: func() error { return nil },
			watch: clock.RealClock{}.AfterFunc(time.Hour, func() {}), session: "s", generation: 1, prompt: "p", maxLine: 200, maxEnd: 100,
			calls: map[string]bool{}, permissions: map[string]bool{},
		}
		var last uint64
		results := 0
		for {
			e, err := s.Next()
			if errors.Is(err, io.EOF) {
				if results != 1 {
					t.Fatalf("the stream ended well after %d results", results)
				}
				return
			}
			if err != nil {
				if !errors.Is(err, ErrCut) && !errors.Is(err, ErrProtocol) {
					t.Fatal(err)
				}
				return
			}
			if e.Seq != last+1 {
				t.Fatalf("%d follows %d", e.Seq, last)
			}
			if last = e.Seq; e.Result != nil {
				results++
			}
		}
	})
}

// FuzzAnswers: no answer makes the client fail, and one that is accepted is complete.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"protocol":"platform.harness.v2","instance":"i","status":"ok"}`))
	f.Add([]byte(`{"protocol":"platform.harness.v2","instance":"i","lifecycle":"serving","controllerEpoch":0,"runningPrompts":0,"sessions":[{"id":"s","generation":1,"state":"idle","prompt":{"id":"p","state":"settled","outcome":"failed","lastSeq":1}}]}`))
	f.Add([]byte(`{"protocol":"platform.harness.v2","runtime":{"name":"r","version":"1"},"capabilities":{"runtimeInstanceID":"i","workspaceGovernance":{"mode":"trusted-non-governed","trusted":true},"limits":{"maxResidentSessions":1}}}`))
	f.Add([]byte(`{"id":"d","commit":"0000000000000000000000000000000000000000","digest":"sha256:","bytes":1,"files":0}`))
	f.Add([]byte(`{"error":{"code":409,"reason":"Busy","message":""}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, st, c, s, d := &Health{}, &Status{}, &Capabilities{}, &SessionStatus{}, &DeltaStatus{}
		if Decode(raw, h) == nil && h.check() == nil && !ValidName(h.Instance) {
			t.Errorf("health %s", raw)
		}
		if Decode(raw, st) == nil && st.check() == nil && (st.Protocol != Protocol || st.Sessions == nil) {
			t.Errorf("status %s", raw)
		}
		if Decode(raw, c) == nil && c.check() == nil && (c.Capabilities.Limits == nil || c.Capabilities.Limits.MaxEventLineBytes == nil || c.Capabilities.WorkspaceGovernance == nil) {
			t.Errorf("capabilities %s", raw)
		}
		if Decode(raw, s) == nil && s.check() == nil && s.Generation == 0 {
			t.Errorf("session %s", raw)
		}
		if Decode(raw, d) == nil && d.check() == nil && d.Bytes < 1 {
			t.Errorf("delta %s", raw)
		}
		if e, err := DecodeError(409, raw); err == nil && e.Code != 409 {
			t.Errorf("error %s", raw)
		}
	})
}
