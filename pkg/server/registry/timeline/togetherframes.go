// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// deliver sends the events and gaps of a page, in one write unless they are large.
func (t *together) deliver(l *lane, p *eventlog.StreamPage) error {
	gaps := p.Gaps
	skip := func(before int64) error {
		for ; len(gaps) > 0 && gaps[0].To < before; gaps = gaps[1:] {
			l.last = gaps[0].To
			if err := t.add(l, event.FrameGap, frameOf{EventGap: new(gap(gaps[0]))}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range p.Events {
		if err := skip(e.Seq); err != nil {
			return err
		}
		l.last = e.Seq
		if err := t.add(l, event.FrameEvent, l.timeline.event(e)); err != nil {
			return err
		}
	}
	if err := skip(maxPosition); err != nil {
		return err
	}
	l.last = max(l.last, p.Next)
	return t.flush(0)
}

// add adds a frame of a part to those that will be sent.
func (t *together) add(l *lane, name string, data any) error {
	if f, ok := data.(frameOf); ok {
		f.StreamType, f.StreamID, f.StreamUID = l.timeline.Type, l.timeline.Name, l.timeline.UID
		data = f
	}
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("frame %s of %s: %w", name, l.timeline.Name, err)
	}
	id := make([]byte, 0, 8*len(t.lanes))
	for i, one := range t.lanes {
		if i > 0 {
			id = append(id, '.')
		}
		id = strconv.AppendInt(id, one.last, 10)
	}
	t.buffer = sse.Append(t.buffer, string(id), name, text)
	return t.flush(sendAt)
}

// flush sends what was added, if it is more than some bytes.
func (t *together) flush(least int) error {
	if len(t.buffer) <= least {
		return nil
	}
	err := t.out.send(t.buffer)
	if t.buffer = t.buffer[:0]; cap(t.buffer) > 4*sendAt {
		t.buffer = nil
	}
	return err
}

func (t *together) send(l *lane, name string, data frameOf) error {
	if err := t.add(l, name, data); err != nil {
		return err
	}
	return t.flush(0)
}
