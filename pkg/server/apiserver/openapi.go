// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"sync"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
)

// addOpenAPI sets the OpenAPI configuration. The generic server uses it only to build the models of server-side
// apply; lazyOpenAPI serves the documents.
func addOpenAPI(g *genericapiserver.Config, scheme *runtime.Scheme, definitions []common.GetOpenAPIDefinitions) {
	all := merged(definitions)
	namer := openapi.NewDefinitionNamer(withoutInternal(scheme))
	g.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(all, namer)
	g.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(all, namer)
	g.OpenAPIConfig.Info.Title, g.OpenAPIV3Config.Info.Title = "Platform", "Platform"
	g.SkipOpenAPIInstallation = true
}

// merged returns all definitions.
func merged(definitions []common.GetOpenAPIDefinitions) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := map[string]common.OpenAPIDefinition{}
		for _, get := range definitions {
			maps.Copy(all, get(ref))
		}
		return all
	}
}

// withoutInternal copies the scheme without internal versions. The internal versions are the same Go types as the
// versioned ones, and clients must not see an __internal version of a kind.
func withoutInternal(scheme *runtime.Scheme) *runtime.Scheme {
	out := runtime.NewScheme()
	for gvk, t := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if obj, ok := reflect.TypeAssert[runtime.Object](reflect.New(t)); ok {
			out.AddKnownTypeWithName(gvk, obj)
		}
	}
	return out
}

// lazyOpenAPI serves /openapi/v2 and /openapi/v3 and builds each on its first request. Building them costs more time
// and memory than the rest of the start, and a server that only runs tasks never needs them.
type lazyOpenAPI struct {
	server *genericapiserver.GenericAPIServer
	v2     *common.Config
	v3     *common.OpenAPIV3Config
}

func newLazyOpenAPI(s *genericapiserver.GenericAPIServer, g *genericapiserver.Config) *lazyOpenAPI {
	return &lazyOpenAPI{server: s, v2: g.OpenAPIConfig, v3: g.OpenAPIV3Config}
}

func (l *lazyOpenAPI) install() {
	m := l.server.Handler.NonGoRestfulMux
	m.Handle("/openapi/v2", onFirstUse(l.buildV2))
	v3 := onFirstUse(l.buildV3)
	m.Handle("/openapi/v3", v3)
	m.HandlePrefix("/openapi/v3/", v3)
}

func onFirstUse(build func() (http.Handler, error)) http.Handler {
	once := sync.OnceValues(build)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := once()
		if err != nil {
			klog.FromContext(r.Context()).Error(err, "OpenAPI document cannot be built")
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (l *lazyOpenAPI) buildV2() (http.Handler, error) {
	services := restfuladapter.AdaptWebServices(l.server.Handler.GoRestfulContainer.RegisteredWebServices())
	doc, err := builder.BuildOpenAPISpecFromRoutes(services, l.v2)
	if err != nil {
		return nil, fmt.Errorf("OpenAPI v2: %w", err)
	}
	doc.Definitions = handler.PruneDefaults(doc.Definitions)
	m := mux.NewPathRecorderMux("openapi-v2")
	handler.NewOpenAPIService(doc).RegisterOpenAPIVersionedService("/openapi/v2", m)
	return m, nil
}

func (l *lazyOpenAPI) buildV3() (http.Handler, error) {
	m := mux.NewPathRecorderMux("openapi-v3")
	service := handler3.NewOpenAPIService()
	if err := service.RegisterOpenAPIV3VersionedService("/openapi/v3", m); err != nil {
		return nil, fmt.Errorf("OpenAPI v3: %w", err)
	}
	for _, ws := range l.server.Handler.GoRestfulContainer.RegisteredWebServices() {
		doc, err := builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{ws}), l.v3)
		if err != nil {
			return nil, fmt.Errorf("OpenAPI v3 of %s: %w", ws.RootPath(), err)
		}
		service.UpdateGroupVersion(ws.RootPath()[1:], doc)
	}
	return m, nil
}
