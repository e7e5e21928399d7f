// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/core"
)

// TestScopes: of every kind with objects it is written down what scopes it needs, each of which a flag names, or that it is refused to
// transaction tokens.
func TestScopes(t *testing.T) {
	kinds := core.Scopes()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(external.Options).AddFlags(flags)
	var all []string
	for _, o := range v1alpha1.KnownTypes() {
		all = append(all, reflect.TypeOf(o).Elem().Name())
	}
	for _, kind := range all {
		if !slices.Contains(all, kind+"List") {
			continue
		}
		plural := v1alpha1.Plural(kind)
		covered := false
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for _, sub := range []string{"", "fork", "config", "another"} {
				families, ok := kinds.Needed(authorizer.AttributesRecord{Verb: verb, APIGroup: v1alpha1.GroupName, Resource: plural, Subresource: sub})
				covered = covered || ok && sub == ""
				for _, family := range families {
					if ok && flags.Lookup("context-token-"+strings.ReplaceAll(family, ":", "-")+"-scopes") == nil {
						t.Errorf("%s %s/%s needs %q, and no flag says which scopes those are", verb, plural, sub, family)
					}
				}
			}
		}
		if _, known := kinds[plural]; !known && !covered {
			t.Errorf("no Definition says what scopes %s need", plural)
		}
	}
}
