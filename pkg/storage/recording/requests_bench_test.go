// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// BenchmarkKeepRequest: a request of a conversation of 400 KiB in 400 messages, of which the last is new.
func BenchmarkKeepRequest(b *testing.B) {
	e, err := local.Open(b.Context(), local.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	s := recording.New(e, recording.Limits{})
	var said []string
	for i := range 400 {
		said = append(said, fmt.Sprint(i, " ", strings.Repeat("said something. ", 64)))
	}
	b.SetBytes(400 << 10)
	for i := 0; b.Loop(); i++ {
		if err := s.KeepRequest(asks(fmt.Sprint(i), day, "", "Yes.", append(said, fmt.Sprint(i))...)); err != nil {
			b.Fatal(err)
		}
	}
}
