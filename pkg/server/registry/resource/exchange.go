// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// maxExchange is the maximum length of the body of a request to an Exchange, in bytes: that of every request.
const maxExchange = 15 << 20

// Exchange is the shape of a request that is answered and not stored, as an Action, but whose answer may take as long as
// it needs and may be a stream. The generic handler of creates allows 34 seconds and one object, so the server gives
// such a request to Definition.Creates instead. Authentication, authorization, guards and admission are the same.
type Exchange[T Object] struct {
	// Serve answers. The namespace of the request is in its context. Errors before the answer begins are given to
	// answer.
	Serve func(req *http.Request, obj T, answer Answer)
}

// Answer receives what an Exchange answers.
type Answer struct {
	// Writer is for answers that are streams.
	Writer http.ResponseWriter
	// Object writes the object, Accepted writes one whose answer is not complete yet (202), and Error an error.
	Object, Accepted func(obj runtime.Object)
	Error            func(err error)
}

func (s Exchange[T]) storage(_ context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error) { //nolint:unparam // as of all shapes
	if s.Serve == nil {
		return parent[T]{}, errors.New("an exchange needs Serve")
	}
	x := &exchange[T]{k: k, serve: s.Serve, codecs: serializer.NewCodecFactory(k.Scheme)}
	var h http.Handler = x
	k.creates.Store(&h)
	// Discovery and the OpenAPI document come from this. It is called only if the server forgot Creates.
	unserved := func(context.Context, T) (T, error) {
		var none T
		return none, apierrors.NewServiceUnavailable(k.Resource.Resource + " are not served")
	}
	paths[k.Resource.Resource] = &struct {
		naming[T]
		createREST[T]
	}{naming[T]{k}, createREST[T]{k, unserved, false, false, nil}}
	return parent[T]{}, nil
}

// Creates returns the handler of creates; nil if the shape is not Exchange, or Storage has not been called.
func (d *Definition[T]) Creates() http.Handler {
	if h := d.creates.Load(); h != nil {
		return *h
	}
	return nil
}

type exchange[T Object] struct {
	k      *kind[T]
	serve  func(*http.Request, T, Answer)
	codecs serializer.CodecFactory
}

// ServeHTTP answers a create that was authenticated and authorized.
func (x *exchange[T]) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	gv := x.k.Resource.GroupVersion()
	write := func(code int) func(runtime.Object) {
		return func(obj runtime.Object) {
			obj.GetObjectKind().SetGroupVersionKind(gv.WithKind(x.k.Kind))
			responsewriters.WriteRawJSON(code, obj, w)
		}
	}
	answer := Answer{
		Writer: w, Object: write(http.StatusCreated), Accepted: write(http.StatusAccepted),
		Error: func(err error) {
			responsewriters.ErrorNegotiated(x.k.statusError("", err), x.codecs, gv, w, req)
		},
	}
	ns := ""
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		ns = info.Namespace
	}
	ctx := request.WithNamespace(req.Context(), ns)
	obj, err := x.read(ctx, w, req, ns)
	if err != nil {
		answer.Error(err)
		return
	}
	dry := slices.Contains(wellformed.Query(req)["dryRun"], metav1.DryRunAll)
	if err := x.admit(ctx, obj, ns, dry); err != nil {
		answer.Error(err)
		return
	}
	if dry {
		answer.Object(obj)
		return
	}
	x.serve(req.WithContext(ctx), obj, answer)
}

// read decodes the object and asks the guard.
func (x *exchange[T]) read(ctx context.Context, w http.ResponseWriter, req *http.Request, ns string) (T, error) {
	var none T
	data, err := ReadBody(w, req, maxExchange)
	if err != nil {
		return none, err
	}
	decoded, err := DecodeBody(x.k.Scheme, req, data, x.k.Resource.GroupVersion().WithKind(x.k.Kind))
	if err != nil {
		return none, err
	}
	obj, ok := decoded.(T)
	if !ok {
		return none, apierrors.NewBadRequest(fmt.Sprintf("the body must be a %s, not a %s", x.k.Kind, decoded.GetObjectKind().GroupVersionKind().Kind))
	}
	rest.WipeObjectMetaSystemFields(obj)
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(ns, obj); err != nil {
		return none, err
	}
	return obj, x.k.allowed(ctx, "create", "", obj)
}

func (x *exchange[T]) admit(ctx context.Context, obj T, ns string, dry bool) error {
	if x.k.Admission == nil || !x.k.Admission.Handles(admission.Create) {
		return nil
	}
	caller, _ := request.UserFrom(ctx)
	a := admission.NewAttributesRecord(obj, nil, x.k.Resource.GroupVersion().WithKind(x.k.Kind), ns, obj.GetName(), x.k.Resource, "",
		admission.Create, &metav1.CreateOptions{}, dry, caller)
	o := admission.NewObjectInterfacesFromScheme(x.k.Scheme)
	if m, ok := x.k.Admission.(admission.MutationInterface); ok {
		if err := m.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	if v, ok := x.k.Admission.(admission.ValidationInterface); ok {
		return v.Validate(ctx, a, o)
	}
	return nil
}
