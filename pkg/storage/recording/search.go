// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// maxSearched bounds how much one search reads, in bytes.
const maxSearched = 8 << 20

// Search returns the events of a task after one seq and before another with which something came that contains text, in any case of its letters, at most
// limit of them, each with the words around its first occurrence. Beside an event is searched what was new with it, so what is said
// once is found once. next is the seq to go on after, also where nothing was found so far; 0 at the end.
func (s *Store) Search(ctx context.Context, uid types.UID, text string, after, before int64, limit int) (found []v1alpha1.RecordedEntry, next int64, err error) {
	found = []v1alpha1.RecordedEntry{}
	if owned.Bad(string(uid)) || before <= after {
		return found, 0, nil
	}
	pattern, err := regexp.Compile("(?i)" + regexp.QuoteMeta(text))
	if err != nil {
		return nil, 0, err
	}
	it, err := s.engine.NewIter(partKey(uid, after+1, 0), partKey(uid, before, 0))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	last, read := after, 0
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if len(key) < 10 {
			return nil, 0, &CorruptError{append([]byte(nil), key...)}
		}
		seq := int64(binary.BigEndian.Uint64(key[len(key)-10:]))
		if seq != last {
			if len(found) == limit || read > maxSearched || ctx.Err() != nil {
				return found, last, ctx.Err()
			}
			last = seq
		}
		if n := len(found); n > 0 && found[n-1].Seq == seq {
			continue
		}
		var p v1alpha1.RecordedPart
		read += len(it.Value())
		if json.Unmarshal(it.Value(), &p) != nil {
			return nil, 0, errors.Join(&CorruptError{append([]byte(nil), key...)}, it.Error())
		}
		match := around(pattern, &p)
		if match == "" {
			continue
		}
		raw, _, err := s.engine.Get(entryKey(uid, seq))
		var e entry
		if err != nil || json.Unmarshal(raw, &e) != nil {
			return nil, 0, errors.Join(&CorruptError{entryKey(uid, seq)}, err)
		}
		hit := brief(seq, &e)
		hit.Match = match
		found = append(found, *hit)
	}
	return found, 0, it.Error()
}

// Bytes that are shown before and from an occurrence on.
const shownBefore, shownFrom = 60, 140

// around returns the words around the first occurrence of a pattern in a part, on one line; empty if there is none.
func around(pattern *regexp.Regexp, p *v1alpha1.RecordedPart) string {
	var texts []string
	if m := p.Message; m != nil {
		texts = append(texts, m.Text, m.Thinking)
		for i := range m.ToolCalls {
			texts = append(texts, m.ToolCalls[i].Name, m.ToolCalls[i].Arguments)
		}
	}
	for i := range p.Tools {
		texts = append(texts, p.Tools[i].Name, p.Tools[i].Description)
	}
	for _, text := range texts {
		if at := pattern.FindStringIndex(text); at != nil {
			from, to := max(0, at[0]-shownBefore), min(len(text), max(at[1], at[0]+shownFrom))
			for from < at[0] && !utf8.RuneStart(text[from]) {
				from++
			}
			for to < len(text) && !utf8.RuneStart(text[to]) {
				to--
			}
			return strings.Join(strings.Fields(text[from:to]), " ")
		}
	}
	return ""
}
