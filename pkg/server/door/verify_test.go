// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
)

func with(header ...string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// The example in GitHub's documentation of webhooks.
func TestSignatureOfGitHub(t *testing.T) {
	s := Signature{Header: "X-Hub-Signature-256", Prefix: "sha256="}
	r := with("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	key := []byte("It's a Secret to Everybody")
	if err := s.Check(r, []byte("Hello, World!"), key); err != nil {
		t.Error(err)
	}
	if err := s.Check(r, []byte("Hello, World?"), key); !errors.Is(err, errWrong) {
		t.Error(err)
	}
	for _, secrets := range [][][]byte{nil, {nil}, {{}, {}}} {
		if err := s.Check(r, []byte("Hello, World!"), secrets...); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("without a secret: %v", err)
		}
	}
}

// A signature that covers a time is accepted within the tolerance, and with no other time.
func TestStampedSignature(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := Signature{Header: "X-Slack-Signature", Prefix: "v0=", Stamp: &Stamp{Header: "X-Slack-Request-Timestamp", Version: "v0", Clock: clocktesting.NewFakePassiveClock(now)}}
	key, body := []byte("key"), []byte("body")
	sign := func(text string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return "v0=" + hex.EncodeToString(mac.Sum(nil))
	}
	for _, tc := range []struct {
		signed, sent string
		want         error
	}{
		{"0", "0", nil},
		{"-300", "-300", nil},
		{"300", "300", nil},
		{"-301", "-301", errTime},
		{"301", "301", errTime},
		{"-301", "-300", errWrong},
		{"0", "1", errWrong}, // a request of before, sent again with a new time
	} {
		at := func(offset string) string {
			n, err := strconv.ParseInt(offset, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return strconv.FormatInt(now.Unix()+n, 10)
		}
		r := with("X-Slack-Signature", sign("v0:"+at(tc.signed)+":body"), "X-Slack-Request-Timestamp", at(tc.sent))
		if err := s.Check(r, body, key); !errors.Is(err, tc.want) {
			t.Errorf("%s sent as %s: %v", tc.signed, tc.sent, err)
		}
	}
	for _, stamp := range []string{"", "now", "-1", "+1800000000", "1800000000.0", "1e9", "99999999999999999999", "1800000000 "} {
		r := with("X-Slack-Signature", sign("v0:"+stamp+":body"), "X-Slack-Request-Timestamp", stamp)
		if err := s.Check(r, body, key); !errors.Is(err, errTime) {
			t.Errorf("%q: %v", stamp, err)
		}
	}
	if err := s.Check(with("X-Slack-Signature", sign("body")), body, key); !errors.Is(err, errTime) {
		t.Errorf("without a time: %v", err)
	}
}

func TestSecret(t *testing.T) {
	secrets := [][]byte{[]byte("old"), nil, []byte("new")}
	for _, tc := range []struct {
		header string
		sent   []string
		want   error
	}{
		{"", []string{"Authorization", "Bearer old"}, nil},
		{"", []string{"Authorization", "bearer new"}, nil},
		{"", []string{"Authorization", "Bearer  new"}, nil},
		{"", []string{"Authorization", "Bearer other"}, errWrong},
		{"", []string{"Authorization", "Bearer "}, errWrong},
		{"", []string{"Authorization", "Bearer newer"}, errWrong},
		{"", []string{"Authorization", "Basic old"}, errProof},
		{"", []string{"Authorization", "old"}, errProof},
		{"", []string{"Authorization", "Bearer old", "Authorization", "Bearer old"}, errProof},
		{"", nil, errProof},
		{"X-Gitlab-Token", []string{"X-Gitlab-Token", "new"}, nil},
		{"X-Gitlab-Token", []string{"X-Gitlab-Token", ""}, errProof},
		{"X-Gitlab-Token", []string{"X-Gitlab-Token", "Bearer new"}, errWrong},
		{"X-Gitlab-Token", []string{"Authorization", "Bearer new"}, errProof},
	} {
		if err := (Secret{Header: tc.header}).Check(with(tc.sent...), secrets...); !errors.Is(err, tc.want) {
			t.Errorf("%s %q: %v, want %v", tc.header, tc.sent, err, tc.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8::1]:1": "2001:db8::/64", "[2001:db8::ffff:1]:2": "2001:db8::/64",
		"[2001:db8:0:1::1]:1": "2001:db8:0:1::/64", "[fe80::1%eth0]:1": "fe80::/64", "pipe": "pipe",
	} {
		if got := addressOf(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
