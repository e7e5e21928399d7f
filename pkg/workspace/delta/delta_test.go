// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package delta_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/workspace/delta"
)

// FuzzRead: no file makes the package fail or gives a delta that it would not write.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	d := delta.Delta{Header: delta.Header{Version: 1, Commit: strings.Repeat("a", 40), Changes: []delta.Change{{Path: "a", Was: delta.Side{Mode: "100644", ID: strings.Repeat("b", 40)}}}}}
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := delta.Read(bytes.NewReader(raw))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := d.Write(&again); err != nil {
			t.Fatal(err)
		}
		if _, err := delta.Read(&again); err != nil {
			t.Fatal(err)
		}
	})
}
