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
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
	metrics  *prometheus.Registry
}

// newWorld starts a server and a provider, whose manifest has further lines.
func newWorld(t *testing.T, lines ...string) *world {
	t.Helper()
	p := oauthprovider.New(t)
	w := emptyWorld(t, p.Transport())
	w.provider = p
	w.apply(lines...)
	return w
}

// emptyWorld starts a server that reaches providers by a transport, with the Secret of their client, and no provider yet.
func emptyWorld(t *testing.T, transport http.RoundTripper) *world {
	t.Helper()
	w := &world{tokens: tokenservice.New(t), clock: &quickclock.Ahead{}, metrics: prometheus.NewRegistry()}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Platform = standalone.NewPlatform(t, "exit 0", standalone.OnAPort(t), func(o *standalone.Options) {
		o.Clock, o.Metrics = w.clock, w.metrics
		o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, base, transport
		o.Identity = identity(w.tokens.URL)
		w.audit = filepath.Join(o.DataDir, "audit.log")
		o.AuditLog, o.AuditPolicy = w.audit, policy
	})
	w.Namespaces(t, "team")
	w.secret()
	return w
}

// identity lets the people of an issuer in.
func identity(issuer string) external.Options {
	return external.Options{
		OIDC:         external.OIDC{Issuer: issuer, Audience: "platform", JWKSURL: issuer, AllowedSubjects: []string{"user-*"}, Namespace: "team"},
		ContextToken: external.ContextToken{Profile: external.ProfileTransactionToken, Issuer: issuer, Audience: "platform", JWKSURL: issuer, Mode: "enforce"},
	}
}

// secret makes the Secret of the client.
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
	return w.applied(oauthprovider.Manifest(lines...))
}

// applied writes a provider, and waits until it can be used.
func (w *world) applied(manifest string) *v1alpha1.ConnectorProvider {
	w.T.Helper()
	p := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(manifest), p); err != nil {
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

// The counters of connections.
const (
	consents    = "platform_connections_consents_total"
	revocations = "platform_connections_revocations_total"
)

// counted returns a counter of connections.
func (w *world) counted(name, outcome string) int {
	w.T.Helper()
	if w.metrics != nil {
		return int(standalone.Measured(w.T, w.metrics, name, outcome))
	}
	code, body := host.Get(w.T, w.Admin, "/metrics", "")
	if code != http.StatusOK {
		w.T.Fatalf("metrics: %d %s", code, body)
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+`{outcome="`+outcome+`"} `); ok {
			return kit.Must[int](w.T)(strconv.Atoi(value))
		}
	}
	return 0
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

// browser is a client of the browser of a person, who need not be known. It follows nothing.
func (w *world) browser() *standalone.Client {
	w.T.Helper()
	b := w.Stranger(w.T)
	b.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

// local returns the path of an address of the server as browsers know it.
func (w *world) local(address string) string {
	w.T.Helper()
	path, ok := strings.CutPrefix(address, base)
	if !ok {
		w.T.Fatalf("people are sent to %s", address)
	}
	return path
}

// back sends a browser back to the server, and returns where it is sent then. It follows nothing.
func (w *world) back(address string) *url.URL {
	w.T.Helper()
	resp := w.browser().Open(w.T.Context(), http.MethodGet, w.local(address), "")
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
	return w.parked(w.provider.Consent(w.T, authorizeURL))
}

// consented does the same, and returns the refresh token that the provider gave, too.
func (w *world) consented(authorizeURL string) (completion, refresh string) {
	w.T.Helper()
	address := w.provider.Consent(w.T, authorizeURL)
	completion = w.parked(address)
	return completion, w.provider.Refresh(w.parameter(address, "code"))
}

// parameter returns a parameter of an address.
func (w *world) parameter(address, name string) string {
	w.T.Helper()
	return kit.Must[*url.URL](w.T)(url.Parse(address)).Query().Get(name)
}

// parked has a browser come back with a consent that counts, and returns the completion token.
func (w *world) parked(address string) string {
	w.T.Helper()
	to := w.back(address)
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

// granted connects an account, and returns the refresh token that the provider gave, too.
func (w *world) granted(c *standalone.Client) (linked row, refresh string) {
	w.T.Helper()
	a := w.connect(c, "")
	completion, refresh := w.consented(a.AuthorizeURL)
	return host.Decode[row](w.T, w.complete(c, a.Connection.Name, completion).Want(w.T, http.StatusOK)), refresh
}

// disconnect disconnects an account, waits until it is gone, and returns what was revoked meanwhile.
func (w *world) disconnect(c *standalone.Client, name string) []string {
	w.T.Helper()
	before := len(w.provider.Revoked())
	c.Do(http.MethodDelete, "/api/v1/connections/"+name, "").Want(w.T, http.StatusNoContent)
	w.gone(c, name)
	return w.provider.Revoked()[before:]
}

// gone waits until a connection is gone.
func (w *world) gone(c *standalone.Client, name string) {
	w.T.Helper()
	kit.Await(w.T, "the end of the connection", func() bool { return c.Get("/api/v1/connections/"+name).Code == http.StatusNotFound })
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
