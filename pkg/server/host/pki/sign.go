// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// names are the names that the serving certificate is valid for, sorted.
type names struct {
	dns []string
	ips []net.IP
}

func serverNames(extra []string) names {
	all := append([]string{"localhost", "127.0.0.1", "::1"}, extra...)
	if h, err := os.Hostname(); err == nil {
		all = append(all, h)
	}
	slices.Sort(all)
	var n names
	for _, s := range slices.Compact(all) {
		switch ip := net.ParseIP(s); {
		case ip != nil && ip.IsUnspecified(): // the unspecified address is not a name
		case ip != nil:
			n.ips = append(n.ips, ip)
		case s != "":
			n.dns = append(n.dns, s)
		}
	}
	return n
}

func (n names) match(c *x509.Certificate) bool {
	return slices.Equal(n.dns, c.DNSNames) && slices.EqualFunc(n.ips, c.IPAddresses, net.IP.Equal)
}

func (n names) servingTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    n.dns,
		IPAddresses: n.ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func clientTemplate(name string, groups []string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("private key: %w", err)
	}
	b, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("private key: %w", err)
	}
	return key, b, nil
}

// selfSign creates the authority's certificate. Its subject never changes, so a
// leaf that was signed under an earlier certificate of the same key still
// verifies.
func (a *Authority) selfSign(key *ecdsa.PrivateKey) (*x509.Certificate, []byte, error) {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: a.name + "-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return a.sign(t, t, key, key, caLife)
}

// issue signs a leaf certificate with a new key of its own.
func (a *Authority) issue(template *x509.Certificate, life time.Duration) (pair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	c, certPEM, err := a.sign(template, a.ca.cert, key, a.ca.key, life)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: c, certPEM: certPEM, key: key, keyPEM: keyPEM}, nil
}

func (a *Authority) sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey, life time.Duration) (*x509.Certificate, []byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("certificate serial number: %w", err)
	}
	now := a.clock.Now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-backdate).UTC()
	template.NotAfter = now.Add(life).UTC()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %q: %w", template.Subject.CommonName, err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %q: %w", template.Subject.CommonName, err)
	}
	b, err := cert.EncodeCertificates(c)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %q: %w", template.Subject.CommonName, err)
	}
	return c, b, nil
}
