// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"
)

// keys are made once, because making them takes long.
var keys = sync.OnceValue(func() [2]*rsa.PrivateKey {
	var out [2]*rsa.PrivateKey
	for i := range out {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[i] = k
	}
	return out
})

// stand is the server of an issuer, whose keys and health a test decides.
type stand struct {
	*httptest.Server
	t     *testing.T
	clock *clocktesting.FakePassiveClock

	mu      sync.Mutex
	kid     string
	key     *rsa.PrivateKey
	second  *jose.JSONWebKey // nil for an issuer with one key
	away    bool
	fetches int
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, kid: "one", key: keys()[0], clock: clocktesting.NewFakePassiveClock(time.Now())}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.away {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		if r.URL.Path == "/.well-known/openid-configuration" {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": s.URL, "jwks_uri": s.URL + "/.well-known/jwks.json"})
			return
		}
		s.fetches++
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: s.kid, Use: "sig", Algorithm: "RS256"}}}
		if s.second != nil {
			set.Keys = append(set.Keys, *s.second)
		}
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *stand) set(f func(*stand)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *stand) fetched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

type object = map[string]any

// claims returns valid claims with changes; a nil value removes a claim.
func (s *stand) claims(changes ...object) object {
	now := s.clock.Now()
	c := object{"iss": s.URL, "aud": "platform", "sub": "user-1", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
	for _, change := range changes {
		maps.Copy(c, change)
	}
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// transaction returns the claims of a transaction token.
func (s *stand) transaction(changes ...object) object {
	return s.claims(append([]object{{"txn": "txn-1", "scope": "platform:tasks:create platform:tasks:get", "req_wl": "gateway"}}, changes...)...)
}

func (s *stand) sign(c object, typ string) string {
	return s.signWith(jose.RS256, s.key, s.kid, c, typ)
}

func (s *stand) signWith(alg jose.SignatureAlgorithm, key any, kid string, c object, typ string) string {
	o := &jose.SignerOptions{}
	if typ != "" {
		o = o.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, o)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(c).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// unsigned returns a token with algorithm none.
func unsigned(c object) string {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT","kid":"one"}`))
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return header + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
}

// public returns the public key as a text that an HMAC could be keyed with.
func (s *stand) public() []byte { return x509.MarshalPKCS1PublicKey(&s.key.PublicKey) }

// service returns a service that accepts both kinds of token of the issuer, with changes.
func (s *stand) service(change ...func(*Options)) *Service {
	s.t.Helper()
	o := Options{
		OIDC:         OIDC{Issuer: s.URL, Audience: "platform", AllowedSubjects: []string{"user-*", "a?c"}, Namespace: "team"},
		ContextToken: ContextToken{Profile: ProfileTransactionToken, Issuer: s.URL, Audience: "platform", Mode: ModeEnforce},
	}
	for _, f := range change {
		f(&o)
	}
	v, err := New(o, Kinds{"agents": {Read: "agents:read", Write: "agents:write"}, "tools": {Read: "tools:read"}, "sessions": {Read: "sessions:read", Write: "sessions:write"}, "tasks": {Of: ofTasks}}, s.clock, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// ofTasks asks for the family of the verb, and tasks:get for what is below a task.
func ofTasks(a authorizer.Attributes) ([]string, bool) {
	if a.GetSubresource() != "" {
		return []string{"tasks:get"}, true
	}
	return []string{"tasks:" + a.GetVerb()}, true
}

// local is the authenticator of the host: it knows one token.
var local = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
	if r.Header.Get("Authorization") != "Bearer local" {
		return nil, false, nil
	}
	extra := map[string][]string{"other": {"x"}, extraPrefix + "type": {TypeOIDC}, extraPrefix + "subject": {"user-1"}}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "local", Extra: extra}}, true, nil
})

// ask authenticates a request with headers, given as pairs of name and value.
func ask(t *testing.T, s *Service, headers ...string) (user.Info, error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, ok, err := s.Authenticator(local).AuthenticateRequest(r)
	if !ok || err != nil {
		return nil, err
	}
	return resp.User, nil
}
