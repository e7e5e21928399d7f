// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/durable"
)

const (
	// sealDomain keeps these HMACs apart from others of the same key.
	sealDomain = "platform.ai/requested-by-stamp/v1"
	// sealKeySize is the length of a new key, and minSealKey the minimum of one that is given, in bytes.
	sealKeySize, minSealKey = 64, 32
)

// Seal proves that this server recorded the requester of a task. The proof contains the UID of the task, so it is of no
// use on another one.
type Seal struct{ key []byte }

// OpenSeal reads the key from a file, and makes a new one if there is no file.
func OpenSeal(path string) (*Seal, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("key of requesters: %w", err)
	}
	if len(key) < minSealKey {
		return nil, fmt.Errorf("key of requesters: %s has %d bytes, and must have at least %d: restore it, or remove it; tasks whose requester was recorded with another key then count as unverified", path, len(key), minSealKey)
	}
	return &Seal{key}, nil
}

// makeKey writes a key durably before it is used.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, sealKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return key, durable.WriteFile(path, key)
}

// Stamp returns the seal of a requester on a task: an HMAC-SHA-256 in lower-case hex over the domain, the UID, the
// issuer and the subject, each ended by a NUL byte.
func (s *Seal) Stamp(uid types.UID, r *v1alpha1.TaskRequester) string {
	if s == nil || len(s.key) < minSealKey {
		return ""
	}
	mac := hmac.New(sha256.New, s.key)
	for _, part := range []string{sealDomain, string(uid), r.Issuer, r.Subject} {
		_, _ = mac.Write(append([]byte(part), 0)) // never fails
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// Verified reports whether the task's requester is the one that this server recorded for that task. Nothing is verified
// without a key.
func (s *Seal) Verified(t *v1alpha1.Task) bool {
	r := t.Spec.RequestedBy
	if r == nil {
		return false
	}
	want := s.Stamp(t.UID, r)
	return want != "" && hmac.Equal([]byte(want), []byte(t.Annotations[v1alpha1.AnnotationRequestedByStamp]))
}

// Derive returns a key for another purpose, which says nothing about the key of the seals. It is the same as long as that one is. The
// name of the purpose must be one of its own.
func (s *Seal) Derive(purpose string) []byte {
	mac := hmac.New(sha256.New, s.key)
	_, _ = mac.Write(append([]byte("platform.ai/key/"+purpose), 0)) // never fails
	return mac.Sum(nil)
}
