// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"maps"
	"net/http/httptest"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// serve serves the resources over HTTP from a store of its own, without authentication, and returns the client
// configuration.
func serve(t *testing.T, resources ...resource.Resource) *rest.Config {
	t.Helper()
	scheme, err := apiserver.NewScheme(widgets)
	if err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	c := genericapiserver.NewConfig(codecs)
	c.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString("1.37", "", "")
	c.ExternalAddress = "127.0.0.1:443"
	c.LoopbackClientConfig = &rest.Config{}
	c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	defs := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := apiextensions.GetOpenAPIDefinitions(ref)
		maps.Copy(all, widgetDefinitions(ref))
		return all
	}
	namer := openapi.NewDefinitionNamer(scheme)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(defs, namer)
	c.SkipOpenAPIInstallation = true
	server, err := c.Complete(nil).New("kit", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(widgetGV.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	info.VersionedResourcesStorageMap["v1"] = map[string]registryrest.Storage{}
	kit := resource.Config{Scheme: scheme, RESTOptions: newStore(t, scheme), Clock: clock.RealClock{}}
	for _, r := range resources {
		if err := r.Register(scheme); err != nil {
			t.Fatal(err)
		}
		paths, err := r.Storage(t.Context(), kit)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(info.VersionedResourcesStorageMap["v1"], paths)
	}
	if err := server.InstallAPIGroup(&info); err != nil {
		t.Fatal(err)
	}
	server.PrepareRun()
	hs := httptest.NewServer(server.Handler)
	t.Cleanup(hs.Close)
	return &rest.Config{Host: hs.URL, QPS: -1}
}
