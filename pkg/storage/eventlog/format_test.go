// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Every type of the closed list has exactly one number on disk.
func TestTypeCodes(t *testing.T) {
	for _, typ := range event.Types() {
		if code := typeCodes[typ]; code == 0 || code > 63 || typeNames[code] != typ {
			t.Errorf("%s has code %d", typ, code)
		}
	}
	if len(typeCodes) != len(event.Types()) {
		t.Errorf("%d codes of %d types", len(typeCodes), len(event.Types()))
	}
	// These numbers must not change: existing stores contain them.
	for code, typ := range map[int]v1alpha1.EventType{1: "TaskCreated", 5: "TaskSucceeded", 20: "ToolCallFailed", 36: "ApprovalRequested", 41: "ApprovalExecutionUpdated"} {
		if typeNames[code] != typ {
			t.Errorf("code %d is %s, was %s", code, typeNames[code], typ)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	id := identity{no: 7, uid: "u", ns: "n", task: "t.x"}
	e := &v1alpha1.ExecutionEvent{
		Type: "ModelRequestCompleted", Severity: "warning", SessionName: "s", AgentName: "a", ToolName: "b", ToolCallID: "c",
		Provider: "d", Model: "e", StopReason: "f", Summary: "g", ContentText: "h\n", DedupKey: "i",
		Content:     &apiextensionsv1.JSON{Raw: []byte(`{"a":[1]}`)},
		InputTokens: ptr.To[int64](0), OutputTokens: ptr.To[int64](1 << 50), CachedInputTokens: ptr.To[int64](3),
		ContextWindowUsed: ptr.To[int64](4), ContextWindowSize: ptr.To[int64](5), Attempt: 2, ElapsedMicros: ptr.To[int64](0),
		Truncation: &v1alpha1.EventTruncation{SummaryTruncated: true, ContentJSONTruncated: true, ContentTextOriginalChars: 9, ContentJSONOriginalBytes: 10},
	}
	h := header{rev: 11, typ: typeCodes[e.Type], sev: 2, created: time.Date(2026, 11, 21, 4, 0, 0, 123456000, time.UTC).UnixMicro(), cursor: 12}
	raw := make([]byte, headerLen)
	h.put(raw)
	raw = appendPayload(raw, e)
	got, gotHeader, err := id.decode(3, raw)
	if err != nil {
		t.Fatal(err)
	}
	want := e.DeepCopy()
	id.dress(want, 3, h)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if gotHeader != h {
		t.Errorf("header %+v", gotHeader)
	}
	switch {
	case got.Name != "t.x.0000000003", got.ResourceVersion != "11", got.ID != string(got.UID),
		got.ID != "adef174c-cbe5-8c76-915d-6a25240315c1", // frozen: clients have seen it
		got.StreamID != "t.x", got.TaskName != "t.x", got.StreamNamespace != "n", got.OwnerReferences[0].UID != "u",
		!*got.OwnerReferences[0].Controller, got.CreatedAt.Nanosecond() != 123456000, got.CreationTimestamp.Nanosecond() != 0:
		t.Errorf("metadata: %+v", got)
	}
	if other, _, err := (&identity{no: 7, uid: "v", ns: "n", task: "t.x"}).decode(3, raw); err != nil || other.UID == got.UID {
		t.Errorf("the namesake's event has the same UID %s, %v", other.UID, err)
	}
}

func FuzzRecord(f *testing.F) {
	raw := make([]byte, headerLen)
	header{rev: 1, typ: 1}.put(raw)
	f.Add(appendPayload(raw, &v1alpha1.ExecutionEvent{Summary: "x", InputTokens: ptr.To[int64](3)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		id := identity{no: 1, uid: "u", ns: "n", task: "t"}
		e, h, err := id.decode(1, b)
		if err != nil {
			if _, ok := errors.AsType[*CorruptError](err); !ok {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		again := make([]byte, headerLen)
		h.put(again)
		second, _, err := id.decode(1, appendPayload(again, e))
		if diff := cmp.Diff(e, second); diff != "" || err != nil {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add(encodeHead(&identity{1, "u", "n", "t", "r"}, &state{last: 3, changed: 9, terminal: 5, end: 2, oldest: 2, session: "s", counted: 1, counts: "\x10\x03\x41\x03"}))
	f.Add(encodeDeletion(&deletion{identity: identity{1, "u", "n", "t", "r"}, first: 1, last: 3, whole: true, at: time.UnixMicro(5)}))
	f.Add(encodeDeletion(&deletion{identity: identity{1, "u", "n", "t", "r"}, first: 2, last: 3, at: time.UnixMicro(5)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, s, err := decodeHead(1, b); err == nil {
			again, s2, err := decodeHead(1, encodeHead(&id, &s))
			if err != nil || again != id || !reflect.DeepEqual(s2, s) {
				t.Fatalf("%+v %+v: %+v %+v %v", id, s, again, s2, err)
			}
		}
		if d, err := decodeDeletion(deletedKey(4), b); err == nil {
			again, err := decodeDeletion(deletedKey(4), encodeDeletion(d))
			if err != nil || *again != *d {
				t.Fatalf("%+v: %+v %v", d, again, err)
			}
		}
	})
}

// The number of events that wait for a reader is bounded, however many it misses.
func TestMailboxIsBounded(t *testing.T) {
	s := &subscriber{filter: &filter{}, limit: 3, wake: make(chan struct{}, 1)}
	for rev := range uint64(10) {
		s.push(&entry{posting: posting{rev: rev + 1}, id: &identity{}})
		if len(s.queue) > 3 {
			t.Fatalf("%d changes wait", len(s.queue))
		}
	}
	if _, overflow, since := s.take(5); !overflow || since != 0 || s.queue != nil || s.missed != 7 {
		t.Errorf("overflow %v since %d, %d missed", overflow, since, s.missed)
	}
}

// Records written before trimming existed can still be read.
func TestOlderRecords(t *testing.T) {
	head := []byte{headFormat, 5, 1, 3, 9, 0, 1, 'u', 1, 'n', 1, 't', 1, 's'}
	_, s, err := decodeHead(1, head)
	if want := (state{last: 3, changed: 9, oldest: 1, terminal: 5, end: 3, session: "s", mixed: true, counted: 4}); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("head %+v, %v", s, err)
	}
	d, err := decodeDeletion(deletedKey(4), []byte{deletionFormat, 1, 7, 3, 5, 1, 'u', 1, 'n', 1, 't', 0})
	want := &deletion{identity: identity{7, "u", "n", "t", ""}, rev: 4, first: 1, last: 3, whole: true, mixed: true, at: time.UnixMicro(5)}
	if err != nil || *d != *want {
		t.Errorf("deletion %+v, %v", d, err)
	}
}

// FuzzKeys checks that keys of different names never collide, parse back, and sort by number.
func FuzzKeys(f *testing.F) {
	f.Add("n", "s", "m", "t", uint64(1), uint64(2))
	f.Add("a", "b", "a\x01", "b", uint64(255), uint64(256))
	f.Fuzz(func(t *testing.T, ns, name, ns2, name2 string, a, b uint64) {
		if !validName(ns) || !validName(name) || !validName(ns2) || !validName(name2) {
			return
		}
		a, b = a>>1, b>>1
		same := ns == ns2 && name == name2
		if bytes.Equal(sessionPrefix(ns, name), sessionPrefix(ns2, name2)) != same || bytes.Equal(nameKey(ns, name), nameKey(ns2, name2)) != same {
			t.Fatalf("%q %q and %q %q", ns, name, ns2, name2)
		}
		if bytes.HasPrefix(sessionKey(ns, name, int64(a)), sessionPrefix(ns2, name2)) && !same {
			t.Fatalf("a session key of %q %q is in %q %q", ns, name, ns2, name2)
		}
		for _, k := range [][2][]byte{
			{sessionKey(ns, name, int64(a)), sessionKey(ns, name, int64(b))},
			{namespaceKey(1, ns, a), namespaceKey(1, ns, b)},
			{dataKey(9, int64(a)), dataKey(9, int64(b))},
			{facetKey(9, 1, int64(a)), facetKey(9, 1, int64(b))},
			{revisionKey(a), revisionKey(b)},
		} {
			if c := bytes.Compare(k[0], k[1]); (c < 0) != (a < b) || (c == 0) != (a == b) {
				t.Fatalf("%d and %d sort %d", a, b, c)
			}
		}
		v := make([]byte, pointerLen)
		putPointer(v, a, int64(b), 3, 2)
		p, err := parseNamespace(true)(namespaceKey(5, ns, a), v)
		if err != nil || p.ns != ns || p.rev != a || p.no != a || p.seq != int64(b) || p.typ != 3 || p.sev != 2 {
			t.Fatalf("%+v %v", p, err)
		}
		if k := namespacePrefix(5, ns); !bytes.HasPrefix(namespaceKey(5, ns, a), k) || bytes.Compare(after(k), namespaceKey(5, ns, ^uint64(0))) <= 0 {
			t.Fatalf("after(%q) = %q", k, after(k))
		}
	})
}

// FuzzParse checks that no value under a key makes a parser panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte("ei\x00n\x00aaaaaaaa"), make([]byte, pointerLen))
	f.Add([]byte("ec"), make([]byte, sessionPointerLen))
	f.Fuzz(func(t *testing.T, k, v []byte) {
		for i, parse := range []func(k, v []byte) (posting, error){parseData, parseFacet, parseNamespace(true), parseNamespace(false), parseRevision, parseSession} {
			if p, err := parse(k, v); err != nil && p.raw != nil {
				t.Fatalf("parser %d: %+v with %v", i, p, err)
			}
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(token{Revision: 5, Place: place{"n", 7}, Query: 9}.encode(), uint64(1), uint64(2), "n")
	f.Fuzz(func(t *testing.T, s string, rev, from uint64, ns string) {
		if _, err := decodeToken(s); err != nil && !errors.Is(err, ErrContinue) {
			t.Fatal(err)
		}
		if bytes.ContainsRune([]byte(ns), 0xFFFD) || !bytes.Equal([]byte(ns), bytes.ToValidUTF8([]byte(ns), []byte("?"))) {
			return
		}
		want := token{tokenVersion, rev, place{ns, from}, 3}
		if got, err := decodeToken(want.encode()); err != nil || got != want {
			t.Fatalf("%+v: %+v %v", want, got, err)
		}
	})
}

func TestStreamCheck(t *testing.T) {
	good := Stream{"n", "t", types.UID("u"), "", "", ""}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Stream{{}, {"", "t", "u", "", "", ""}, {"n", "", "u", "", "", ""}, {"n", "t", "", "", "", ""}, {"n\x00", "t", "u", "", "", ""}, {"n", "t", "u", "s\x00", "", ""}, {"n", "t", "u", "", "r\x00", ""}} {
		if err := bad.check(); !errors.Is(err, ErrBadStream) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
