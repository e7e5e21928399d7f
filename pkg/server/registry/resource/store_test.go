// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
)

func newStore(t *testing.T, scheme *runtime.Scheme) generic.RESTOptionsGetter {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	db, err := object.Open(t.Context(), e, object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return object.NewRESTOptionsGetter(object.RESTOptions{DB: db, Scheme: scheme, Codecs: apiserver.Codecs(scheme)})
}
