// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import "io"

// ReadAtMost returns the first limit bytes of r, and whether there are more.
func ReadAtMost(r io.Reader, limit int) (data []byte, more bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, false, err
	}
	return data[:min(len(data), limit)], len(data) > limit, nil
}
