// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/models"
)

// roles allows what it lists, as "user verb resource/name namespace".
func roles(allowed ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked := a.GetUser().GetName() + " " + a.GetVerb() + " " + a.GetResource() + "/" + a.GetName() + " " + a.GetNamespace()
		if a.GetAPIGroup() != v1alpha1.GroupName || !a.IsResourceRequest() {
			return authorizer.DecisionDeny, "", errors.New("not a resource of the group")
		}
		if slices.Contains(allowed, asked) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	const worker = "system:serviceaccount:a:" + v1alpha1.ServiceAccountAIWorker
	m, err := models.New(models.Options{Loopback: &rest.Config{Host: "https://localhost"}, Authorizer: roles(
		"eve create chats/ a", "eve list providers/ a", "eve get agents/x a", "eve list providers/ b",
		"bob create chats/ a", worker+" create chats/ a", worker+" list providers/ a",
	)})
	if err != nil {
		t.Fatal(err)
	}
	agent := func(name string) models.Access {
		return models.Access{Verb: "get", Resource: "agents", Name: name}
	}
	for name, tc := range map[string]struct {
		user, namespace string
		needs           []models.Access
		missing         string // empty if it is allowed
	}{
		"both":                  {"eve", "a", models.Chat(), ""},
		"with an agent":         {"eve", "a", models.Chat(agent("x")), ""},
		"another agent":         {"eve", "a", models.Chat(agent("y")), "get on agents"},
		"only one of both":      {"bob", "a", models.Chat(), "list on providers"},
		"another namespace":     {"eve", "b", models.Chat(), "create on chats"},
		"models of a namespace": {"eve", "b", models.Discover(), ""},
		"a worker":              {worker, "a", models.Chat(), "a worker"},
	} {
		err := m.Authorize(t.Context(), &user.DefaultInfo{Name: tc.user}, tc.namespace, tc.needs...)
		switch {
		case tc.missing == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.missing != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.missing)):
			t.Errorf("%s: %v, want a refusal that says %q", name, err, tc.missing)
		}
	}
}
