// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"cmp"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/quickclock"
	"github.com/platform-ai/platform/test/tokenservice"
)

// base is the address that browsers know the server by. Nothing is there: what the server sends a browser to is only looked at.
const base = "https://platform.test"

// world is a server with a provider whose Secret is there, and namespace team.
type world struct {
	*standalone.Platform

	provider *oauthprovider.Provider
	tokens   *tokenservice.Service
	clock    *quickclock.Ahead
	audit    string // the file
}

func newWorld(t *testing.T, lines ...string) *world {
	t.Helper()
	w := &world{provider: oauthprovider.New(t), tokens: tokenservice.New(t), clock: &quickclock.Ahead{}}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Platform = standalone.NewPlatform(t, "exit 0", standalone.OnAPort(t), func(o *standalone.Options) {
		o.Clock = w.clock
		o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, base, w.provider.Transport()
		o.Identity = external.Options{
			OIDC:         external.OIDC{Issuer: w.tokens.URL, Audience: "platform", JWKSURL: w.tokens.URL, AllowedSubjects: []string{"user-*"}, Namespace: "team"},
			ContextToken: external.ContextToken{Profile: external.ProfileTransactionToken, Issuer: w.tokens.URL, Audience: "platform", JWKSURL: w.tokens.URL, Mode: "enforce"},
		}
		w.audit = filepath.Join(o.DataDir, "audit.log")
		o.AuditLog, o.AuditPolicy = w.audit, policy
	})
	w.Namespaces(t, "team")
	w.secret()
	w.apply(lines...)
	return w
}

func (w *world) secret() {
	w.T.Helper()
	_, err := w.Kubernetes(w.T).CoreV1().Secrets("team").Create(w.T.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: oauthprovider.Secret}, StringData: map[string]string{"secret": oauthprovider.ClientSecret},
	}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
}

// apply writes the provider, with further lines below spec.oauth, and waits until it can be used.
func (w *world) apply(lines ...string) *v1alpha1.ConnectorProvider {
	w.T.Helper()
	p := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(oauthprovider.Manifest(lines...)), p); err != nil {
		w.T.Fatal(err)
	}
	all := w.API().ConnectorProviders("team")
	if now, err := all.Get(w.T.Context(), p.Name, metav1.GetOptions{}); err == nil {
		p.ResourceVersion = now.ResourceVersion
		if _, err := all.Update(w.T.Context(), p, metav1.UpdateOptions{}); err != nil {
			w.T.Fatal(err)
		}
	} else if _, err := all.Create(w.T.Context(), p, metav1.CreateOptions{}); err != nil {
		w.T.Fatal(err)
	}
	kit.Await(w.T, "the provider", func() bool {
		now, err := all.Get(w.T.Context(), p.Name, metav1.GetOptions{})
		if err != nil {
			w.T.Fatal(err)
		}
		p = now
		return now.Status.ObservedGeneration == now.Generation && meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionResolvedRefs)
	})
	return p
}

// person is a client of the REST paths with the token of a person.
func (w *world) person(subject string) *standalone.Client {
	w.T.Helper()
	token, err := w.tokens.Sign("at+jwt", tokenservice.Claims{"sub": subject})
	if err != nil {
		w.T.Fatal(err)
	}
	c := w.Stranger(w.T).With("Authorization", "Bearer "+token)
	kit.Await(w.T, "the keys of the issuer", func() bool { return c.Get("/api/v1/auth/whoami").Code == http.StatusOK })
	return c
}

// connections are the connections as an administrator sees them.
func (w *world) connections() typed.ConnectionInterface { return w.API().Connections("team") }

// answer is what a person is told of a connection.
type answer struct {
	Connection   row    `json:"connection"`
	AuthorizeURL string `json:"authorizeURL"`
}

// row is a connection as a person sees it.
type row struct {
	Name, Namespace, Provider, Mode, State, Message string
	GrantedScopes                                   []string
	LinkedAt, ExpiresAt                             *metav1.Time
	Ready                                           bool
}

// connect begins a consent.
func (w *world) connect(c *standalone.Client, mode string) answer {
	w.T.Helper()
	body := `{"provider":"provider"}`
	if mode != "" {
		body = `{"provider":"provider","mode":"` + mode + `"}`
	}
	a := host.Decode[answer](w.T, c.Post("/api/v1/connections", body).Want(w.T, http.StatusCreated))
	if a.AuthorizeURL == "" || a.Connection.Name == "" {
		w.T.Fatalf("connect: %+v", a)
	}
	return a
}

// back sends a browser back to the server, and returns where it is sent then. It follows nothing.
func (w *world) back(address string) *url.URL {
	w.T.Helper()
	path, ok := strings.CutPrefix(address, base)
	if !ok {
		w.T.Fatalf("the provider was told to send people to %s", address)
	}
	browser := w.Stranger(w.T)
	browser.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp := browser.Open(w.T.Context(), http.MethodGet, path, "")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		w.T.Fatalf("callback: %s %v", resp.Status, resp.Header)
	}
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), base+"/settings/connectors?") {
		w.T.Fatalf("callback leads to %s", resp.Header.Get("Location"))
	}
	return to
}

// consent has a person consent at the provider, and returns the completion token.
func (w *world) consent(authorizeURL string) string {
	w.T.Helper()
	to := w.back(w.provider.Consent(w.T, authorizeURL))
	q := to.Query()
	completion, ok := strings.CutPrefix(to.Fragment, "completion=")
	if !ok || q.Get("status") != "pending" || q.Get("connection") == "" || q.Get("namespace") != "team" || len(q) != 3 {
		w.T.Fatalf("callback leads to %s", to)
	}
	return completion
}

// refused has a browser come back with a consent that counts for nothing, and checks the reason.
func (w *world) refused(address, reason string) {
	w.T.Helper()
	to := w.back(address)
	if q := to.Query(); q.Get("status") != "error" || q.Get("reason") != reason || len(q) != 2 || to.Fragment != "" {
		w.T.Errorf("callback leads to %s, want %s", to, reason)
	}
}

// complete commits a consent.
func (w *world) complete(c *standalone.Client, name, completion string) host.Answer {
	w.T.Helper()
	return c.Post("/api/v1/connections/"+name+"/complete", `{"completion":"`+completion+`"}`)
}

// linked connects an account.
func (w *world) linked(c *standalone.Client, mode string) row {
	w.T.Helper()
	a := w.connect(c, mode)
	got := host.Decode[row](w.T, w.complete(c, a.Connection.Name, w.consent(a.AuthorizeURL)).Want(w.T, http.StatusOK))
	if !got.Ready || got.State != "Ready" {
		w.T.Fatalf("linked: %+v", got)
	}
	return got
}

// get reads a connection as the administrator.
func (w *world) get(name string) *v1alpha1.Connection {
	w.T.Helper()
	c, err := w.connections().Get(w.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

// patch changes a connection as the administrator.
func (w *world) patch(name, patch string) error {
	_, err := w.connections().Patch(w.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// awaitState waits for the state of a connection.
func (w *world) awaitState(name string, state v1alpha1.ConnectionState, reason string) {
	w.T.Helper()
	kit.Await(w.T, string(state), func() bool {
		c := w.get(name)
		for _, found := range c.Status.Conditions {
			if c.Status.State == state && found.Reason == cmp.Or(reason, found.Reason) {
				return true
			}
		}
		return false
	})
}

// leaked fails the test if a secret is in a file of the server, which includes its store, log and audit log.
func (w *world) leaked(secrets []string) {
	w.T.Helper()
	w.Stop(w.T)
	err := filepath.WalkDir(w.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				w.T.Errorf("%s has %s", path, s)
			}
		}
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
}
