// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/kit"
)

// Each role, and somebody without any, is shown exactly the buttons whose requests the server would permit, and a view that may
// not be read says so.
func TestButtonsOfRoles(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Objects()
	approval := f.Ask("asks", "remove the old files", map[string]string{"code": "rm -r old"})
	roles, err := f.Kubernetes(t).RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{"nobody": f.token("nobody", "")}
	for _, r := range roles.Items {
		// The roles of this project, and the administrator's of the host. That of workers cannot be bound to anybody else.
		if strings.HasPrefix(r.Name, "platform-") && r.Name != "platform-worker" || r.Name == "admin" || r.Name == "cluster-admin" {
			tokens[r.Name] = f.token("as-"+r.Name, r.Name)
		}
	}
	if len(tokens) < 5 {
		t.Fatalf("there are only the roles %v", tokens)
	}
	// platform console gives its page the same rights.
	base, secret := f.local("--token", tokens["platform-viewer"], "-n", "team")
	tokens["platform-viewer, by platform console"] = base + "/console/login#once=" + secret
	text, err := json.Marshal(tokens)
	if err != nil {
		t.Fatal(err)
	}
	f.drive("roles.mjs", 1, "KEYS="+string(text), "APPROVAL="+approval)
}
