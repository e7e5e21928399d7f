// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// provider returns a valid one with a tool of each source.
func provider() *v1alpha1.ConnectorProvider {
	return &v1alpha1.ConnectorProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "github", UID: "uid-1"},
		Spec: v1alpha1.ConnectorProviderSpec{
			OAuth: v1alpha1.ConnectorOAuth{
				Issuer: "https://github.com/login/oauth", AuthorizeURL: "https://github.com/login/oauth/authorize?tenant=a",
				TokenURL: "https://github.com/login/oauth/access_token", RevocationURL: "https://GITHUB.com:443/revoke",
				ClientID: "Iv1.abc", ClientSecretRef: v1alpha1.KeyReference{Name: "github-client", Key: "secret"},
				Scopes:                        v1alpha1.ConnectorScopes{Read: []string{"read:user", "repo:status"}, Write: []string{"repo"}},
				AdditionalAuthorizeParameters: map[string]string{"prompt": "select_account", "access_type": "offline"},
			},
			Tools: []v1alpha1.ConnectorTool{
				{Name: "list_issues", Class: v1alpha1.ConnectorToolRead, Source: v1alpha1.ConnectorSourceBuiltin},
				{
					Name: "star_repository", Class: v1alpha1.ConnectorToolWrite, Source: v1alpha1.ConnectorSourceHTTP, Description: "Star a repository.",
					Parameters: &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`)},
					HTTP: &v1alpha1.ConnectorToolHTTP{
						URL: "https://api.github.com/star?state=open", Method: v1alpha1.ToolPost, Timeout: new(v1alpha1.Duration("10m")),
						Headers: map[string]string{"Accept": "application/json", "X-GitHub-Api-Version": "2022-11-28"},
					},
				},
			},
		},
	}
}

func TestValidate(t *testing.T) {
	if errs := Validate(provider()); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	many := func(n int, value string) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("x-%d", i)] = value
		}
		return m
	}
	type spec = v1alpha1.ConnectorProviderSpec
	scopes := func(n int, s string) []string {
		var all []string
		for i := range n {
			all = append(all, s+string(rune('a'+i)))
		}
		return all
	}
	for _, c := range []struct {
		name   string
		change func(*spec)
		want   []string // "field: part of the message" of each error, in order
	}{
		{"issuer", func(s *spec) { s.OAuth.Issuer = "http://github.com" }, []string{"spec.oauth.issuer: begins with https"}},
		{"query of the issuer", func(s *spec) { s.OAuth.Issuer += "?a=b" }, []string{"spec.oauth.issuer: must not have a query"}},
		{"addresses", func(s *spec) {
			s.OAuth.AuthorizeURL, s.OAuth.TokenURL, s.OAuth.RevocationURL, s.Tools = "https://10.0.0.1", "https://localhost", "https://a.svc", s.Tools[1:]
		}, []string{"spec.oauth.authorizeURL: private", "spec.oauth.tokenURL: full name", "spec.oauth.revocationURL: .svc"}},
		{"revocation elsewhere", func(s *spec) { s.OAuth.RevocationURL = "https://github.com:8443/revoke" }, []string{"spec.oauth.revocationURL: host and the port of tokenURL"}},
		{"client", func(s *spec) { s.OAuth.ClientID = "a\x7f" }, []string{"spec.oauth.clientID: printable"}},
		{"space around the client", func(s *spec) { s.OAuth.ClientID = "a " }, []string{"spec.oauth.clientID: space"}},
		{"client with a space", func(s *spec) { s.OAuth.ClientID = "a b" }, nil},
		{"scopes", func(s *spec) {
			s.OAuth.Scopes = v1alpha1.ConnectorScopes{Read: []string{"a", "b c", "", `d"`}, Write: []string{"e,f", `g\`, "ü", strings.Repeat("x", 257)}}
		}, []string{
			"spec.oauth.scopes.read[1]: 1 to 256", "spec.oauth.scopes.read[2]: 1 to 256", "spec.oauth.scopes.read[3]: 1 to 256",
			"spec.oauth.scopes.write[0]: 1 to 256", "spec.oauth.scopes.write[1]: 1 to 256", "spec.oauth.scopes.write[2]: 1 to 256", "spec.oauth.scopes.write[3]: 1 to 256",
		}},
		{"scopes of 2048 bytes", func(s *spec) {
			s.OAuth.Scopes = v1alpha1.ConnectorScopes{Read: scopes(4, strings.Repeat("a", 255)), Write: append(scopes(3, strings.Repeat("b", 255)), strings.Repeat("c", 249))}
		}, nil},
		{"too long scopes", func(s *spec) {
			s.OAuth.Scopes = v1alpha1.ConnectorScopes{Read: scopes(4, strings.Repeat("a", 255)), Write: append(scopes(3, strings.Repeat("b", 255)), strings.Repeat("c", 250))}
		}, []string{"spec.oauth.scopes: 2048 bytes"}},
		{"scopes that are long when they are encoded", func(s *spec) {
			s.OAuth.Scopes = v1alpha1.ConnectorScopes{Read: scopes(9, strings.Repeat(":", 80))}
		}, []string{"spec.oauth.scopes: 2048 bytes"}},
		{"parameters", func(s *spec) {
			s.OAuth.AdditionalAuthorizeParameters = map[string]string{
				"": "a", "a b": "a", "api_key": "hush", "clientId": "a", "control": "a\n", "long": strings.Repeat("a", 513), "state": "a", "tenant": "b", "\u00fc": "a",
			}
		}, []string{
			"spec.oauth.additionalAuthorizeParameters[]: printable", "spec.oauth.additionalAuthorizeParameters[a b]: printable",
			"spec.oauth.additionalAuthorizeParameters[api_key]: credential", "spec.oauth.additionalAuthorizeParameters[clientId]: OAuth defines",
			"spec.oauth.additionalAuthorizeParameters[control]: control characters", "spec.oauth.additionalAuthorizeParameters[long]: 512 bytes",
			"spec.oauth.additionalAuthorizeParameters[state]: OAuth defines", "spec.oauth.additionalAuthorizeParameters[tenant]: authorizeURL already",
			"spec.oauth.additionalAuthorizeParameters[ü]: printable",
		}},
		{"16 parameters", func(s *spec) { s.OAuth.AdditionalAuthorizeParameters = many(16, "a") }, nil},
		{"17 parameters", func(s *spec) { s.OAuth.AdditionalAuthorizeParameters = many(17, "a") }, []string{"spec.oauth.additionalAuthorizeParameters: at most 16"}},
		{"too long parameters", func(s *spec) { s.OAuth.AdditionalAuthorizeParameters = many(4, strings.Repeat("a", 508)+"////") }, []string{"spec.oauth.additionalAuthorizeParameters: 2048 bytes"}},
		{"tool's name", func(s *spec) { s.Tools[1].Name = "star-Repository" }, []string{"spec.tools[1].name: snake case"}},
		{"misspelled", func(s *spec) { s.Tools[0].Name = "list_isues" }, []string{"spec.tools[0].name: no tool of that name; those that do are check_pr_review_marker, "}},
		{"not linked", func(s *spec) { s.Tools[0].Name = "merge_pull_request" }, []string{"spec.tools[0].name: does not use the account of a person"}},
		{"not linked, of chats", func(s *spec) { s.Tools[0].Name = builtin.ChatListTasks.Name }, []string{"spec.tools[0].name: does not use the account of a person"}},
		{"other class", func(s *spec) { s.Tools[0].Class = v1alpha1.ConnectorToolWrite }, []string{"spec.tools[0].class: must be read"}},
		{"defined twice", func(s *spec) {
			s.Tools[0].Description, s.Tools[0].HTTP, s.Tools[0].Parameters = "a", s.Tools[1].HTTP, s.Tools[1].Parameters
		}, []string{
			"spec.tools[0].description: defines it", "spec.tools[0].http: defines it", "spec.tools[0].parameters: defines it",
		}},
		{"not GitHub", func(s *spec) { s.OAuth.AuthorizeURL = "https://github.com.example.com/" }, []string{"spec.tools[0].source: github.com"}},
		{"half GitHub", func(s *spec) { s.OAuth.TokenURL = "https://github.com:8443/"; s.OAuth.RevocationURL = "" }, []string{"spec.tools[0].source: github.com"}},
		{"name of a tool of the platform", func(s *spec) { s.Tools[1].Name = "code_exec" }, []string{"spec.tools[1].name: mix up with it"}},
		{"nothing defined", func(s *spec) { s.Tools[1].Description, s.Tools[1].HTTP, s.Tools[1].Parameters = " ", nil, nil }, []string{
			"spec.tools[1].description: need it", "spec.tools[1].parameters: need it", "spec.tools[1].http: need it",
		}},
		{"schema of another type", func(s *spec) { s.Tools[1].Parameters.Raw = []byte(`{"type":"array"}`) }, []string{`spec.tools[1].parameters: "type": "object"`}},
		{"reference to elsewhere", func(s *spec) { s.Tools[1].Parameters.Raw = []byte(`{"type":"object","$ref":"https://example.com/a"}`) }, []string{"spec.tools[1].parameters: not allowed"}},
		{"reference to a file", func(s *spec) { s.Tools[1].Parameters.Raw = []byte(`{"type":"object","$ref":"file:///etc/passwd"}`) }, []string{"spec.tools[1].parameters: not allowed"}},
		{"reference to nothing", func(s *spec) { s.Tools[1].Parameters.Raw = []byte(`{"type":"object","$ref":"#/$defs/a"}`) }, []string{"spec.tools[1].parameters: must be a JSON Schema"}},
		{"member twice", func(s *spec) { s.Tools[1].Parameters.Raw = []byte(`{"type":"object","type":"object"}`) }, []string{"spec.tools[1].parameters: twice"}},
		{"tool's address", func(s *spec) { s.Tools[1].HTTP.URL = "https://api.example.com/{id}" }, []string{"spec.tools[1].http.url: placeholders"}},
		{"timeout of 0", func(s *spec) { s.Tools[1].HTTP.Timeout = new(v1alpha1.Duration("0s")) }, []string{"spec.tools[1].http.timeout: above 0"}},
		{"long timeout", func(s *spec) { s.Tools[1].HTTP.Timeout = new(v1alpha1.Duration("10m1s")) }, []string{"spec.tools[1].http.timeout: at most 10m"}},
		{"malformed timeout", func(s *spec) { s.Tools[1].HTTP.Timeout = new(v1alpha1.Duration("soon")) }, []string{"spec.tools[1].http.timeout: must be a duration"}},
		{"headers", func(s *spec) {
			s.Tools[1].HTTP.Headers = map[string]string{
				"X-A": "a", "x-a": "b", "X B": "c", "X-C": "a\nb", "X-D": strings.Repeat("d", 1025), strings.Repeat("e", 129): "", "authorization": "Bearer hush",
				"Proxy-Anything": "a", "COOKIE": "hush", "Set-Cookie": "hush", "Host": "a", "Txn-Token": "a", "content-length": "1",
				"Idempotency-Key": "a", "Connection": "close", "X-Api-Key": "hush",
			}
		}, []string{
			"spec.tools[1].http.headers[COOKIE]: carries", "spec.tools[1].http.headers[Connection]: belongs", "spec.tools[1].http.headers[Host]: belongs",
			"spec.tools[1].http.headers[Idempotency-Key]: approved", "spec.tools[1].http.headers[Proxy-Anything]: belongs", "spec.tools[1].http.headers[Set-Cookie]: carries",
			"spec.tools[1].http.headers[Txn-Token]: is set", "spec.tools[1].http.headers[X B]: name of a header", "spec.tools[1].http.headers[X-Api-Key]: credential",
			"spec.tools[1].http.headers[X-C]: value of a header", "spec.tools[1].http.headers[X-D]: value of a header", "spec.tools[1].http.headers[authorization]: carries",
			"spec.tools[1].http.headers[content-length]: belongs", "spec.tools[1].http.headers[" + strings.Repeat("e", 129) + "]: name of a header", "spec.tools[1].http.headers[x-a]: Duplicate",
		}},
		{"17 headers", func(s *spec) { s.Tools[1].HTTP.Headers = many(17, "") }, []string{"spec.tools[1].http.headers: at most 16"}},
		{"headers of 4096 bytes", func(s *spec) { s.Tools[1].HTTP.Headers = many(4, strings.Repeat("a", 1021)) }, nil},
		{"too long headers", func(s *spec) { s.Tools[1].HTTP.Headers = many(4, strings.Repeat("a", 1022)) }, []string{"spec.tools[1].http.headers: 4096 bytes"}},
	} {
		p := provider()
		c.change(&p.Spec)
		errs := Validate(p)
		var got []string
		for i, err := range errs {
			got = append(got, err.Error())
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: an error repeats a value: %v", c.name, err)
			}
			if i < len(c.want) {
				if path, part, _ := strings.Cut(c.want[i], ": "); err.Field != path || !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v, want %s", c.name, err, c.want[i])
				}
			}
		}
		if len(errs) != len(c.want) {
			t.Errorf("%s: %d errors, want %d: %q", c.name, len(errs), len(c.want), got)
		}
	}
	p := provider()
	p.Name = strings.Repeat("a", 64)
	if errs := Validate(p); len(errs) != 1 || errs[0].Field != "metadata.name" {
		t.Error(errs)
	}
}

// TestLinkedTools: the tools that use a person's account are those, and each is a tool of runs whose effects fit its class.
func TestLinkedTools(t *testing.T) {
	want := map[string]v1alpha1.ConnectorToolClass{
		"list_pull_requests": "read", "list_issues": "read", "get_issue": "read", "review_pull_request": "read", "check_pull_request_ci": "read",
		"check_pr_review_marker": "read", "comment_on_issue": "write", "create_pull_request": "write", "post_review_comment": "write",
	}
	if !maps.Equal(linked, want) {
		t.Errorf("%v", linked)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		class, ok := BuiltinClass(name)
		b, exists := builtin.Find(name)
		if !ok || !exists || !b.Effects.Has(builtin.Sends) || b.Effects.Has(builtin.Writes) != (class == v1alpha1.ConnectorToolWrite) || b.Effects.Has(builtin.Reads) != (class == v1alpha1.ConnectorToolRead) {
			t.Errorf("%s is of class %s, and its effects are %b", name, class, b.Effects)
		}
	}
	if class, ok := BuiltinClass("merge_pull_request"); ok || class != "" {
		t.Error(class)
	}
}
