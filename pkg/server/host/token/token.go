// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token issues and checks the ServiceAccount tokens of a standalone host: signed JWTs with the claims of
// Kubernetes' own tokens, for one or more audiences, with an expiry, and optionally bound to a Secret or a Task.
//
// A token is valid only as long as the objects that it names. Each use looks up the ServiceAccount and the bound
// object and compares their UIDs, so a token ends with the first of them that is gone. A token that is bound to a
// Task also names the Task's run at that time; registry/guard checks that this run has not ended. Only the check of
// the signature, which is the expensive part, is cached.
package token

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/clock"
)

// DefaultIssuer is both the iss claim and the audience of the API server itself, as in a Kubernetes cluster.
const DefaultIssuer = "https://kubernetes.default.svc"

// credentialIDPrefix marks a credential ID as the ID of a JWT (KEP-4193).
const credentialIDPrefix = "JTI="

// Ref identifies one object permanently: an object that reuses its name has another UID.
type Ref struct {
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"`
}

// privateClaims are the claims under "kubernetes.io", in Kubernetes' form. The claim task is the platform's own
// addition.
type privateClaims struct {
	Kubernetes struct {
		Namespace      string `json:"namespace,omitempty"`
		ServiceAccount Ref    `json:"serviceaccount"`
		Secret         *Ref   `json:"secret,omitempty"`
		Task           *run   `json:"task,omitempty"`
	} `json:"kubernetes.io"`
}

// run identifies a task and one of its runs.
type run struct {
	Ref
	// Run is nil in tokens that were issued before tokens named a run.
	Run *string `json:"run,omitempty"`
}

// Claims describe the subject, audiences and lifetime of a new token.
type Claims struct {
	Namespace      string
	ServiceAccount Ref
	// Secret or Task is the object that the token is bound to, if any, in the same namespace.
	Secret, Task *Ref
	// Run is the current run of the Task; empty if there is none.
	Run string
	// Audiences are the servers that may accept the token. Default: the API server.
	Audiences []string
	// Life is how long the token is valid from now.
	Life time.Duration
}

// Issued is a new token.
type Issued struct {
	// Token is the secret token itself.
	Token string
	// CredentialID identifies the token in audit logs without revealing it.
	CredentialID string
	Expires      time.Time
}

// Signer issues tokens.
type Signer struct {
	issuer    string
	audiences []string
	clock     clock.PassiveClock
	jose      jose.Signer
}

// SignerOptions configure a Signer.
type SignerOptions struct {
	Key *ecdsa.PrivateKey
	// Issuer is the iss claim. Default: DefaultIssuer.
	Issuer string
	// Audiences are the audiences of a token whose Claims name none. Default: the issuer.
	Audiences []string
	// Clock provides the time for iat. Default: the real clock.
	Clock clock.PassiveClock
}

// NewSigner makes a Signer. It fails on a key that is not P-256.
func NewSigner(o SignerOptions) (*Signer, error) {
	if o.Issuer == "" {
		o.Issuer = DefaultIssuer
	}
	if len(o.Audiences) == 0 {
		o.Audiences = []string{o.Issuer}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	id, err := keyID(&o.Key.PublicKey)
	if err != nil {
		return nil, err
	}
	s, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.ES256,
		Key:       jose.JSONWebKey{Key: o.Key, KeyID: id, Algorithm: string(jose.ES256)},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("token signer: %w", err)
	}
	return &Signer{issuer: o.Issuer, audiences: o.Audiences, clock: o.Clock, jose: s}, nil
}

// Sign issues a token. The caller must check that the ServiceAccount and the bound object exist.
func (s *Signer) Sign(c Claims) (Issued, error) {
	// JWT times are whole seconds; truncating both keeps exp - iat exact.
	now := s.clock.Now().Truncate(time.Second)
	if len(c.Audiences) == 0 {
		c.Audiences = s.audiences
	}
	id := string(uuid.NewUUID())
	public := jwt.Claims{
		Issuer:    s.issuer,
		Subject:   serviceaccount.MakeUsername(c.Namespace, c.ServiceAccount.Name),
		Audience:  c.Audiences,
		IssuedAt:  jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now),
		Expiry:    jwt.NewNumericDate(now.Add(c.Life)),
		ID:        id,
	}
	var private privateClaims
	private.Kubernetes.Namespace = c.Namespace
	private.Kubernetes.ServiceAccount = c.ServiceAccount
	private.Kubernetes.Secret = c.Secret
	if c.Task != nil {
		private.Kubernetes.Task = &run{Ref: *c.Task, Run: &c.Run}
	}
	text, err := jwt.Signed(s.jose).Claims(public).Claims(private).Serialize()
	if err != nil {
		return Issued{}, fmt.Errorf("sign token of %s: %w", public.Subject, err)
	}
	return Issued{Token: text, CredentialID: credentialIDPrefix + id, Expires: now.Add(c.Life)}, nil
}

// keyID derives the kid header from the key, as Kubernetes does.
func keyID(key *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("token key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
