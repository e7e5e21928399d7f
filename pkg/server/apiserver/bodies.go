// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/jsonsize"
	"github.com/platform-ai/platform/pkg/server/compat"
	"github.com/platform-ai/platform/pkg/server/intake"
)

// guard closes the bodies of all requests of a listener until they are admitted, but for those to doors, which read bounded ones,
// and counts the requests that panic.
func (c *Config) guard(h http.Handler, g *genericapiserver.Config) http.Handler {
	if c.Intake != nil {
		h = c.Intake.Guard(h)
	}
	return c.Panics.Guard(c.Doors.Wrap(h, func(handle http.Handler) http.Handler { return c.audited(handle, g) }))
}

// audited writes the requests that a door let in to the audit log, as requests of their callers, and answers those that panic.
func (c *Config) audited(handle http.Handler, g *genericapiserver.Config) http.Handler {
	h := c.answerPanics(handle, g)
	h = genericapifilters.WithAudit(h, g.AuditBackend, g.AuditPolicyRuleEvaluator, g.LongRunningFunc)
	h = genericapifilters.WithRequestInfo(h, plainPaths{})
	h = genericapifilters.WithRequestReceivedTimestamp(h)
	return genericapifilters.WithAuditInit(h)
}

// plainPaths describes requests to doors: their paths name no resources, although some of them look so.
type plainPaths struct{}

// NewRequestInfo describes a request.
func (plainPaths) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	return &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}, nil
}

// guardListener makes guard the outermost handler of the secure listener, but for Names, and withoutAmbient the next.
func (c *Config) guardListener() {
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		if g.RequestInfoResolver != nil {
			g.RequestInfoResolver = lenient{g.RequestInfoResolver}
		}
		inside := c.guard(withoutAmbient(c.probes(chain(api, g))), g)
		if c.Names != nil {
			inside = c.Names(inside)
		}
		return onLargeStack(inside)
	}
}

// probes answers probes in JSON to those who ask for it. They need no credentials, as in the chain.
func (c *Config) probes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked := c.Health != nil && r.Method == http.MethodGet && r.Header.Get("Accept") == runtime.ContentTypeJSON; {
		case asked && r.URL.Path == "/healthz":
			c.Health.Alive(w, r)
		case asked && r.URL.Path == "/readyz":
			c.Health.Ready(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// addSparseLog sends authentication errors to the sparse log. The chain would log each of them. It wraps the authenticator
// that the chain gets: the generic server puts the one of its loopback client before ours, which returns an error for every
// token that it does not know.
func (c *Config) addSparseLog() {
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		inner := g.Authentication.Authenticator
		g.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			if !compat.IsCall(r.Context()) {
				growStack() // requests with a deadline run on a goroutine of their own, and this is its first filter
			}
			resp, ok, err := inner.AuthenticateRequest(r)
			if err != nil {
				c.Sparse.Error(r.Context(), err, "Unable to authenticate a request")
				return nil, false, nil
			}
			return resp, ok, nil
		})
		return chain(api, g)
	}
	if c.REST != nil && c.REST.Sparse == nil {
		rest := *c.REST
		rest.Sparse = c.Sparse
		c.REST = &rest
	}
}

// addIntake makes the filter that opens bodies the innermost one of the chain. Its callers are authenticated and
// authorized, and are accounted for under the name under which they act. The facade authenticates REST requests once
// more before their bodies are read.
func (c *Config) addIntake() {
	limits := map[schema.GroupVersionResource]map[string]int64{}
	for _, r := range c.Resources {
		limits[r.GroupVersionResource()] = r.BodyLimits()
	}
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		return chain(admitBodies(api, limits, g), g)
	}
	if c.REST != nil && c.REST.Authenticate == nil {
		rest := *c.REST
		rest.Authenticate = authenticate(c.Generic)
		c.REST = &rest
	}
}

// admitBodies opens a body up to the limit of its route: that of a subresource that has one, 15 MiB for requests to the vendors' APIs and
// for objects and patches of the platform in JSON, and 3 MiB for everything else, such as YAML and the resources of Kubernetes. Rows of
// the facade have limits of their own.
func admitBodies(next http.Handler, limits map[schema.GroupVersionResource]map[string]int64, g *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, known := request.UserFrom(r.Context())
		if r.ContentLength == 0 || !known || who.GetName() == user.Anonymous {
			next.ServeHTTP(w, r) // without a body, or with one that stays closed
			return
		}
		limit, admit := int64(maxBody), intake.Admit
		info, _ := request.RequestInfoFrom(r.Context())
		if isText(r) {
			admit = intake.AdmitText
		}
		if compat.IsCall(r.Context()) {
			limit, admit = compat.MaxBody, intake.AdmitText
		} else if info != nil && info.IsResourceRequest {
			gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
			special, ours := limits[gvr]
			if own, ok := special[info.Resource+"/"+info.Subresource]; ok {
				limit, admit = own, intake.Admit // some of these are any bytes; DecodeBody looks at the others
			} else if isJSON(r) {
				admit = intake.AdmitObject
				if ours {
					limit = intake.MaxJSON
				}
			} else {
				r = withYAMLCounted(r)
			}
		}
		done, err := admit(r.Context(), who.GetName(), limit)
		if err != nil {
			gv := metav1.Unversioned
			if info != nil && info.APIVersion != "" {
				gv = schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
			}
			responsewriters.ErrorNegotiated(err, g.Serializer, gv, w, r)
			return
		}
		defer done()
		next.ServeHTTP(w, r)
	})
}

// isText reports whether the body of a request is JSON or YAML.
func isText(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err != nil || isJSON(r) || media == runtime.ContentTypeYAML || strings.HasSuffix(media, "+yaml")
}

// shortYAML is the length, in bytes, of a body of YAML that cannot exceed the bounds of an object: a value takes three bytes.
const shortYAML = 64 << 10

// withYAMLCounted returns a request whose body, if it is YAML, is refused when it is read if it exceeds the bounds of an object. YAML
// cannot be counted as it arrives. Clients that apply objects send JSON under its name.
func withYAMLCounted(r *http.Request) *http.Request {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.HasSuffix(media, "yaml") {
		return r
	}
	r = r.WithContext(r.Context())
	r.Body = &countedYAML{ReadCloser: r.Body}
	return r
}

// countedYAML is a body that is read as a whole before any of it is given to the reader.
type countedYAML struct {
	io.ReadCloser
	data io.Reader // nil before the first read
}

// Read returns the next part.
func (c *countedYAML) Read(p []byte) (int, error) {
	if c.data == nil {
		all, err := io.ReadAll(c.ReadCloser)
		if err != nil {
			return 0, err
		}
		if len(all) > shortYAML {
			if doc, err := yaml.YAMLToJSON(all); err == nil && jsonsize.Object.Check(doc) != nil {
				return 0, intake.TooMany()
			}
		}
		c.data = bytes.NewReader(all)
	}
	return c.data.Read(p)
}

// isJSON reports whether the body of a request is JSON, be it an object or a patch.
func isJSON(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (media == runtime.ContentTypeJSON || strings.HasSuffix(media, "+json"))
}

// authenticate returns a func that returns the name of a request's caller, as the chain will find it; "" if the
// caller is unknown.
func authenticate(g *genericapiserver.Config) func(*http.Request) string {
	return func(r *http.Request) string {
		if audiences := g.Authentication.APIAudiences; len(audiences) > 0 {
			r = r.WithContext(authenticator.WithAudiences(r.Context(), audiences))
		}
		resp, ok, err := g.Authentication.Authenticator.AuthenticateRequest(r)
		if err != nil || !ok || resp.User.GetName() == user.Anonymous {
			return ""
		}
		return resp.User.GetName()
	}
}
