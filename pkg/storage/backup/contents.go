// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Contents counts what is in a store.
type Contents struct {
	// Objects are the live objects of all resources, those of the host included.
	Objects int64
	// Events are the execution events, including those that were deleted but are not purged yet.
	Events int64
	// Files are the results and artifacts of tasks.
	Files int64
	// Messages are those of sessions.
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
		it.Value() // it keeps its error
	}
	return c, it.Error()
}

// of is the count that a key belongs to, by the keyspaces in the FORMAT.md of
// pkg/storage/engine and pkg/storage/eventlog and the package comments of
// pkg/storage/blob and pkg/storage/transcript; nil for everything else.
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
