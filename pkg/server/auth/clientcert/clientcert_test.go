// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package clientcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	testclock "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/server/auth/clientcert"
)

var now = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign makes a certificate that is valid for life. A nil signer makes an authority that signed itself.
func sign(t *testing.T, signer *authority, name string, isCA bool, life time.Duration) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(life),
		IsCA: isCA, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if signer == nil {
		signer = &authority{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer.cert, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return authority{c, key}
}

// world is an authenticator whose authorities can change, with a count of verified chains.
type world struct {
	*clientcert.Authenticator

	roots    *x509.CertPool
	clock    *testclock.FakePassiveClock
	verified int
}

func newWorld(ca authority) *world {
	w := &world{clock: testclock.NewFakePassiveClock(now)}
	w.trust(ca)
	options := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: w.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	w.Authenticator = clientcert.New(options, x509request.UserConversionFunc(func(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
		w.verified++
		return x509request.CommonNameUserConversion(chain)
	}), w.clock)
	return w
}

func (w *world) trust(cas ...authority) {
	w.roots = x509.NewCertPool()
	for _, ca := range cas {
		w.roots.AddCert(ca.cert)
	}
}

// asks returns the name of the caller that presents the certificates, or nothing.
func (w *world) asks(t *testing.T, presented ...authority) string {
	t.Helper()
	r := &http.Request{TLS: &tls.ConnectionState{}}
	for _, p := range presented {
		r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, p.cert)
	}
	resp, ok, err := w.AuthenticateRequest(r)
	if !ok {
		if resp != nil || len(presented) > 0 && err == nil {
			t.Errorf("refused with response %v and error %v", resp, err)
		}
		return ""
	}
	return resp.User.GetName()
}

func (w *world) expect(t *testing.T, want string, verified int, presented ...authority) {
	t.Helper()
	if got := w.asks(t, presented...); got != want {
		t.Errorf("authenticated %q, want %q", got, want)
	}
	if w.verified != verified {
		t.Errorf("%d chains verified so far, want %d", w.verified, verified)
	}
}

func TestOnce(t *testing.T) {
	ca := sign(t, nil, "ca", true, 24*time.Hour)
	anna, berta := sign(t, &ca, "anna", false, time.Hour), sign(t, &ca, "berta", false, time.Hour)
	w := newWorld(ca)
	w.expect(t, "", 0)
	w.expect(t, "anna", 1, anna)
	w.expect(t, "berta", 2, berta)
	w.expect(t, "anna", 2, anna)
	w.expect(t, "berta", 2, berta)
}

func TestExpiry(t *testing.T) {
	for name, lives := range map[string]struct{ ca, middle, leaf time.Duration }{
		"leaf":         {24 * time.Hour, 24 * time.Hour, time.Hour},
		"intermediate": {24 * time.Hour, time.Hour, 24 * time.Hour},
		"authority":    {time.Hour, 24 * time.Hour, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			ca := sign(t, nil, "ca", true, lives.ca)
			middle := sign(t, &ca, "middle", true, lives.middle)
			leaf := sign(t, &middle, "anna", false, lives.leaf)
			w := newWorld(ca)
			w.expect(t, "anna", 1, leaf, middle)
			w.clock.SetTime(now.Add(time.Hour))
			w.expect(t, "anna", 1, leaf, middle)
			w.clock.SetTime(now.Add(time.Hour + time.Second))
			w.expect(t, "", 1, leaf, middle)
			w.clock.SetTime(now.Add(-2 * time.Minute)) // not valid yet
			w.expect(t, "", 1, leaf, middle)
			w.clock.SetTime(now)
			w.expect(t, "anna", 2, leaf, middle)
		})
	}
}

func TestRotation(t *testing.T) {
	before, after := sign(t, nil, "ca", true, time.Hour), sign(t, nil, "ca", true, time.Hour)
	anna, berta := sign(t, &before, "anna", false, time.Hour), sign(t, &after, "berta", false, time.Hour)
	w := newWorld(before)
	w.expect(t, "anna", 1, anna)
	w.expect(t, "", 1, berta)
	w.trust(before, after)
	w.expect(t, "anna", 2, anna)
	w.expect(t, "berta", 3, berta)
	w.trust(after)
	w.expect(t, "", 3, anna)
	w.expect(t, "berta", 4, berta)
}

func TestForged(t *testing.T) {
	ca, other := sign(t, nil, "ca", true, time.Hour), sign(t, nil, "ca", true, time.Hour)
	middle := sign(t, &ca, "middle", true, time.Hour)
	anna := sign(t, &middle, "anna", false, time.Hour)
	w := newWorld(ca)
	w.expect(t, "anna", 1, anna, middle)
	w.expect(t, "", 1, anna)                                                           // without the intermediate that signed it
	w.expect(t, "", 1, sign(t, &other, "anna", false, time.Hour), middle)              // of another authority of the same name
	w.expect(t, "", 1, sign(t, &anna, "root", false, time.Hour), anna, middle)         // signed with a certificate that may not sign
	w.expect(t, "middle", 2, middle, anna)                                             // the order counts
	w.expect(t, "", 2, sign(t, nil, "anna", false, time.Hour), anna, middle)           // a verified chain after one's own certificate
	w.expect(t, "anna", 2, anna, middle)                                               // refusals change nothing
	w.expect(t, "anna", 3, anna, middle, sign(t, nil, "unrelated", true, 2*time.Hour)) // other certificates: verified anew
}
