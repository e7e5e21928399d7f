// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token makes and checks the ServiceAccount tokens of a standalone
// host: signed JWTs with the claims of Kubernetes' own tokens, for one or more
// audiences, with an end, and optionally bound to a Secret or a Task.
//
// A token is worth no more than what it is bound to: each use looks up the
// ServiceAccount and the bound object and compares their UIDs, so a token ends
// with the first of them. One that is bound to a Task also names the Task's run
// at that time; that the run still goes on is for registry/guard to see. Only the check of the signature, the expensive part,
// is remembered.
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

// DefaultIssuer is the iss claim and the audience of the API server itself, as
// in a Kubernetes cluster.
const DefaultIssuer = "https://kubernetes.default.svc"

// credentialIDPrefix marks a credential ID as the ID of a JWT (KEP-4193).
const credentialIDPrefix = "JTI="

// Ref names one object for good: a name that is used again has another UID.
type Ref struct {
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"`
}

// privateClaims stand under "kubernetes.io", as Kubernetes writes them; task is
// ours.
type privateClaims struct {
	Kubernetes struct {
		Namespace      string `json:"namespace,omitempty"`
		ServiceAccount Ref    `json:"serviceaccount"`
		Secret         *Ref   `json:"secret,omitempty"`
		Task           *run   `json:"task,omitempty"`
	} `json:"kubernetes.io"`
}

// run names a task and which run of it is meant.
type run struct {
	Ref
	// Run is nil in tokens that were made before they named a run.
	Run *string `json:"run,omitempty"`
}

// Claims say whom a new token stands for.
type Claims struct {
	Namespace      string
	ServiceAccount Ref
	// Secret or Task is the object the token is bound to, if any, in the same
	// namespace.
	Secret, Task *Ref
	// Run is the run of the Task that is meant; empty is none.
	Run string
	// Audiences are who may accept the token. Default: the API server.
	Audiences []string
	// Life is how long the token is valid from now.
	Life time.Duration
}

// Issued is a new token.
type Issued struct {
	// Token is the secret itself.
	Token string
	// CredentialID names the token in audit logs without being one.
	CredentialID string
	Expires      time.Time
}

// Signer makes tokens.
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
	// Audiences are those of a token that asks for none. Default: the issuer.
	Audiences []string
	// Clock gives iat. Default: the real clock.
	Clock clock.PassiveClock
}

// NewSigner fails on a key that is not P-256.
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

// Sign makes a token. Whether the ServiceAccount and the bound object exist is
// the caller's business.
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
