// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
)

// TestOwnHost: on loopback, requests for names that are not this machine's are refused. The secure port also has the names of its
// certificate.
func TestOwnHost(t *testing.T) {
	chain, key, err := cert.GenerateSelfSignedCertKey("myhost", nil, []string{"api.example", "*.team.example"})
	if err != nil {
		t.Fatal(err)
	}
	content, err := dynamiccertificates.NewStaticCertKeyContent("serving", chain, key)
	if err != nil {
		t.Fatal(err)
	}
	secure := certified(&genericapiserver.SecureServingInfo{Cert: content})
	loopback, anywhere := &net.TCPAddr{IP: net.IPv6loopback, Port: 6443}, &net.TCPAddr{IP: net.IPv4zero, Port: 6443}
	for host, want := range map[string]string{ // the codes of the plain and of the secure port
		"localhost": "200 200", "LOCALHOST.": "200 200", "localhost:6443": "200 200", "a.localhost": "200 200", "127.0.0.1:6443": "200 200", "10.1.2.3": "200 200", "[::1]:6443": "200 200",
		"api.example:6443": "421 200", "API.example.": "421 200", "one.team.example": "421 200", "myhost": "421 200",
		"evil.example": "421 421", "evil.example:6443": "421 421", "localhost.evil.example": "421 421", "team.example": "421 421", "": "421 421",
	} {
		var codes []string
		for _, known := range []func(string) bool{nil, secure} {
			for _, addr := range []net.Addr{loopback, anywhere} {
				h := ownHost(at{addr: addr}, known)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
				r.Host = host
				h.ServeHTTP(w, r)
				if w.Code == http.StatusMisdirectedRequest && (w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes())) {
					t.Errorf("%q: %v %s", host, w.Header(), w.Body)
				}
				if addr == anywhere && w.Code != http.StatusOK {
					t.Errorf("%q on a port that is not on loopback: %d", host, w.Code)
				}
				if addr == loopback {
					codes = append(codes, strconv.Itoa(w.Code))
				}
			}
		}
		if got := strings.Join(codes, " "); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

// at is a listener with an address.
type at struct {
	net.Listener
	addr net.Addr
}

func (l at) Addr() net.Addr { return l.addr }
