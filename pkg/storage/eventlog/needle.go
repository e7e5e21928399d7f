// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// How much one page looks at in search of a text. It is about 50 ms of work. A search in a long stream is a series of such
// pages, because words of events are not indexed: an append would write some hundred rows for a long message.
const (
	searchEntries = 20_000
	searchBytes   = 8 << 20
)

// effort is what a page has looked at.
type effort struct{ entries, bytes int }

// over reports whether a page has looked at as much as it may.
func (e *effort) over(f *filter, o *Options) bool {
	return e.entries >= o.ScanBudget || f.text != nil && (e.entries >= searchEntries || e.bytes >= searchBytes)
}

// needle is a text that is sought in events, in any letter case. A nil needle is in every event.
type needle struct {
	text string // in lower case
	// inJSON are the forms that the text may have in the content.
	inJSON [][]byte
	// plain is set if the text is stored as it is, so that a record without it has no such event: it consists of ASCII
	// characters that JSON does not escape.
	plain bool
}

func newNeedle(text string) *needle {
	n := &needle{text: strings.ToLower(text)}
	n.plain = strings.IndexFunc(n.text, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) }) < 0
	n.inJSON = [][]byte{[]byte(n.text)}
	if quoted, err := json.Marshal(n.text); err == nil && !n.plain {
		escaped := string(quoted[1 : len(quoted)-1])
		n.inJSON = append(n.inJSON, []byte(escaped), []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(escaped)))
	}
	return n
}

// mayBeIn reports whether a record may have the text. It is much quicker than decoding the record.
func (n *needle) mayBeIn(record []byte) bool {
	if n == nil || !n.plain {
		return true
	}
	first := n.text[:1]
	if upper := strings.ToUpper(first); upper != first {
		first += upper
	}
	for b := record[min(headerLen, len(record)):]; len(b) >= len(n.text); {
		i := bytes.IndexAny(b, first)
		if i < 0 || len(b)-i < len(n.text) {
			return false
		}
		if equalFold(b[i:i+len(n.text)], n.text) {
			return true
		}
		b = b[i+1:]
	}
	return false
}

// equalFold reports whether b is a text of ASCII characters in lower case, in any letter case.
func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// in reports whether an event has the text in its texts or its content, but not in its de-duplication key.
func (n *needle) in(e *v1alpha1.ExecutionEvent) bool {
	if n == nil {
		return true
	}
	for field, s := range texts(e) {
		if s != nil && field != fieldDedupKey && field != fieldSession && strings.Contains(strings.ToLower(*s), n.text) {
			return true
		}
	}
	if e.Content == nil {
		return false
	}
	content := bytes.ToLower(e.Content.Raw)
	return slices.ContainsFunc(n.inJSON, func(form []byte) bool { return bytes.Contains(content, form) })
}
