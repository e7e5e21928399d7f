// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientcert authenticates callers by their client certificates. It verifies a certificate once and remembers
// the verdict, because verifying costs more processor time than most requests do.
package clientcert

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// remembered is the number of certificates whose verdict is kept. Beyond it the one that was used longest ago is
// verified again.
const remembered = 4096

// Authenticator verifies client certificates. A verdict holds for exactly the certificates that a client presented, for
// as long as the authorities stay the same and every certificate of the verified chain is valid. The handshake of each
// connection proves that the client has the key. Refusals are not remembered.
type Authenticator struct {
	options x509request.VerifyOptionFunc
	user    x509request.UserConversion
	clock   clock.PassiveClock
	seen    *lru.Cache
}

// verdict is the answer for a chain that was verified.
type verdict struct {
	roots         *x509.CertPool // the authorities that verified it; a reload makes a new pool
	from, to      time.Time      // both included
	authenticated *authenticator.Response
}

// New returns an authenticator that verifies with options, which may change, and names the owner of a chain with user.
func New(options x509request.VerifyOptionFunc, user x509request.UserConversion, c clock.PassiveClock) *Authenticator {
	return &Authenticator{options: options, user: user, clock: c, seen: lru.New(remembered)}
}

// AuthenticateRequest has no opinion on a request without a client certificate. Answers of
// different requests share the user, which must not be changed.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	options, ok := a.options()
	if !ok {
		return nil, false, nil
	}
	id, now := digest(r.TLS.PeerCertificates), a.clock.Now()
	if v, ok := a.seen.Get(id); ok {
		v := v.(verdict) //nolint:forcetypeassert // only verdicts are added
		if v.roots == options.Roots && !now.Before(v.from) && !now.After(v.to) {
			resp := *v.authenticated // callers may change it
			return &resp, true, nil
		}
		a.seen.Remove(id)
	}
	options.CurrentTime = now
	v := verdict{roots: options.Roots}
	resp, ok, err := x509request.New(options, x509request.UserConversionFunc(func(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
		v.from, v.to = validity(chain)
		return a.user.User(chain)
	})).AuthenticateRequest(r)
	if err == nil && ok && options.Roots != nil {
		kept := *resp
		v.authenticated = &kept
		a.seen.Add(id, v)
	}
	return resp, ok, err
}

// validity is the time in which all certificates of a chain are valid.
func validity(chain []*x509.Certificate) (from, to time.Time) {
	from, to = chain[0].NotBefore, chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotBefore.After(from) {
			from = c.NotBefore
		}
		if c.NotAfter.Before(to) {
			to = c.NotAfter
		}
	}
	return from, to
}

// digest identifies the certificates that a client presented, in their order.
func digest(certs []*x509.Certificate) [sha256.Size]byte {
	if len(certs) == 1 {
		return sha256.Sum256(certs[0].Raw)
	}
	h := sha256.New()
	var length [8]byte
	for _, c := range certs {
		binary.BigEndian.PutUint64(length[:], uint64(len(c.Raw)))
		h.Write(length[:])
		h.Write(c.Raw)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
