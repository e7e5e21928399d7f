// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiexample "k8s.io/apiserver/pkg/apis/example/v1"
)

func mustScheme(t *testing.T, install ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	s, err := NewScheme(install...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInternalVersionsAreNotPublished(t *testing.T) {
	internal := schema.GroupVersion{Group: "g", Version: runtime.APIVersionInternal}
	s := mustScheme(t, func(s *runtime.Scheme) error {
		s.AddKnownTypes(internal, &corev1.ConfigMap{})
		s.AddKnownTypes(schema.GroupVersion{Group: "g", Version: "v1"}, &corev1.ConfigMap{})
		return nil
	})
	published := withoutInternal(s)
	if published.Recognizes(internal.WithKind("ConfigMap")) {
		t.Error("the internal version is published")
	}
	if !published.Recognizes(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "ConfigMap"}) {
		t.Error("the version is not published")
	}
}

func TestServerVersionIsOneThatClientsUnderstand(t *testing.T) {
	info := effectiveVersion().Info()
	v, err := version.ParseSemantic(info.GitVersion)
	if err != nil || v.Major() != 1 || v.Minor() < 37 || info.Major != "1" {
		t.Errorf("%+v: %v", info, err)
	}
}

func TestTextOnlyLeavesOutProtobuf(t *testing.T) {
	s := mustScheme(t, corev1.AddToScheme, apiexample.AddToScheme)
	all := Codecs(s).SupportedMediaTypes()
	text := textOnly{Codecs(s)}.SupportedMediaTypes()
	if len(text) != len(all)-1 {
		t.Errorf("%d of %d media types", len(text), len(all))
	}
	for _, i := range text {
		if i.MediaType == runtime.ContentTypeProtobuf {
			t.Error("protobuf is still there")
		}
	}
	if !speaksProtobuf(s, "") {
		t.Error("the core group has protobuf")
	}
}
