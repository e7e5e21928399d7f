// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/egress"
)

func TestCheckAddress(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("a", maxAddress)
	for raw, want := range map[string]string{
		"https://github.com/login/oauth/authorize":              "",
		"https://example.com":                                   "",
		"https://example.com?tenant=a&prompt=consent":           "",
		"https://GitHub.com:443/a%20b;c=d/@me":                  "",
		"https://xn--bcher-kva.example.xn--p1ai:8443/":          "",
		"https://8.8.8.8/token":                                 "",
		"https://[2606:4700::1111]:8443/token":                  "",
		"https://[64:ff9b::808:808]/":                           "",
		"https://a.b-c.d.example.org/?q=a%26b":                  "",
		"https://example.com/?" + strings.Repeat("a", maxQuery): "",
		long[:maxAddress]:                                       "",

		long[:maxAddress+1]: "at most 2048 bytes",
		"https://example.com/?" + strings.Repeat("a", maxQuery+1): "at most 1024 bytes",
		"":                                             "begins with https://",
		"http://example.com":                           "begins with https://",
		"HTTPS://example.com":                          "begins with https://",
		"//example.com":                                "begins with https://",
		"https:example.com":                            "begins with https://",
		"https:/example.com":                           "begins with https://",
		" https://example.com":                         "begins with https://",
		"https://":                                     "must have a host",
		"https:///path":                                "must have a host",
		"https://:443/":                                "must have a host",
		"https://?a=b":                                 "must have a host",
		"https://user@example.com":                     "user or a password",
		"https://a:b@example.com":                      "user or a password",
		"https://@example.com":                         "user or a password",
		"https://example.com@8.8.8.8/":                 "user or a password",
		"https://example.com#f":                        "fragment",
		"https://example.com/#":                        "fragment",
		"https://example.com\\@8.8.8.8/":               "characters of a URL",
		"https://exa mple.com/":                        "characters of a URL",
		"https://example.com/\n":                       "characters of a URL",
		"https://exam\tple.com/":                       "characters of a URL",
		"https://bücher.example/":                      "characters of a URL",
		"https://ⓛocalhost.com/":                       "characters of a URL",
		"https://127。0。0。1/":                           "characters of a URL",
		"https://example.com/%":                        "two hexadecimal digits",
		"https://example.com/?a=%zz":                   "two hexadecimal digits",
		"https://example.com/?a=1;b=2":                 "name=value",
		"https://%65xample.com/":                       "letters, digits and dashes",
		"https://a_b.example.com/":                     "letters, digits and dashes",
		"https://-a.example.com/":                      "letters, digits and dashes",
		"https://a..example.com/":                      "letters, digits and dashes",
		"https://.example.com/":                        "letters, digits and dashes",
		"https://*.example.com/":                       "letters, digits and dashes",
		"https://example.com./":                        "end with a dot",
		"https://127.0.0.1./":                          "end with a dot",
		"https://" + strings.Repeat("a", 64) + ".com/": "letters, digits and dashes",
		"https://" + strings.Repeat(strings.Repeat("a", 50)+".", 5) + "com/": "letters, digits and dashes",
		"https://vault/":                    "full name",
		"https://vault.team-a/":             "top-level domain",
		"https://a.b/":                      "top-level domain",
		"https://example.com:/":             "1–65535",
		"https://example.com:0/":            "1–65535",
		"https://example.com:65536/":        "1–65535",
		"https://example.com:0443/":         "1–65535",
		"https://example.com:+443/":         "1–65535",
		"https://example.com:443:444/":      "1–65535",
		"https://example.com:44a/":          "1–65535",
		"https://[2606:4700::1111]:0/":      "1–65535",
		"https://localhost/":                "full name",
		"https://LOCALHOST:443/":            "full name",
		"https://a.localhost/":              "names that end with .localhost",
		"https://printer.local/":            "names that end with .local ",
		"https://metadata.google.internal/": "names that end with .internal",
		"https://vault.prod.svc/":           "names that end with .svc",
		"https://v.p.SVC.Cluster.Local/":    "names that end with .local ",
		"https://kubernetes.default/":       "names that end with .default",
		"https://router.home.arpa/":         "names that end with .arpa",
		"https://git.corp/":                 "names that end with .corp",
		"https://nas.lan/":                  "names that end with .lan",
		"https://a.test/":                   "names that end with .test",
		"https://a.onion/":                  "names that end with .onion",
		"https://127.0.0.1/":                "private, local or reserved",
		"https://10.0.0.1:8443/":            "private, local or reserved",
		"https://192.168.1.1/":              "private, local or reserved",
		"https://169.254.169.254/":          "private, local or reserved",
		"https://100.64.0.1/":               "private, local or reserved",
		"https://0.0.0.0/":                  "private, local or reserved",
		"https://255.255.255.255/":          "private, local or reserved",
		"https://168.63.129.16/":            "private, local or reserved",
		"https://[::1]/":                    "private, local or reserved",
		"https://[::]/":                     "private, local or reserved",
		"https://[fd00:ec2::254]/":          "private, local or reserved",
		"https://[fe80::1]/":                "private, local or reserved",
		"https://[::ffff:127.0.0.1]/":       "private, local or reserved",
		"https://[64:ff9b::7f00:1]/":        "private, local or reserved",
		"https://[2002:7f00:1::]/":          "private, local or reserved",
		"https://[::7f00:1]/":               "private, local or reserved",
		"https://[::ffff:7f00:1]/":          "canonical form",
		"https://[0:0:0:0:0:0:0:1]/":        "canonical form",
		"https://[2606:4700:0::1111]/":      "canonical form",
		"https://[2606:4700::ABCD]/":        "canonical form",
		"https://[fe80::1%25eth0]/":         "canonical form",
		"https://[8.8.8.8]/":                "canonical form",
		"https://[example.com]/":            "canonical form",
		"https://[::1/":                     "in brackets",
		"https://[2606:4700::1111]a/":       "in brackets",
		"https://2606:4700::1111/":          "1–65535",
		"https://127.1/":                    "canonical form",
		"https://127.0.1/":                  "canonical form",
		"https://2130706433/":               "canonical form",
		"https://0x7f000001/":               "canonical form",
		"https://0x7f.1/":                   "canonical form",
		"https://0177.0.0.1/":               "canonical form",
		"https://017700000001/":             "canonical form",
		"https://8.8.8.08/":                 "canonical form",
		"https://08.8.8.8/":                 "canonical form",
		"https://1.2.3.4.5/":                "canonical form",
		"https://256.1.1.1/":                "canonical form",
		"https://example.0x1/":              "canonical form",
		"https://example.1/":                "canonical form",

		"https://example.com/?access_token=x":   "credential",
		"https://example.com/?key=AIza":         "credential",
		"https://example.com/?X-Amz-Signature=": "credential",
		"https://example.com/?to%6ben=x":        "credential",
		"https://example.com/?apiKey":           "credential",
		"https://example.com/?client_id=x":      "client_id",
		"https://example.com/?Client.Id=x":      "client_id",
		"https://example.com/?state[]=x":        "state",
		"https://example.com/?redirectUri=x":    "redirect_uri",
		"https://example.com/?code_verifier=x":  "code_verifier",
		"https://example.com/?a=b&nonce":        "nonce",
		"https://example.com/?scope=":           "scope",
		"https://example.com/?resource=x":       "resource",
	} {
		err := CheckAddress(raw)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80q: %v, want %q", raw, err, want)
		}
	}
}

// TestEveryReservedParameter: none of the parameters of OAuth may be in an address, and those that only choose what people see may.
func TestEveryReservedParameter(t *testing.T) {
	for name := range reservedParameters {
		if err := CheckAddress("https://example.com/?" + name + "=x"); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, name := range []string{"prompt", "display", "login_hint", "max_age", "ui_locales", "acr_values", "audience", "access_type", "hd", "user_scope", "token_access_type"} {
		if err := CheckAddress("https://example.com/?" + name + "=x"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckToolAddress(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.github.com/repos/a/b/issues?state=open": "",
		"https://api.example.com/v1/files:search?a=%2Fb%da":  "",

		"https://api.example.com/{id}":       "placeholders",
		"https://api.example.com/{{id}}":     "placeholders",
		"https://api.example.com/${ID}":      "placeholders",
		"https://api.example.com/$(ID)":      "placeholders",
		"https://{host}.example.com/":        "placeholders",
		"https://api.example.com/%7Bid%7D":   "placeholders",
		"https://api.example.com/a?q=%7bid":  "placeholders",
		"https://api.example.com/%s":         "placeholders",
		"https://api.example.com/%d/a":       "placeholders",
		"https://api.example.com/%d":         "placeholders",
		"https://api.example.com/a?q=%v&b":   "placeholders",
		"https://api.example.com/<id>":       "characters of a URL",
		"https://api.example.com/%":          "two hexadecimal digits",
		"http://api.example.com/":            "begins with https://",
		"https://127.0.0.1/":                 "private, local or reserved",
		"https://api.example.com/?api_key=a": "credential",
	} {
		err := CheckToolAddress(raw)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", raw, err, want)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://a.example.com/x", "https://A.example.com:443/y?z", true},
		{"https://a.example.com:8443/x", "https://a.example.com:8443", true},
		{"https://a.example.com/x", "https://a.example.com:8443/x", false},
		{"https://a.example.com/x", "https://b.example.com/x", false},
		{"https://a.example.com/x", "http://a.example.com:443/x", false},
		{"https://a.example.com/x", "%", false},
		{"", "", false},
	} {
		if got := SameOrigin(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %t", c.a, c.b, got)
		}
	}
}

// inetAton reads a host as the function of that name in libc does, and with a dot at its end, as browsers do.
func inetAton(host string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var address uint64
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789abcdefABCDEFxX") != "" {
			return netip.Addr{}, false // ParseUint also reads 0b1 and 1_0
		}
		base := 10
		if rest, ok := strings.CutPrefix(strings.ToLower(part), "0x"); ok {
			part, base = "0"+rest, 16
		} else if len(part) > 1 && part[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(part, base, 64)
		if err != nil {
			return netip.Addr{}, false
		}
		if rest := 4 - i; i == len(parts)-1 {
			if n >= 1<<(8*rest) {
				return netip.Addr{}, false
			}
			address |= n
		} else {
			if n > 255 {
				return netip.Addr{}, false
			}
			address |= n << (8 * (rest - 1))
		}
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}), true
}

func TestInetAton(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "127.1": "127.0.0.1", "0x7f.1": "127.0.0.1", "2130706433": "127.0.0.1", "0177.0.0.1.": "127.0.0.1",
		"0x7f000001": "127.0.0.1", "10.0.258": "10.0.1.2", "example.com": "", "1.2.3.4.5": "", "256.1": "", "": "",
	} {
		got, ok := inetAton(host)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %s %t", host, got, ok)
		}
	}
}

// rfc3986 divides a URL as RFC 3986 does in appendix B: scheme, authority, path, query, fragment.
var rfc3986 = regexp.MustCompile(`^(([^:/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?$`)

// hosts returns the host of a URL as several parsers see it.
func hosts(t *testing.T, raw string) map[string]string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Opaque != "" || u.User != nil || u.Fragment != "" || u.Host == "" {
		t.Fatalf("%q is no https URL of a host alone: %v", raw, err)
	}
	parts := rfc3986.FindStringSubmatch(raw)
	if parts == nil || parts[2] != "https" || parts[8] != "" || parts[4] != u.Host {
		t.Fatalf("%q is another URL by RFC 3986: %q", raw, parts)
	}
	// Browsers drop tabs and line ends, take a backslash for a slash, any number of slashes, and what is before the last @ for a user.
	browser := strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(strings.TrimSpace(raw))
	browser = strings.TrimLeft(browser[strings.Index(browser, ":")+1:], "/")
	browser = browser[:strings.IndexAny(browser+"/", "/?#")]
	browser = browser[strings.LastIndex(browser, "@")+1:]
	bare := func(authority string) string {
		if host, _, err := net.SplitHostPort(authority); err == nil {
			return host
		}
		return strings.Trim(authority, "[]")
	}
	decoded, err := url.PathUnescape(bare(browser))
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return map[string]string{"net/url": u.Hostname(), "RFC 3986": bare(parts[4]), "browser": bare(browser), "decoded": decoded}
}

func FuzzCheckAddress(f *testing.F) {
	for _, s := range []string{
		"https://github.com/login?a=b", "https://8.8.8.8:443/", "https://[2606:4700::1111]/", "https://127.1/", "https://0x7f.1", "https://[::ffff:127.0.0.1]",
		"https://a.b@c.d/", `https://a.com\@127.0.0.1/`, "https://a.com:443/%7B", "https://a.localhost", "https://2130706433/", "https://a.com./",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if tool := CheckToolAddress(raw); tool == nil && strings.ContainsAny(raw, "{}<> \\#") {
			t.Errorf("%q is accepted for a tool", raw)
		}
		if CheckAddress(raw) != nil {
			return
		}
		for by, host := range hosts(t, raw) {
			if host != hosts(t, raw)["net/url"] {
				t.Errorf("%q has the host %q by %s", raw, host, by)
			}
			low := strings.ToLower(host)
			if a, ok := inetAton(host); ok && (!egress.Public(a) || a.String() != host) {
				t.Errorf("%q leads to %s by inet_aton", raw, a)
			}
			if a, err := netip.ParseAddr(host); err == nil && !egress.Public(a) {
				t.Errorf("%q leads to %s", raw, a)
			}
			if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast()) {
				t.Errorf("%q leads to %s by net", raw, ip)
			}
			if !strings.ContainsAny(low, ".:") || strings.HasSuffix(low, ".") || strings.HasSuffix(low, "localhost") || strings.HasSuffix(low, ".local") || strings.HasSuffix(low, ".internal") {
				t.Errorf("%q has the host %q", raw, host)
			}
		}
	})
}
