// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Anywhere is the entry of a Hosts rule that permits every address, and also programs that get the value.
const Anywhere = "*"

// maxRuleShown is how many bytes of a rule an error shows.
const maxRuleShown = 200

// Hosts is the rule that a secret has about the hosts to which its value may be sent. The zero Hosts permits all. A
// value is comparable, and is the same rule in JSON.
//
// A rule lists entries, separated by commas or spaces: a name such as api.example.com, all names below one such as
// *.example.com, or an IP address. An entry permits https at the default port, or at the port that it names
// (vault.example.com:8200). It permits http, in which others can read the value, only if it begins with http://. The
// entry * permits everything. A rule without entries permits nothing.
//
// The annotation platform.ai/allowed-hosts of a Secret is its rule. Package plan checks it before a run starts, and for chats and the
// vendors' APIs; controllers check it before they probe a Provider or an MCP server; Transport checks each request. A run gets the
// rule together with the value, so it does not matter how a Provider is changed later.
//
// The rule names a host, and not who answers there: DNS and certificates are trusted, and with http:// the network as well.
type Hosts struct {
	// Rule is the list, as written.
	Rule string `json:"rule,omitempty"`
	// Set says that there is a rule.
	Set bool `json:"set,omitempty"`
}

// HostError says that a value may not be sent to a host.
type HostError struct {
	// To is the scheme, host and port that were refused; empty for a program.
	To string
	// Rule is the rule, shortened.
	Rule string
}

// Error names the host and the rule.
func (e *HostError) Error() string {
	if e.To == "" {
		return fmt.Sprintf("may be sent to certain hosts only (%q), and a program could send it anywhere", e.Rule)
	}
	return fmt.Sprintf("may not be sent to %s, but only to %q", e.To, e.Rule)
}

// Unwrap returns ErrRefused.
func (*HostError) Unwrap() error { return ErrRefused }

// entry permits a scheme, a host and a port.
type entry struct {
	scheme, port string
	// host is a name in lower case or an address in canonical form. With below it stands for all names below it.
	host  string
	below bool
}

// label matches a part of a host's name. Underscores occur in names of services.
var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// Validate returns which entry of the rule is wrong.
func (h Hosts) Validate() error {
	_, _, err := h.entries()
	return err
}

// Check returns a *HostError if the value may not be sent to the address. Another error says that the rule is wrong;
// nothing is permitted then.
func (h Hosts) Check(to *url.URL) error {
	if !h.Set {
		return nil
	}
	all, anywhere, err := h.entries()
	if err != nil || anywhere {
		return err
	}
	host := canonical(to.Hostname())
	if host != "" && slices.ContainsFunc(all, func(e entry) bool { return e.permits(to.Scheme, host, port(to)) }) {
		return nil
	}
	return &HostError{To: shortened(to.Scheme + "://" + to.Host), Rule: shortened(h.Rule)}
}

// CheckProgram returns a *HostError unless the value may be given to programs, which can send it anywhere or show it.
func (h Hosts) CheckProgram() error {
	if !h.Set {
		return nil
	}
	_, anywhere, err := h.entries()
	if err != nil || anywhere {
		return err
	}
	return &HostError{Rule: shortened(h.Rule)}
}

// Transport returns a transport for requests that carry the value. It checks the address of each request, including those of
// redirects.
func (h Hosts) Transport(next http.RoundTripper) http.RoundTripper {
	if !h.Set {
		return next
	}
	return limitedTransport{h, next}
}

type limitedTransport struct {
	hosts Hosts
	next  http.RoundTripper
}

// RoundTrip sends the request if the rule permits its address.
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.hosts.Check(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("the key %w", err)
	}
	return t.next.RoundTrip(r)
}

// entries parses the rule, and reports whether it permits everything.
func (h Hosts) entries() (all []entry, anywhere bool, err error) {
	for text := range strings.FieldsFuncSeq(h.Rule, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		if text == Anywhere {
			anywhere = true
			continue
		}
		e, ok := parseEntry(strings.ToLower(text))
		if !ok {
			return nil, false, fmt.Errorf("%q must be a host such as api.example.com, *.example.com or 192.0.2.1, with :PORT if it is not the default, and http:// in front only if requests are not encrypted", shortened(text))
		}
		all = append(all, e)
	}
	return all, anywhere, nil
}

func parseEntry(text string) (entry, bool) {
	e := entry{scheme: "https"}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return e, false
		}
		e.scheme, text = scheme, rest
	}
	text, e.below = strings.CutPrefix(text, "*.")
	u := &url.URL{Scheme: e.scheme, Host: text}
	e.host, e.port = canonical(u.Hostname()), port(u)
	_, notAddress := netip.ParseAddr(e.host)
	if strings.HasSuffix(text, ":") || strings.Contains(text, "]") != strings.Contains(e.host, ":") || !digits(e.port) || e.below && notAddress == nil {
		return e, false
	}
	return e, notAddress == nil || isName(e.host)
}

func digits(s string) bool {
	return s != "" && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

func isName(s string) bool {
	return len(s) <= 253 && !slices.ContainsFunc(strings.Split(s, "."), func(l string) bool { return !label.MatchString(l) })
}

// canonical returns a name in lower case without the dot of the root, or an address in its usual form.
func canonical(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func (e entry) permits(scheme, host, port string) bool {
	if scheme != e.scheme || port != e.port {
		return false
	}
	if !e.below {
		return host == e.host
	}
	rest, ok := strings.CutSuffix(host, "."+e.host)
	return ok && rest != ""
}

func shortened(s string) string {
	if len(s) > maxRuleShown {
		return strings.ToValidUTF8(s[:maxRuleShown], "") + "…"
	}
	return s
}
