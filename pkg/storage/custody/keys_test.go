// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNewKeyFile: a missing file is made, for its owner alone, and is the same key when it is read again.
func TestNewKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "connections.keys")
	k, err := OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := New(openEngine(t, t.TempDir()), k)
	save(t, s, "a", 0, "tokens")
	again, err := OpenKeys(path)
	if err != nil || again.first != k.first || len(again.all) != 1 {
		t.Fatalf("%v: other keys", err)
	}
	wantRow(t, New(s.engine, again), "a", Row{Version: 1, Data: []byte("tokens")})
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file was changed, %v", err)
	}
	other, err := OpenKeys(path + "2")
	if err != nil || other.first == k.first {
		t.Errorf("%v: two files have one key", err)
	}
}

// TestKeyFileThatCannotBeMade: the error says what is missing and why it was not made.
func TestKeyFileThatCannotBeMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "connections.keys")
	if err := os.Mkdir(path+".new", 0o700); err != nil { // where the file is written first; permissions do not stop root
		t.Fatal(err)
	}
	if _, err := OpenKeys(path); err == nil || !strings.Contains(err.Error(), path+" is missing, and a new key cannot be written there: ") {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestKeyFiles: the first key of a file seals, and what is no key is refused with the number of its line.
func TestKeyFiles(t *testing.T) {
	t.Parallel()
	a, b := newKey(), newKey()
	first, second := keysOf(t, a).first, keysOf(t, b).first
	short := base64.StdEncoding.EncodeToString([]byte("sixteen bytes ok")) + "\n"
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 33))) + "\n"
	for name, tc := range map[string]struct{ content, refusal string }{
		"one":                    {a, ""},
		"comments":               {"# new\n" + a + "\n  \n#old\n" + b, ""},
		"no line end":            {a + strings.TrimSpace(b), ""},
		"Windows":                {"\r\n" + strings.TrimSpace(a) + "\r\n" + strings.TrimSpace(b) + "\r\n", ""},
		"spaces":                 {"  " + a + "\t" + b, ""},
		"empty":                  {"", " has no key"},
		"only comments":          {"# nothing\n\n", " has no key"},
		"short key":              {a + "\n" + short, ", line 3: a key of 16 bytes"},
		"long key":               {long, ", line 1: a key of 33 bytes"},
		"bad base64":             {a + "# x\n" + "not base64, but a secret word\n", ", line 3: not a key in standard base64"},
		"unpadded":               {strings.TrimRight(a, "=\n") + "\n", ", line 1: not a key in standard base64"},
		"of another alphabet":    {strings.Repeat("_", 43) + "=\n", ", line 1: not a key in standard base64"},
		"bits after the key":     {strings.Repeat("A", 42) + "B=\n", ", line 1: not a key in standard base64"},
		"two on a line":          {strings.TrimSpace(a) + " " + b, ", line 1: not a key in standard base64"},
		"the same twice":         {a + b + "\n" + a, ", line 4: the same key as in line 1"},
		"a comment after a key":  {strings.TrimSpace(a) + " # mine\n", ", line 1: not a key in standard base64"},
		"the bytes of a key":     {strings.Repeat("\x80", 32), ", line 1: not a key in standard base64"},
		"a YAML file by mistake": {"keys:\n- " + a, ", line 1: not a key in standard base64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "connections.keys")
			if err := os.WriteFile(path, []byte(tc.content), 0o400); err != nil {
				t.Fatal(err)
			}
			k, err := OpenKeys(path)
			if tc.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), path+tc.refusal) {
					t.Errorf("error %v; want %s", err, tc.refusal)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("%v has what is in the file", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, has := k.all[second]; k.first != first || has != strings.Contains(tc.content, strings.TrimSpace(b)) {
				t.Errorf("the first key is %s, the second is there: %v", k.first, has)
			}
		})
	}
	if _, err := OpenKeys(t.TempDir()); err == nil {
		t.Error("a folder is read as a key file")
	}
}

// FuzzKeyFile: each line of a file that is accepted is a key, and an error has nothing of what is in the file.
func FuzzKeyFile(f *testing.F) {
	line := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, keyLen))
	for _, content := range []string{"", line, "# x\n" + line + "\r\n\n" + strings.Replace(line, "B", "C", 1) + "\n", line + "\n" + line, "c2hvcnQ=\n", "\xff\x00\n=\n"} {
		f.Add([]byte(content))
	}
	texts := regexp.MustCompile(`^keys of connections: FILE(, line \d+: (not a key in standard base64|a key of \d+ bytes, and a key must have 32|` +
		`the same key as in line \d+; each key must be there once)| has no key; restore it, or remove it if no connection was ever made)$`)
	f.Fuzz(func(t *testing.T, content []byte) {
		k, err := parseKeys("FILE", bytes.Clone(content))
		if err != nil {
			if !texts.MatchString(err.Error()) {
				t.Errorf("error %q", err)
			}
			return
		}
		keys := 0
		for line := range bytes.Lines(content) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
				keys++
			}
		}
		if len(k.all) != keys || k.all[k.first] == nil {
			t.Errorf("%d keys of %d lines", len(k.all), keys)
		}
		row, err := k.seal("a", 1, content)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parse("a", row)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := k.open("a", r); err != nil || !bytes.Equal(data, content) {
			t.Errorf("%q was sealed and %q opened: %v", content, data, err)
		}
	})
}
