// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What follows was written by the first version of this package, under the key of bytes 0 to 31.
const (
	oldUID     types.UID = "0b0e7a52-6f1c-4a43-9e5d-3f3d9b1d7c11"
	oldVersion int64     = 7
	oldData    string    = `{"access_token":"old"}`
	oldRow     string    = "01010000000000000007c9bc3998cec36412fa7bcd7e6daeb8f61b9087e642cd7425f050f65dc90e05e6eea5840aa8dba3bb14f300aa9c8d4368cc3b9963bd8daa8077826f51d1cc1e6418c0961906a7accf03f5a451d28ef0bc6439e69424458c326863b419b09db3ce2e6309c705e0da84b7475ea9e939e4d8d4bb9c829f9d"
)

func oldKeys(t testing.TB) *Keys {
	t.Helper()
	key := make([]byte, keyLen)
	for i := range key {
		key[i] = byte(i)
	}
	k, err := parseKeys("FILE", []byte(base64.StdEncoding.EncodeToString(key)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// opened parses and opens a row.
func opened(k *Keys, uid types.UID, row []byte) (record, []byte, error) {
	r, err := parse(uid, row)
	if err != nil || r.version == 0 {
		return r, nil, err
	}
	data, err := k.open(uid, r)
	return r, data, err
}

// TestOldRow: a row that was written once can be read for good.
func TestOldRow(t *testing.T) {
	t.Parallel()
	row, err := hex.DecodeString(oldRow)
	if err != nil {
		t.Fatal(err)
	}
	r, data, err := opened(oldKeys(t), oldUID, row)
	if err != nil || r.version != oldVersion || string(data) != oldData {
		t.Errorf("version %d, %q, %v", r.version, data, err)
	}
	if !bytes.Equal(r.encode(), row) {
		t.Error("it is written in another way")
	}
}

// TestFreshKeys: no two writes have a data key, a nonce or a ciphertext in common.
func TestFreshKeys(t *testing.T) {
	t.Parallel()
	k := oldKeys(t)
	seen := map[string]bool{}
	for range 100 {
		row, err := k.seal("a", 1, []byte("the same content each time"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := parse("a", row)
		if err != nil {
			t.Fatal(err)
		}
		key, err := k.unwrap("a", r)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{key, r.wrapped[:12], r.wrapped[12:], r.content[:12], r.content[12:]} {
			if seen[string(part)] {
				t.Errorf("%x is there twice", part)
			}
			seen[string(part)] = true
		}
	}
}

// FuzzRow: whatever bytes are in the place of a row, only the row that was sealed there opens.
func FuzzRow(f *testing.F) {
	row, err := hex.DecodeString(oldRow)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(oldUID), row)
	f.Add("another", row)
	f.Add(string(oldUID), row[:len(row)-1])
	f.Add(string(oldUID), tombstone())
	f.Add(string(oldUID), []byte{})
	k := oldKeys(f)
	f.Fuzz(func(t *testing.T, uid string, b []byte) {
		r, data, err := opened(k, types.UID(uid), b)
		_, damaged := errors.AsType[*CorruptError](err)
		_, missing := errors.AsType[*KeyError](err)
		switch {
		case damaged || missing:
			if data != nil {
				t.Errorf("%q was read with %v", data, err)
			}
		case err != nil:
			t.Errorf("error %v", err)
		case r.gone:
			if !bytes.Equal(b, tombstone()) {
				t.Errorf("%x is a tombstone", b)
			}
		case b == nil:
		case uid != string(oldUID) || !bytes.Equal(b, row) || string(data) != oldData:
			t.Errorf("%x was opened for %q: %q", b, uid, data)
		}
		if r.version != 0 && !bytes.Equal(r.encode(), b) {
			t.Errorf("%x is written as %x", b, r.encode())
		}
	})
}
