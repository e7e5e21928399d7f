// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// A record is a header of fixed size and a payload of tagged fields in the wire
// format of protocol buffers. Names, UIDs, owner and metadata are derived from
// the stream's head on read and not stored.
const (
	recordFormat = 1
	headerLen    = 27
)

// header is the part of a record that the commit assigns or that filters need.
type header struct {
	rev      uint64
	typ, sev uint8
	created  int64 // microseconds since 1970
	cursor   int64 // of the session, 0 without one
}

func (h header) put(b []byte) {
	b[0] = recordFormat
	binary.BigEndian.PutUint64(b[1:], h.rev)
	b[9], b[10] = h.typ, h.sev
	binary.BigEndian.PutUint64(b[11:], uint64(h.created))
	binary.BigEndian.PutUint64(b[19:], uint64(h.cursor))
}

func parseHeader(b []byte) (header, error) {
	switch {
	case len(b) < headerLen:
		return header{}, errShort
	case b[0] != recordFormat:
		return header{}, errFormat
	}
	return header{
		rev: binary.BigEndian.Uint64(b[1:]), typ: b[9], sev: b[10],
		created: int64(binary.BigEndian.Uint64(b[11:])), cursor: int64(binary.BigEndian.Uint64(b[19:])),
	}, nil
}

// Numbers of the payload's fields. They must never be reused for another field.
const (
	fieldAgentName = iota + 1
	fieldToolName
	fieldToolCallID
	fieldProvider
	fieldModel
	fieldStopReason
	fieldSummary
	fieldContentText
	fieldContent
	fieldSession
	fieldDedupKey
	fieldInputTokens
	fieldOutputTokens
	fieldCachedInputTokens
	fieldContextWindowUsed
	fieldContextWindowSize
	fieldTruncated // bits: 1 summary, 2 contentText, 4 content
	fieldSummaryChars
	fieldContentTextChars
	fieldContentBytes
	fieldAttempt
	fieldElapsedMicros
)

// texts returns the text fields, indexed by their numbers.
func texts(e *v1alpha1.ExecutionEvent) [fieldDedupKey + 1]*string {
	return [...]*string{
		fieldAgentName: &e.AgentName, fieldToolName: &e.ToolName, fieldToolCallID: &e.ToolCallID,
		fieldProvider: &e.Provider, fieldModel: &e.Model, fieldStopReason: &e.StopReason,
		fieldSummary: &e.Summary, fieldContentText: &e.ContentText,
		fieldSession: &e.SessionName, fieldDedupKey: &e.DedupKey,
	}
}

// appendPayload encodes the payload of a sanitized event.
func appendPayload(b []byte, e *v1alpha1.ExecutionEvent) []byte {
	text := func(field uint64, s string) {
		b = binary.AppendUvarint(b, field<<3|2)
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	number := func(field uint64, n int64) {
		b = binary.AppendUvarint(b, field<<3)
		b = binary.AppendUvarint(b, uint64(n))
	}
	for field, s := range texts(e) {
		if s != nil && *s != "" {
			text(uint64(field), *s)
		}
	}
	if e.Content != nil {
		text(fieldContent, string(e.Content.Raw))
	}
	for i, n := range [...]*int64{e.InputTokens, e.OutputTokens, e.CachedInputTokens, e.ContextWindowUsed, e.ContextWindowSize} {
		if n != nil {
			number(uint64(fieldInputTokens+i), *n)
		}
	}
	if e.Attempt != 0 {
		number(fieldAttempt, int64(e.Attempt))
	}
	if e.ElapsedMicros != nil {
		number(fieldElapsedMicros, *e.ElapsedMicros)
	}
	if t := e.Truncation; t != nil {
		var bits int64
		for i, set := range [...]bool{t.SummaryTruncated, t.ContentTextTruncated, t.ContentJSONTruncated} {
			if set {
				bits |= 1 << i
			}
		}
		number(fieldTruncated, bits)
		for i, n := range [...]int64{t.SummaryOriginalChars, t.ContentTextOriginalChars, t.ContentJSONOriginalBytes} {
			if n != 0 {
				number(uint64(fieldSummaryChars+i), n)
			}
		}
	}
	return b
}

// parsePayload decodes b into e. Fields of a later version are skipped.
func parsePayload(b []byte, e *v1alpha1.ExecutionEvent) error {
	all := texts(e)
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return errShort
		}
		b = b[n:]
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return errShort
		}
		b = b[n:]
		field := tag >> 3
		switch tag & 7 {
		case 0:
			setNumber(e, field, int64(value))
		case 2:
			if value > uint64(len(b)) {
				return errShort
			}
			data := b[:value]
			b = b[value:]
			switch {
			case field == fieldContent:
				e.Content = &apiextensionsv1.JSON{Raw: append([]byte(nil), data...)}
			case field < uint64(len(all)) && all[field] != nil:
				*all[field] = string(data)
			}
		default:
			return errFormat
		}
	}
	return nil
}

func setNumber(e *v1alpha1.ExecutionEvent, field uint64, n int64) {
	switch field {
	case fieldInputTokens:
		e.InputTokens = new(n)
	case fieldOutputTokens:
		e.OutputTokens = new(n)
	case fieldCachedInputTokens:
		e.CachedInputTokens = new(n)
	case fieldContextWindowUsed:
		e.ContextWindowUsed = new(n)
	case fieldContextWindowSize:
		e.ContextWindowSize = new(n)
	case fieldAttempt:
		e.Attempt = int32(n)
	case fieldElapsedMicros:
		e.ElapsedMicros = new(n)
	}
	if field < fieldTruncated || field > fieldContentBytes {
		return
	}
	if e.Truncation == nil {
		e.Truncation = &v1alpha1.EventTruncation{}
	}
	t := e.Truncation
	switch field {
	case fieldTruncated:
		t.SummaryTruncated, t.ContentTextTruncated, t.ContentJSONTruncated = n&1 != 0, n&2 != 0, n&4 != 0
	case fieldSummaryChars:
		t.SummaryOriginalChars = n
	case fieldContentTextChars:
		t.ContentTextOriginalChars = n
	case fieldContentBytes:
		t.ContentJSONOriginalBytes = n
	}
}

// identity is the part of a stream that never changes.
type identity struct {
	no       uint64 // revision of its first event, hence unique
	uid      types.UID
	ns, task string
	root     string // the task at the top of the tree, if that is another one
}

// rootTask returns the task at the top of the tree.
func (id *identity) rootTask() string {
	if id.root != "" {
		return id.root
	}
	return id.task
}

// decode returns the API object of a record.
func (id *identity) decode(seq int64, raw []byte) (*v1alpha1.ExecutionEvent, header, error) {
	h, err := parseHeader(raw)
	if err == nil && (int(h.typ) >= len(typeNames) || int(h.sev) >= len(severityNames)) {
		err = errFormat
	}
	if err != nil {
		return nil, h, &CorruptError{dataKey(id.no, seq), err}
	}
	e := &v1alpha1.ExecutionEvent{Type: typeNames[h.typ], Severity: severityNames[h.sev]}
	if err := parsePayload(raw[headerLen:], e); err != nil {
		return nil, h, &CorruptError{dataKey(id.no, seq), err}
	}
	id.dress(e, seq, h)
	return e, h, nil
}

// ownerVersion is the API version of an event's owner reference.
var ownerVersion = v1alpha1.SchemeGroupVersion.String()

// dress sets the fields of e that the server owns.
func (id *identity) dress(e *v1alpha1.ExecutionEvent, seq int64, h header) {
	created := time.UnixMicro(h.created).UTC()
	// This runs for every event of every page. It therefore makes one string for three, and one
	// allocation for the owner and what it points to.
	var buf [192]byte
	b := event.AppendName(buf[:0], id.task, seq)
	nameEnd := len(b)
	b = appendUID(b, id.uid, seq)
	uidEnd := len(b)
	names := string(strconv.AppendUint(b, h.rev, 10))
	uid := types.UID(names[nameEnd:uidEnd])
	owner := &struct {
		list [1]metav1.OwnerReference
		yes  bool
	}{yes: true}
	owner.list[0] = metav1.OwnerReference{APIVersion: ownerVersion, Kind: "Task", Name: id.task, UID: id.uid, Controller: &owner.yes}
	e.TypeMeta = metav1.TypeMeta{}
	e.ObjectMeta = metav1.ObjectMeta{
		Namespace:         id.ns,
		Name:              names[:nameEnd],
		UID:               uid,
		ResourceVersion:   names[uidEnd:],
		CreationTimestamp: metav1.NewTime(created.Truncate(time.Second)),
		OwnerReferences:   owner.list[:],
	}
	e.ID = string(uid)
	e.StreamNamespace, e.StreamType, e.StreamID = id.ns, v1alpha1.StreamTask, id.task
	e.RootTask = id.rootTask()
	e.TaskName, e.Seq, e.CreatedAt = id.task, seq, metav1.NewMicroTime(created)
	e.TaskSeq, e.TaskStreamID = 0, ""
}

// appendUID appends the UID of an event. The UID is derived from the event's stream and seq, so it is the
// same on every read, and differs between a task and an earlier task of the same name. It has the form of a
// UUID of version 8 (RFC 9562), whose bits are free.
func appendUID(b []byte, stream types.UID, seq int64) []byte {
	var buf [64]byte
	sum := sha256.Sum256(strconv.AppendInt(append(append(buf[:0], stream...), 0), seq, 10))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	b = hex.AppendEncode(b, sum[:4])
	for i := 4; i < 10; i += 2 {
		b = hex.AppendEncode(append(b, '-'), sum[i:i+2])
	}
	return hex.AppendEncode(append(b, '-'), sum[10:16])
}

// sessionView returns e as an event of its session's timeline.
func sessionView(e *v1alpha1.ExecutionEvent, cursor int64) *v1alpha1.ExecutionEvent {
	e.TaskSeq, e.TaskStreamID = e.Seq, e.StreamID
	e.StreamType, e.StreamID, e.Seq = v1alpha1.StreamSession, e.SessionName, cursor
	return e
}
