// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/tokenservice"
)

// linking is a server whose people can link accounts at a provider, in namespace team.
type linking struct {
	*standalone.Platform

	provider *oauthprovider.Provider
	people   *tokenservice.Service
}

func newLinking(t *testing.T) *linking {
	t.Helper()
	x := &linking{provider: oauthprovider.New(t), people: tokenservice.New(t)}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + kit.FreePort(t)
	x.Platform = standalone.NewPlatform(t, "exit 0", standalone.OnAPort(t), func(o *standalone.Options) {
		o.RESTBindAddress = address
		o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, "http://"+address, x.provider.Transport()
		o.Identity.OIDC = external.OIDC{Issuer: x.people.URL, Audience: "platform", JWKSURL: x.people.URL, AllowedSubjects: []string{"user-*"}, Namespace: "team"}
		o.AuditLog, o.AuditPolicy = filepath.Join(o.DataDir, "audit.log"), policy
	})
	x.Namespaces(t, "team")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: oauthprovider.Secret}, StringData: map[string]string{"secret": oauthprovider.ClientSecret}}
	kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("team").Create(t.Context(), secret, metav1.CreateOptions{}))
	p := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(oauthprovider.Manifest()), p); err != nil {
		t.Fatal(err)
	}
	p.Spec.DisplayName = "Code host"
	all := x.API().ConnectorProviders("team")
	kit.Must[*v1alpha1.ConnectorProvider](t)(all.Create(t.Context(), p, metav1.CreateOptions{}))
	kit.Await(t, "the provider", func() bool {
		now := kit.Must[*v1alpha1.ConnectorProvider](t)(all.Get(t.Context(), p.Name, metav1.GetOptions{}))
		return meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionResolvedRefs)
	})
	return x
}

// token returns a token of a person, once the server accepts it.
func (x *linking) token(subject string) string {
	x.T.Helper()
	token := kit.Must[string](x.T)(x.people.Sign("at+jwt", tokenservice.Claims{"sub": subject}))
	c := x.Stranger(x.T).With("Authorization", "Bearer "+token)
	kit.Await(x.T, "the keys of the issuer", func() bool { return c.Get("/api/v1/auth/whoami").Code == http.StatusOK })
	return token
}

// control gives consent at an address of the provider, and answers where the browser of the person is sent to.
func (x *linking) control(w http.ResponseWriter, r *http.Request) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, x.provider.Consent(x.T, r.FormValue("authorizeURL")), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // which follows nothing
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_ = resp.Body.Close()
	_, _ = w.Write([]byte(resp.Header.Get("Location")))
}

// kept fails the test if a file of the stopped server, such as its log of requests or its store, has one of some secrets.
func (x *linking) kept(secrets []string) {
	x.T.Helper()
	x.Stop(x.T)
	audit := kit.Must[[]byte](x.T)(os.ReadFile(filepath.Join(x.DataDir, "audit.log")))
	if !bytes.Contains(audit, []byte("/complete")) {
		x.T.Error("the audit log does not have the requests that end a consent")
	}
	err := filepath.WalkDir(x.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				x.T.Errorf("%s has %s", path, s)
			}
		}
		return nil
	})
	if err != nil {
		x.T.Error(err)
	}
}

// callbackReasons returns the reasons that the server's callback names.
func callbackReasons(t *testing.T) string {
	t.Helper()
	source := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(root, "pkg", "server", "connection", "callback.go")))
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +reason = "(\w+)"$`).FindAllSubmatch(source, -1) {
		all = append(all, string(m[1]))
	}
	return strings.Join(all, ",")
}

// People link accounts in the console: the consent of a person counts for that person alone, and its completion token is nowhere but in
// the request that ends it.
func TestConnectors(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	x := newLinking(t)
	off := start(t)
	control := httptest.NewServer(http.HandlerFunc(x.control))
	defer control.Close()
	found := filepath.Join(t.TempDir(), "found")
	script(t, "connectors.mjs", 8,
		"BASE="+x.RESTURL, "PROVIDER="+x.provider.Address(), "CONTROL="+control.URL, "CALLBACK="+callbackReasons(t), "FOUND="+found, "SHOTS="+pictures(t),
		"ANN="+x.token("user-ann"), "BOB="+x.token("user-bob"), "ROBOT="+x.Token(t, "team", "robot", "cluster-admin"),
		"OFF="+off.RESTURL, "ROBOT_OFF="+off.token("robot", "platform-operator"))
	completions := strings.Fields(string(kit.Must[[]byte](t)(os.ReadFile(found))))
	x.kept(append(completions, x.provider.Secrets()...))
}
