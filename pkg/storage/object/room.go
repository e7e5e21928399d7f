// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
)

// Room bounds the memory of lists that are answered at the same time. It belongs to one request, which has a Room in its context
// (WithRoom) and gives everything back when it was answered. Lists whose context has none are not bounded.
type Room interface {
	// Take waits until the list may use n bytes. Its error is an API error.
	Take(ctx context.Context, n int64) error
	// Keep gives back what the last Take took beyond n.
	Keep(n int64)
	// Each is how many bytes the answer takes for each object, besides the object.
	Each() int64
}

type roomKey struct{}

// WithRoom returns a context for the lists of a request.
func WithRoom(ctx context.Context, r Room) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// RoomOf returns the Room of a request, or nil.
func RoomOf(ctx context.Context) Room {
	r, _ := ctx.Value(roomKey{}).(Room)
	return r
}

const (
	// smallList is how many bytes a list may take without asking for room.
	smallList = 1 << 20
	// decodedSize is how many bytes a decoded object takes for each stored one.
	decodedSize = 4
)

// enter waits for room for what the list may have: as many objects as its limit permits, of the average size.
func (l *list) enter(ctx context.Context) error {
	room := RoomOf(ctx)
	if room == nil || !l.opts.Recursive {
		return nil
	}
	objects, bytes := l.s.topic.stats()
	if objects == 0 {
		return nil
	}
	n := objects
	if _, _, ok := l.byField(); !ok || l.pred.Limit == 0 { // otherwise counting would cost more than the page
		n = l.snap.count(l.s.topic, l.prefix, l.start, l.end)
	}
	if l.pred.Limit > 0 {
		n = min(n, l.pred.Limit)
	}
	stored := n * bytes / objects
	if l.pred.Limit > 0 {
		stored = min(stored, l.s.db.opts.PageBytes)
	}
	if n = l.cost(room, n, stored); n < smallList {
		return nil
	}
	l.room = room
	return room.Take(ctx, n)
}

// settle gives back what the list, which is read, does not use.
func (l *list) settle() {
	if l.room != nil {
		l.room.Keep(l.cost(l.room, int64(l.n), l.bytes))
	}
}

// cost estimates the memory of n objects that take stored bytes in the store. Objects that are kept decoded cost only their copy.
func (l *list) cost(room Room, n, stored int64) int64 {
	cost := n * (int64(l.items.Type().Elem().Size()) + room.Each())
	if !l.shares() || !l.s.topic.cachesObjects() {
		cost += decodedSize * stored
	}
	return cost
}
