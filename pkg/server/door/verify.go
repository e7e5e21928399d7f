// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// Reasons why a caller is not verified. They are logged and not answered.
var (
	errProof = errors.New("the proof is missing, is there twice, or is malformed")
	errWrong = errors.New("the proof is wrong")
	errTime  = errors.New("the time stamp is missing, malformed, or too far from now")
)

// Signature is an HMAC-SHA256, in hexadecimal, that a header of a request has.
type Signature struct {
	// Header is the name of the header.
	Header string
	// Prefix is what its value begins with, such as "sha256=" at GitHub.
	Prefix string
	// Stamp, if set, says that the signature covers a time, so that a request cannot be sent again later.
	Stamp *Stamp
}

// Stamp is a time in another header that a signature covers together with the body, as VERSION:SECONDS:BODY.
type Stamp struct {
	// Header is the name of the header that has the time, in seconds since 1970.
	Header string
	// Version is what the signed text begins with, such as "v0" at Slack.
	Version string
	// Tolerance is how far the time may be from now. Default: 5 minutes.
	Tolerance time.Duration
	// Clock is the clock to compare with. Default: the real clock.
	Clock clock.PassiveClock
}

const defaultTolerance = 5 * time.Minute

// Check returns nil if the request was signed with one of the secrets. There are several while one replaces another. Empty ones do
// not count; without any other the error is an API error, 503.
func (s Signature) Check(r *http.Request, body []byte, secrets ...[]byte) error {
	secrets, err := given(secrets)
	if err != nil {
		return err
	}
	text, err := only(r, s.Header)
	if err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(text, s.Prefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return errProof
	}
	var before []byte
	if s.Stamp != nil {
		if before, err = s.Stamp.check(r); err != nil {
			return err
		}
	}
	return matches(secrets, func(secret []byte) bool {
		mac := hmac.New(sha256.New, secret)
		mac.Write(before)
		mac.Write(body)
		return hmac.Equal(mac.Sum(nil), sum)
	})
}

// check returns what the signed text has before the body.
func (s Stamp) check(r *http.Request) ([]byte, error) {
	text, err := only(r, s.Header)
	if err != nil {
		return nil, errTime
	}
	seconds, err := strconv.ParseUint(text, 10, 40) // until the year 36812
	if err != nil {
		return nil, errTime
	}
	now := cmp.Or[clock.PassiveClock](s.Clock, clock.RealClock{}).Now()
	if apart := now.Sub(time.Unix(int64(seconds), 0)).Abs(); apart > cmp.Or(s.Tolerance, defaultTolerance) {
		return nil, errTime
	}
	return []byte(s.Version + ":" + text + ":"), nil
}

// Secret is a secret that a header of a request has.
type Secret struct {
	// Header is the name of the header. Default: Authorization, as a Bearer token.
	Header string
}

// Check returns nil if the request has one of the secrets. There are several while one replaces another. Empty ones do not count;
// without any other the error is an API error, 503.
func (s Secret) Check(r *http.Request, secrets ...[]byte) error {
	secrets, err := given(secrets)
	if err != nil {
		return err
	}
	text, err := only(r, cmp.Or(s.Header, "Authorization"))
	if err != nil {
		return err
	}
	if s.Header == "" {
		scheme, token, _ := strings.Cut(text, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return errProof
		}
		text = strings.TrimSpace(token)
	}
	sum := sha256.Sum256([]byte(text)) // of equal length, whatever was sent
	return matches(secrets, func(secret []byte) bool {
		want := sha256.Sum256(secret)
		return subtle.ConstantTimeCompare(want[:], sum[:]) == 1
	})
}

// given returns the secrets that are not empty.
func given(secrets [][]byte) (set [][]byte, err error) {
	for _, s := range secrets {
		if len(s) > 0 {
			set = append(set, s)
		}
	}
	if set == nil {
		return nil, apierrors.NewServiceUnavailable("the secret of this door is not set")
	}
	return set, nil
}

// only returns the one value of a header. Of two, another reader might take the other.
func only(r *http.Request, name string) (string, error) {
	if values := r.Header.Values(name); len(values) == 1 && values[0] != "" {
		return values[0], nil
	}
	return "", errProof
}

// matches tries all secrets, so that the time does not tell which one matched.
func matches(secrets [][]byte, try func([]byte) bool) error {
	found := false
	for _, s := range secrets {
		if try(s) {
			found = true
		}
	}
	if !found {
		return errWrong
	}
	return nil
}
