// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/server/auth/external"
)

const examples = "../../artifacts/examples/identity/"

// The example of a configuration is accepted, and its bindings give people what their comments say. It is not parallel,
// because it sets variables of the environment.
func TestExample(t *testing.T) {
	var o external.Options
	for line := range strings.Lines(string(must(os.ReadFile(examples + "server.env"))(t))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			t.Setenv(name, value)
		}
	}
	flags := pflag.NewFlagSet("example", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	i := newIssuer(t)
	own := i.options(o.ContextToken.Mode)
	o.OIDC.Issuer, o.OIDC.JWKSURL, o.ContextToken.Issuer, o.ContextToken.JWKSURL = own.OIDC.Issuer, own.OIDC.JWKSURL, own.ContextToken.Issuer, own.ContextToken.JWKSURL
	s := start(t, o)
	s.Namespaces(t, "team")
	for text := range strings.SplitSeq(string(must(os.ReadFile(examples+"bindings.yaml"))(t)), "\n---\n") {
		b := &rbacv1.RoleBinding{}
		if err := yaml.UnmarshalStrict([]byte(text), b); err != nil {
			t.Fatal(err)
		}
		must(s.Kubernetes(t).RbacV1().RoleBindings(b.Namespace).Create(t.Context(), b, metav1.CreateOptions{}))(t)
	}
	developer := []string{"Authorization", "Bearer " + i.token("ann", object{"groups": "developers"})}
	manager := []string{"Authorization", "Bearer " + i.token("bob", object{"roles": "release-manager"})}
	transaction := []string{"Txn-Token", i.transaction("cat", object{"tctx": object{"namespace": "team"}})}
	const body = `{"type":"container","command":["true"],"name":"`
	s.await(func() bool {
		code, _ := s.send(http.MethodGet, "/api/v1/tasks", "", manager...)
		return code == http.StatusOK
	})
	for name, c := range map[string]struct {
		header []string
		code   int
	}{"developer": {developer, http.StatusCreated}, "manager": {manager, http.StatusForbidden}, "transaction": {transaction, http.StatusCreated}} {
		if code, answer := s.send(http.MethodPost, "/api/v1/tasks", body+name+`"}`, c.header...); code != c.code {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	if code, answer := s.send(http.MethodGet, "/api/v1/tasks", "", transaction...); code != http.StatusForbidden {
		t.Errorf("without the scope: %d %s", code, answer)
	}
}
