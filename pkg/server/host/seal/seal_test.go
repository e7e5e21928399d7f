// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage/value"

	"github.com/platform-ai/platform/pkg/server/host/seal"
)

func open(t *testing.T, path string, create bool) value.Transformer {
	t.Helper()
	tr, err := seal.Open(path, create)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func encrypt(t *testing.T, tr value.Transformer, plain, key string) []byte {
	t.Helper()
	b, err := tr.TransformToStorage(t.Context(), []byte(plain), value.DefaultContext(key))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	stored := encrypt(t, open(t, path, true), "s3cret", "/secrets/a")
	if bytes.Contains(stored, []byte("s3cret")) {
		t.Error("stored in the clear")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, err %v", info.Mode(), err)
	}
	again := open(t, path, false)
	plain, stale, err := again.TransformFromStorage(t.Context(), stored, value.DefaultContext("/secrets/a"))
	if string(plain) != "s3cret" || stale || err != nil {
		t.Errorf("plain %q, stale %v, err %v", plain, stale, err)
	}
	if _, _, err := again.TransformFromStorage(t.Context(), stored, value.DefaultContext("/secrets/b")); err == nil {
		t.Error("a value opens under the key of another object")
	}
	stored[len(stored)-1] ^= 1
	if _, _, err := again.TransformFromStorage(t.Context(), stored, value.DefaultContext("/secrets/a")); err == nil {
		t.Error("a changed value opens")
	}
	if _, _, err := again.TransformFromStorage(t.Context(), []byte("plain text"), value.DefaultContext("/secrets/a")); err == nil {
		t.Error("a value that was never encrypted is taken as it is")
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	stored := encrypt(t, open(t, path, true), "s3cret", "k")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line, err := seal.NewLine()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(append([]byte("# rotated\n"), line...), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	both := open(t, path, false)
	plain, stale, err := both.TransformFromStorage(t.Context(), stored, value.DefaultContext("k"))
	if string(plain) != "s3cret" || !stale || err != nil {
		t.Errorf("plain %q, stale %v (want true), err %v", plain, stale, err)
	}
	fresh := encrypt(t, both, "s3cret", "k")
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	only := open(t, path, false)
	if plain, stale, err := only.TransformFromStorage(t.Context(), fresh, value.DefaultContext("k")); string(plain) != "s3cret" || stale || err != nil {
		t.Errorf("plain %q, stale %v, err %v", plain, stale, err)
	}
	if _, _, err := only.TransformFromStorage(t.Context(), stored, value.DefaultContext("k")); err == nil {
		t.Error("the dropped key still opens")
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if _, err := seal.Open(filepath.Join(dir, "none"), false); !errors.Is(err, seal.ErrNoKeys) {
		t.Errorf("err = %v", err)
	}
	seed := strings.Repeat("A", 44)
	for name, content := range map[string]string{
		"empty":        "",
		"only comment": "# nothing\n",
		"no seed":      "k1\n",
		"short seed":   "k1 c2hvcnQ=\n",
		"no base64":    "k1 " + seed + "!\n",
		"bad ID":       "k:1 " + seed + "\n",
		"same ID":      "k1 " + seed + "\nk1 " + seed + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "key")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := seal.Open(path, true)
			if err == nil || strings.Contains(err.Error(), seed) {
				t.Errorf("err = %v", err)
			}
		})
	}
}
