// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bytes"
	"io"
	"mime"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// ReadAtMost returns the first limit bytes of r, and whether there are more.
func ReadAtMost(r io.Reader, limit int) (data []byte, more bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, false, err
	}
	return data[:min(len(data), limit)], len(data) > limit, nil
}

// UTF8 returns a text that came with a content type in UTF-8, without its byte order mark. A mark says how the text is encoded,
// before the charset of the content type. A text with neither is UTF-8. What cannot be read becomes U+FFFD.
func UTF8(text []byte, contentType string) []byte {
	_, parameters, err := mime.ParseMediaType(contentType)
	var declared encoding.Encoding
	if err == nil {
		declared, _ = charset.Lookup(parameters["charset"])
	}
	if declared == nil {
		declared = unicode.UTF8
	}
	out, err := io.ReadAll(transform.NewReader(bytes.NewReader(text), unicode.BOMOverride(declared.NewDecoder())))
	if err != nil {
		out = text
	}
	return bytes.ToValidUTF8(out, []byte("\uFFFD"))
}
