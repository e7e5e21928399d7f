// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// nameServer answers each question for an address with what it is told, over UDP on loopback.
type nameServer struct {
	conn net.PacketConn

	mu      sync.Mutex // guards the rest
	answer  []netip.Addr
	queries int
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	s := &nameServer{conn: kit.Must[net.PacketConn](t)((&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0"))}
	t.Cleanup(func() { s.conn.Close() })
	go func() {
		buffer := make([]byte, 4<<10)
		for {
			n, from, err := s.conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			s.resolve(&m)
			if data, err := m.Pack(); err == nil {
				_, _ = s.conn.WriteTo(data, from)
			}
		}
	}()
	return s
}

// resolve turns a question into an answer.
func (s *nameServer) resolve(m *dnsmessage.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	if !strings.HasPrefix(q.Name.String(), oauthprovider.Host) {
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, RCode: dnsmessage.RCodeNameError}
		return
	}
	s.queries++
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: m.RecursionDesired, RecursionAvailable: true}
	m.Additionals = nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
	for _, a := range s.answer {
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
}

// resolves sets the addresses of the provider.
func (s *nameServer) resolves(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = nil
	for _, a := range addresses {
		s.answer = append(s.answer, netip.MustParseAddr(a))
	}
}

func (s *nameServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

// The server as it is outside of tests connects to no address that is private, local or reserved, whatever name leads there: neither to
// exchange a code nor to revoke a token.
func TestPrivateProvider(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	c := newChild(t, envNames+"="+names.conn.LocalAddr().String())
	_, port, err := net.SplitHostPort(c.provider.Address())
	if err != nil {
		t.Fatal(err)
	}
	host := oauthprovider.Host + ":" + port // where the provider listens, on the address of loopback
	c.applied(strings.ReplaceAll(oauthprovider.Manifest(), oauthprovider.Host+"/", host+"/"))
	ann := c.person("user-ann")
	for _, addresses := range [][]string{
		{"127.0.0.1"},
		{"::1"},
		{"0.0.0.0"},
		{"::"},
		{"::ffff:127.0.0.1"},
		{"64:ff9b::7f00:1"},
		{"2002:7f00:1::"},
		{"::127.0.0.1"},
		{"10.0.0.1"},
		{"192.168.1.1"},
		{"100.64.0.1"},
		{"169.254.169.254"},
		{"::ffff:169.254.169.254"},
		{"64:ff9b::a9fe:a9fe"},
		{"fd00:ec2::254"},
		{"fe80::1"},
		{"127.0.0.1", "::1", "10.0.0.1"},
	} {
		names.resolves(addresses...)
		before := names.asked()
		begun := c.connect(ann, "")
		address := c.provider.Consent(t, strings.Replace(begun.AuthorizeURL, host, oauthprovider.Host, 1), func(q url.Values) { q.Del("iss") })
		c.refused(address, "exchange_failed")
		if names.asked() == before {
			t.Errorf("%v: the name was not resolved", addresses)
		}
		c.refused(address, "invalid_state")
	}
	c.process.Await(t, "the host has an address that is private, local or reserved")
	if n := c.provider.Callers(); n > 0 {
		t.Errorf("the provider was called %d times", n)
	}
}

// others counts requests to other hosts than that of the provider, and passes all on.
type others struct {
	http.RoundTripper

	mu    sync.Mutex
	hosts []string
}

func (o *others) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	if r.URL.Host != oauthprovider.Host {
		o.hosts = append(o.hosts, r.URL.Host)
	}
	o.mu.Unlock()
	return o.RoundTripper.RoundTrip(r)
}

// No redirect of a provider is followed, with a code, a token or the client's secret.
func TestProviderRedirects(t *testing.T) {
	t.Parallel()
	p := oauthprovider.New(t)
	o := &others{RoundTripper: p.Transport()}
	w := emptyWorld(t, o)
	w.provider = p
	w.apply()
	ann := w.person("user-ann")
	const elsewhere = "/elsewhere"
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, to := range []string{
			elsewhere, oauthprovider.Issuer + elsewhere, "https://evil.example/token", "http://" + oauthprovider.Host + "/token", "http://169.254.169.254/latest", "//evil.example",
		} {
			redirect := func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Location", to)
				rw.WriteHeader(code)
				return true
			}
			p.Answers("/token", redirect)
			tokens := p.Requests("/token")
			w.refused(p.Consent(t, w.connect(ann, "").AuthorizeURL), "exchange_failed")
			if n := p.Requests("/token") - tokens; n != 1 {
				t.Errorf("%d to %s: asked for tokens %d times", code, to, n)
			}
			p.Answers("/token", nil)
			if code != http.StatusTemporaryRedirect && code != http.StatusPermanentRedirect { // the others lose the body
				continue
			}
			linked, _ := w.granted(ann)
			p.Answers("/revoke", redirect)
			revocations := p.Requests("/revoke")
			w.disconnect(ann, linked.Name)
			if n := p.Requests("/revoke") - revocations; n != 1 {
				t.Errorf("%d to %s: asked to revoke %d times", code, to, n)
			}
		}
	}
	if n := p.Requests(elsewhere); n > 0 || len(o.hosts) > 0 {
		t.Errorf("%d requests, and more to %v, followed a redirect", n, o.hosts)
	}
}
