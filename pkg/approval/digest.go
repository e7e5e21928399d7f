// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/platform-ai/platform/pkg/canonical"
)

// Digest returns the lower-case hex SHA-256 of raw as canonical JSON. The error is canonical.ErrNone.
func Digest(raw []byte) (string, error) {
	c, err := canonical.Form(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:]), nil
}
