// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/canonical"
)

// Headers of a request that changes something.
const (
	HeaderInstance   = "X-Platform-Harness-Instance"
	HeaderEpoch      = "X-Platform-Harness-Epoch"
	HeaderGeneration = "X-Platform-Harness-Generation"
	HeaderOperation  = "X-Platform-Harness-Operation"
	HeaderDigest     = "X-Platform-Harness-Digest"
	HeaderCapability = "X-Platform-Harness-Capability"
)

const (
	// MinSecret is how many bytes the controller token and the operation key have at least.
	MinSecret = 32
	// capabilityLife is how long a capability is good for, and maxCapabilityLife the longest that a runtime accepts.
	capabilityLife    = 5 * time.Minute
	maxCapabilityLife = 15 * time.Minute
)

// Fence is what the headers of a request say about it.
type Fence struct {
	Instance   string
	Epoch      uint64
	Generation uint64
	Operation  string
	Digest     string
}

// asked is what a digest is made of.
type asked struct {
	Protocol   string          `json:"protocol"`
	Method     string          `json:"method"`
	Path       string          `json:"path"`
	Generation uint64          `json:"generation"`
	Operation  string          `json:"operation"`
	Body       json.RawMessage `json:"body,omitempty"`
	BodySHA256 string          `json:"bodySHA256,omitempty"`
}

// Digest returns the digest of a request. body is its JSON, or empty.
func Digest(method, path string, generation uint64, operation string, body []byte) (string, error) {
	if len(body) == 0 {
		body = []byte("null")
	}
	return digestOf(asked{Protocol, method, path, generation, operation, body, ""})
}

// DigestBytes returns the digest of a request whose body is not JSON; sum is the SHA-256 of the body.
func DigestBytes(method, path string, generation uint64, operation string, sum [sha256.Size]byte) (string, error) {
	return digestOf(asked{Protocol, method, path, generation, operation, nil, hex.EncodeToString(sum[:])})
}

func digestOf(v any) (string, error) {
	form, err := canonicalOf(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func canonicalOf(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the request has no canonical form: %w", err)
	}
	return canonical.Form(raw)
}

// ArgumentsDigest returns the digest of the arguments of a call, which are JSON, or nil.
func ArgumentsDigest(arguments json.RawMessage) (string, error) {
	if len(arguments) == 0 {
		arguments = []byte("null")
	}
	form, err := canonical.Form(arguments)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Capability returns the capability of a fence, which is good until a time.
func (f Fence) Capability(key []byte, until time.Time) (string, error) {
	expires := until.Unix()
	form, err := canonicalOf(struct {
		Protocol   string `json:"protocol"`
		Instance   string `json:"instance"`
		Epoch      uint64 `json:"epoch"`
		Generation uint64 `json:"generation"`
		Operation  string `json:"operation"`
		Digest     string `json:"digest"`
		Expires    int64  `json:"expires"`
	}{Protocol, f.Instance, f.Epoch, f.Generation, f.Operation, f.Digest, expires})
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(form)
	return strconv.FormatInt(expires, 10) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Verify returns an error unless a capability is one of this fence that is good now.
func (f Fence) Verify(key []byte, capability string, now time.Time) error {
	text, _, _ := strings.Cut(capability, ".")
	expires, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("the capability must be EXPIRES.MAC")
	}
	until := time.Unix(expires, 0)
	want, err := f.Capability(key, until)
	switch {
	case err != nil:
		return err
	case !hmac.Equal([]byte(want), []byte(capability)):
		return errors.New("the capability is not one of this request")
	case now.After(until):
		return errors.New("the capability has expired")
	case until.Sub(now) > maxCapabilityLife:
		return fmt.Errorf("the capability is good for more than %s", maxCapabilityLife)
	}
	return nil
}

// Set writes the headers, except for the capability.
func (f Fence) Set(h http.Header) {
	h.Set(HeaderInstance, f.Instance)
	h.Set(HeaderEpoch, strconv.FormatUint(f.Epoch, 10))
	h.Set(HeaderGeneration, strconv.FormatUint(f.Generation, 10))
	h.Set(HeaderOperation, f.Operation)
	h.Set(HeaderDigest, f.Digest)
}

// ReadFence returns the fence of the headers of a request.
func ReadFence(h http.Header) (f Fence, err error) {
	for _, name := range []string{HeaderInstance, HeaderEpoch, HeaderGeneration, HeaderOperation, HeaderDigest} {
		if len(h.Values(name)) != 1 {
			return f, fmt.Errorf("the header %s must be there once", name)
		}
	}
	f = Fence{Instance: h.Get(HeaderInstance), Operation: h.Get(HeaderOperation), Digest: h.Get(HeaderDigest)}
	if err := errors.Join(checkName(HeaderInstance, f.Instance), checkName(HeaderOperation, f.Operation)); err != nil {
		return f, err
	}
	if f.Epoch, err = number(h, HeaderEpoch); err != nil {
		return f, err
	}
	if f.Generation, err = number(h, HeaderGeneration); err != nil {
		return f, err
	}
	switch {
	case f.Epoch == 0:
		return f, fmt.Errorf("%s must be at least 1", HeaderEpoch)
	case !digest.MatchString(f.Digest):
		return f, fmt.Errorf("%s must be sha256: and 64 lower-case hexadecimal digits", HeaderDigest)
	}
	return f, nil
}

func number(h http.Header, header string) (uint64, error) {
	text := h.Get(header)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > maxInteger || text != strconv.FormatUint(n, 10) {
		return 0, fmt.Errorf("%s must be a number from 0 to %d, without leading zeros", header, uint64(maxInteger))
	}
	return n, nil
}
