// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/platform-ai/platform/pkg/version"
)

// NewScheme makes a scheme of the meta types and of what the installers add.
func NewScheme(install ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	// Clients send options (ListOptions, DeleteOptions …) as v1, whatever group they address.
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, v1)
	s.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	for _, f := range install {
		if err := f(s); err != nil {
			return nil, fmt.Errorf("scheme: %w", err)
		}
	}
	return s, nil
}

// Codecs returns the codecs of the scheme: JSON, YAML and protobuf. Unknown and repeated fields are errors when a
// client requests strict validation.
func Codecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme,
		serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
}

// textOnly serves without protobuf, for groups whose types lack that encoding. A client that prefers protobuf but
// also accepts JSON then gets JSON.
type textOnly struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes leaves out protobuf.
func (t textOnly) SupportedMediaTypes() []runtime.SerializerInfo {
	var infos []runtime.SerializerInfo
	for _, i := range t.NegotiatedSerializer.SupportedMediaTypes() {
		if i.MediaType != runtime.ContentTypeProtobuf {
			infos = append(infos, i)
		}
	}
	return infos
}

// speaksProtobuf reports whether every kind of the group has a protobuf encoding.
func speaksProtobuf(scheme *runtime.Scheme, group string) bool {
	for _, gv := range scheme.PrioritizedVersionsForGroup(group) {
		for kind := range scheme.KnownTypes(gv) {
			obj, err := scheme.New(gv.WithKind(kind))
			if err != nil {
				return false
			}
			if _, ok := obj.(interface{ Marshal() ([]byte, error) }); !ok {
				return false
			}
		}
	}
	return true
}

// kubernetesVersion is the version of Kubernetes whose API behaviour this server has: that of k8s.io/apiserver in go.mod.
const kubernetesVersion = "1.37.2"

// serverVersion is what clients read at /version. They compare it with their own version and parse it as a semantic
// version, so it is the version of Kubernetes with that of the platform as build metadata.
type serverVersion struct {
	basecompatibility.EffectiveVersion
}

func effectiveVersion() basecompatibility.EffectiveVersion {
	return serverVersion{basecompatibility.NewEffectiveVersionFromString(kubernetesVersion, "", "")}
}

// Info returns the version and the build.
func (v serverVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = "v" + kubernetesVersion + "+platform"
	info.GitCommit, info.GitTreeState, info.BuildDate = version.Version(), "", ""
	return info
}
