// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki manages the keys and certificates of a standalone host in one
// directory: a certificate authority, the serving certificate, the
// administrator's client certificate and the key that signs ServiceAccount
// tokens.
//
// Everything is created once and reused. A leaf certificate is created again
// when it is about to expire, when its names changed, or when half of its pair
// is missing. The authority is renewed with its own key, so that what it signed
// before stays valid. Every file is readable by its owner only. A file that
// exists but cannot be read as what it should be is an error and is never
// replaced, because it may be the only copy.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/durable"
)

// AdminName and AdminGroup identify the administrator, whose certificate is in
// the generated kubeconfig. The group is Kubernetes' superuser group.
const (
	AdminName  = "platform-admin"
	AdminGroup = "system:masters"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// A certificate is renewed when less than a third of its lifetime is left,
	// so that a host that is started once a month never has an expired one.
	renewDivisor = 3
	// backdate tolerates clients whose clock is slightly slow.
	backdate = 5 * time.Minute

	defaultName = "platform-standalone"
	caName      = "ca"
	servingName = "serving"
	adminName   = "admin"
	saKeyFile   = "sa.key"
)

// ErrNoKey means that the authority's certificate exists but its key does not,
// so that nothing can be signed.
var ErrNoKey = errors.New("the certificate authority's key is missing")

// Options says where the files are and which names the server has.
type Options struct {
	// Dir is the directory of the files. It is created with mode 0700 if it
	// does not exist.
	Dir string
	// Hosts are additional DNS names or IP addresses of the server. localhost,
	// 127.0.0.1, ::1 and the host's own name are always included.
	Hosts []string
	// Name is the name of the server in the subjects of the authority and of
	// the serving certificate. Default: platform-standalone.
	Name string
	// ServingOnly omits the administrator's certificate and the key of
	// ServiceAccount tokens, for a server whose users are authenticated
	// elsewhere.
	ServingOnly bool
	// Clock decides what has expired. Default: the real clock.
	Clock clock.PassiveClock
}

// Authority is an opened directory. Its methods may be called concurrently.
type Authority struct {
	dir   string
	clock clock.PassiveClock
	hosts names
	name  string
	// servingOnly is Options.ServingOnly. If it is set, admin and saKey are
	// empty.
	servingOnly bool

	mu sync.RWMutex // guards ca and admin; the key of ca never changes
	ca pair
	// admin is kept in memory because it is embedded in kubeconfig files.
	admin pair
	saKey *ecdsa.PrivateKey
}

// Open reads the directory, creates what is missing and renews what is about to
// expire. Its error names the file that caused it.
func Open(o Options) (*Authority, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("pki folder: %w", err)
	}
	if err := os.Chmod(o.Dir, 0o700); err != nil { //nolint:gosec // a directory needs its x bit
		return nil, fmt.Errorf("pki folder: %w", err)
	}
	if o.Name == "" {
		o.Name = defaultName
	}
	a := &Authority{dir: o.Dir, clock: o.Clock, hosts: serverNames(o.Hosts), name: o.Name, servingOnly: o.ServingOnly}
	if _, err := a.Renew(); err != nil {
		return nil, err
	}
	if o.ServingOnly {
		return a, nil
	}
	key, err := loadOrMakeKey(a.path(saKeyFile))
	if err != nil {
		return nil, err
	}
	a.saKey = key
	return a, nil
}

// Renew creates again whatever is missing or about to expire, and reports
// whether it wrote anything. A long-running server calls it periodically. If it
// wrote anything, the server then writes its kubeconfig again and reloads the
// serving files.
func (a *Authority) Renew() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changedCA, err := a.renewCA()
	if err != nil {
		return false, err
	}
	_, changedServing, err := a.renewLeaf(servingName, a.hosts.servingTemplate(a.name), func(c *x509.Certificate) bool {
		return a.hosts.match(c)
	})
	if err != nil || a.servingOnly {
		return changedCA || changedServing, err
	}
	admin, changedAdmin, err := a.renewLeaf(adminName, clientTemplate(AdminName, []string{AdminGroup}), func(c *x509.Certificate) bool {
		return c.Subject.CommonName == AdminName && slices.Equal(c.Subject.Organization, []string{AdminGroup})
	})
	if err != nil {
		return false, err
	}
	a.admin = admin
	return changedCA || changedServing || changedAdmin, nil
}

// CAFile returns the path of the authority's certificate, which verifies both
// server and client certificates.
func (a *Authority) CAFile() string { return a.path(caName + ".crt") }

// CAPEM returns the content of CAFile.
func (a *Authority) CAPEM() []byte {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.ca.certPEM)
}

// ServingFiles returns the paths of the server's certificate and key. They are
// replaced atomically on renewal, so a process that watches them may reload
// them.
func (a *Authority) ServingFiles() (certFile, keyFile string) {
	return a.path(servingName + ".crt"), a.path(servingName + ".key")
}

// ServiceAccountKey returns the key that signs ServiceAccount tokens.
func (a *Authority) ServiceAccountKey() *ecdsa.PrivateKey { return a.saKey }

// IssueClient signs a new client certificate for a user and its groups, valid
// for a year. It returns the certificate and its key as PEM and stores nothing.
func (a *Authority) IssueClient(name string, groups []string) (certPEM, keyPEM []byte, err error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	p, err := a.issue(clientTemplate(name, groups), leafLife)
	if err != nil {
		return nil, nil, err
	}
	return p.certPEM, p.keyPEM, nil
}

func (a *Authority) path(name string) string { return filepath.Join(a.dir, name) }

// fresh reports whether enough of a certificate's lifetime is left.
func (a *Authority) fresh(c *x509.Certificate) bool {
	now := a.clock.Now()
	return !now.Before(c.NotBefore) && c.NotAfter.Sub(now) > c.NotAfter.Sub(c.NotBefore)/renewDivisor
}

// renewCA loads the authority, creates it, or renews its certificate with the
// same key. The caller holds mu.
func (a *Authority) renewCA() (bool, error) {
	p, err := a.load(caName)
	switch {
	case err != nil:
		return false, err
	case p.cert != nil && p.key == nil:
		return false, fmt.Errorf("%w: restore %s, or remove %s to start with a new authority", ErrNoKey, a.path(caName+".key"), a.dir)
	case p.cert != nil && a.fresh(p.cert) && samePublic(p.cert.PublicKey, p.key):
		a.ca = p
		return false, nil
	}
	if p.key == nil {
		if p.key, p.keyPEM, err = newKey(); err != nil {
			return false, err
		}
		if err := durable.WriteFile(a.path(caName+".key"), p.keyPEM); err != nil {
			return false, err
		}
	}
	if p.cert, p.certPEM, err = a.selfSign(p.key); err != nil {
		return false, err
	}
	if err := durable.WriteFile(a.path(caName+".crt"), p.certPEM); err != nil {
		return false, err
	}
	a.ca = p
	return true, nil
}

// renewLeaf loads the pair NAME.crt and NAME.key, or creates it again. fits
// reports whether a loaded certificate still has the required content.
func (a *Authority) renewLeaf(name string, template *x509.Certificate, fits func(*x509.Certificate) bool) (pair, bool, error) {
	p, err := a.load(name)
	if err != nil {
		return pair{}, false, err
	}
	if p.cert != nil && p.key != nil && a.fresh(p.cert) && fits(p.cert) &&
		samePublic(p.cert.PublicKey, p.key) && p.cert.CheckSignatureFrom(a.ca.cert) == nil {
		return p, false, nil
	}
	if p, err = a.issue(template, leafLife); err != nil {
		return pair{}, false, err
	}
	// Write the key first. A crash between the two writes leaves a mismatched
	// pair, which the next start detects and creates again.
	if err := durable.WriteFile(a.path(name+".key"), p.keyPEM); err != nil {
		return pair{}, false, err
	}
	if err := durable.WriteFile(a.path(name+".crt"), p.certPEM); err != nil {
		return pair{}, false, err
	}
	return p, true, nil
}

// pair is a certificate with its key. A half that does not exist is nil.
type pair struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

func (a *Authority) load(name string) (pair, error) {
	var p pair
	var err error
	if p.certPEM, err = readFile(a.path(name + ".crt")); err != nil {
		return pair{}, err
	}
	if p.certPEM != nil {
		certs, err := cert.ParseCertsPEM(p.certPEM)
		if err != nil {
			return pair{}, fmt.Errorf("certificate %s: %w", a.path(name+".crt"), err)
		}
		p.cert = certs[0]
	}
	if p.keyPEM, err = readFile(a.path(name + ".key")); err != nil {
		return pair{}, err
	}
	if p.keyPEM != nil {
		if p.key, err = parseKey(a.path(name+".key"), p.keyPEM); err != nil {
			return pair{}, err
		}
	}
	return p, nil
}

func loadOrMakeKey(path string) (*ecdsa.PrivateKey, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if b != nil {
		return parseKey(path, b)
	}
	key, b, err := newKey()
	if err != nil {
		return nil, err
	}
	return key, durable.WriteFile(path, b)
}

func parseKey(path string, b []byte) (*ecdsa.PrivateKey, error) {
	k, err := keyutil.ParsePrivateKeyPEM(b)
	if err != nil {
		return nil, fmt.Errorf("private key %s: %w", path, err)
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("private key %s: want ECDSA, have %T", path, k)
	}
	return key, nil
}

func samePublic(pub any, key crypto.Signer) bool {
	p, ok := pub.(*ecdsa.PublicKey)
	return ok && p.Equal(key.Public())
}

// KeyPair returns the server's certificate in the form that crypto/tls uses.
func (a *Authority) KeyPair() (tls.Certificate, error) {
	certFile, keyFile := a.ServingFiles()
	return tls.LoadX509KeyPair(certFile, keyFile)
}
