// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Decode decodes one JSON value of any shape. Numbers are json.Number and keep their digits, which a float64 would round: a name
// such as 1972435959496572929 would be another one.
func Decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the JSON")
	}
	return v, nil
}
