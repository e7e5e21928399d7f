// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/redact"
)

// MaxPreviewBytes bounds the preview of arguments, in bytes.
const MaxPreviewBytes = 8 << 10

// Preview returns raw as people may see it before they decide: valid JSON without secrets, of at most
// MaxPreviewBytes. If it is too long, its texts are cut first, so that every argument stays visible. If
// that is not enough, it becomes an object with the members truncated, preview and originalBytes.
func Preview(raw []byte) []byte {
	raw = bytes.ToValidUTF8(raw, []byte(string(utf8.RuneError)))
	clean, _, err := redact.JSON(raw)
	if err != nil {
		clean = encode(string(raw))
		if clean, _, err = redact.JSON(clean); err != nil {
			return []byte(`"` + redact.Marker + `"`)
		}
	}
	var b bytes.Buffer
	if err := json.Compact(&b, clean); err == nil {
		clean = b.Bytes()
	}
	if len(clean) <= MaxPreviewBytes {
		return clean
	}
	for _, limit := range []int{1024, 256, 64} {
		if short, ok := shortened(clean, limit); ok {
			return short
		}
	}
	return beginning(clean, len(raw))
}

// shortened cuts every text to limit characters, and reports whether the result then fits.
func shortened(raw []byte, limit int) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	short := encode(shorten(v, limit))
	short, _, err := redact.JSON(short) // a text that was cut can look like a secret
	return short, err == nil && len(short) <= MaxPreviewBytes
}

func shorten(v any, limit int) any {
	switch t := v.(type) {
	case string:
		if n := utf8.RuneCountInString(t); n > limit {
			return fmt.Sprintf("%s… (%d more characters)", cut(t, limit), n-limit)
		}
	case []any:
		for i := range t {
			t[i] = shorten(t[i], limit)
		}
	case map[string]any:
		for k := range t {
			t[k] = shorten(t[k], limit)
		}
	}
	return v
}

// beginning returns a preview that shows only the beginning of raw.
func beginning(raw []byte, size int) []byte {
	for limit := 6 << 10; ; limit /= 2 {
		text, _ := redact.Text(strings.ToValidUTF8(string(raw[:min(limit, len(raw))]), ""))
		out := encode(struct {
			Truncated     bool   `json:"truncated"`
			Preview       string `json:"preview"`
			OriginalBytes int    `json:"originalBytes"`
		}{true, text, size})
		// The marker and escapes can make it longer than limit.
		if out, _, err := redact.JSON(out); err == nil && len(out) <= MaxPreviewBytes {
			return out
		}
	}
}

// encode writes JSON without escapes for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // values that were decoded, and scalars, always encode
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
