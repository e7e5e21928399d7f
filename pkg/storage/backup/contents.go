// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Contents counts the entries of a store by kind.
type Contents struct {
	// Objects counts the live objects of all resources, including those of the host.
	Objects int64
	// Events counts the execution events, including those that were deleted but are not purged yet.
	Events int64
	// Files counts the results and artifacts of tasks.
	Files int64
	// Messages counts the messages of sessions.
	Messages int64
}

// count reads every key and every value of the store.
func count(ctx context.Context, e engine.Engine) (c Contents, err error) {
	it, err := e.NewIter(nil, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := context.Cause(ctx); err != nil {
			return c, err
		}
		if n := c.of(it.Key()); n != nil {
			*n++
		}
		it.Value() // the iterator keeps the error
	}
	return c, it.Error()
}

// of returns the counter that a key belongs to, or nil if the key is not counted. The keyspaces are in the
// FORMAT.md of pkg/storage/engine and pkg/storage/eventlog and in the package comments of pkg/storage/blob
// and pkg/storage/transcript.
func (c *Contents) of(key []byte) *int64 {
	kind := func() byte { // of a key that begins with an owner
		_, rest, _ := bytes.Cut(key, []byte{0})
		return append(rest, 0)[0]
	}
	switch {
	case key[0] == 'k':
		return &c.Objects
	case bytes.HasPrefix(key, []byte("ed")):
		return &c.Events
	case key[0] == 'b' && kind() == 'f':
		return &c.Files
	case key[0] == 't' && kind() == 'm':
		return &c.Messages
	}
	return nil
}
