// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// ReadBody reads the body of a connected request, at most limit bytes. Call it before anything is written to w.
// Errors are API errors.
func ReadBody(w http.ResponseWriter, req *http.Request, limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, req.Body, limit))
	if _, refused := errors.AsType[*apierrors.StatusError](err); refused {
		return nil, err
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body must be at most %d bytes", limit))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("the body could not be read: " + err.Error())
	}
	return data, nil
}

// DecodeBody decodes the body of a connected request as JSON or YAML, depending on its media type. Decoding is strict
// if the request sets fieldValidation=Strict, as for any other write. A body without a kind is decoded as the given
// one. Errors are API errors.
func DecodeBody(scheme *runtime.Scheme, req *http.Request, data []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		media = runtime.ContentTypeJSON
	}
	o := json.SerializerOptions{Yaml: media == runtime.ContentTypeYAML, Strict: wellformed.Query(req).Get("fieldValidation") == metav1.FieldValidationStrict}
	if media != runtime.ContentTypeJSON && !o.Yaml {
		return nil, negotiation.NewUnsupportedMediaTypeError([]string{runtime.ContentTypeJSON, runtime.ContentTypeYAML})
	}
	if !utf8.Valid(data) { // the decoder would put U+FFFD in its place
		return nil, apierrors.NewBadRequest("the body must be UTF-8")
	}
	obj, _, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, o).Decode(data, &kind, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %v", kind.Kind, err))
	}
	return obj, nil
}

// Limit returns how many objects a search returns: the default if the caller names no number, and at most the maximum.
func Limit(asked int32, otherwise, most int) (int, error) {
	switch {
	case asked < 0:
		return 0, apierrors.NewBadRequest("limit: must be at least 1")
	case asked == 0:
		return otherwise, nil
	}
	return min(int(asked), most), nil
}
