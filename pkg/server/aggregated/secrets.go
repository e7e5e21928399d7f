// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// secretsPath begins the paths of the Secrets of a namespace.
const secretsPath = "/api/v1/namespaces/" //nolint:gosec // a path, not a credential

// secretNames answers which Secrets a namespace of the cluster has, for the REST path. The chain has asked the cluster
// whether the caller may list them. The cluster is asked for a table, so no value of a Secret reaches this process.
type secretNames struct {
	host   rest.Interface
	codecs serializer.CodecFactory
}

// ServeHTTP answers a list. There is nothing else of Kubernetes' core API on this server.
func (s secretNames) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.Verb != "list" || info.Resource != "secrets" || info.Subresource != "" {
		s.fail(w, r, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, corev1.Resource("secrets"), "", "", 0, true))
		return
	}
	if q := wellformed.Query(r); q.Has("labelSelector") || q.Has("fieldSelector") { // the caller may be allowed to list only what these select
		s.fail(w, r, apierrors.NewBadRequest("Secrets are listed without selectors here; ask kube-apiserver"))
		return
	}
	list, err := s.list(r, info.Namespace)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	responsewriters.WriteRawJSON(http.StatusOK, list, w)
}

func (s secretNames) fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, s.codecs, corev1.SchemeGroupVersion, w, r)
}

// list returns a page of Secrets without what they hold.
func (s secretNames) list(r *http.Request, namespace string) (*corev1.SecretList, error) {
	req := s.host.Get().Namespace(namespace).Resource("secrets").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	for _, name := range []string{"limit", "continue"} {
		if v := wellformed.Query(r).Get(name); v != "" {
			req.Param(name, v)
		}
	}
	raw, err := req.Do(r.Context()).Raw()
	if err != nil {
		if apierrors.IsForbidden(err) { // the caller may list them
			return nil, apierrors.NewServiceUnavailable("this server may not list the Secrets of the cluster; apply the manifests of this version, or ask kube-apiserver")
		}
		return nil, err
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("table of Secrets: %w", err)
	}
	kind := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Type" })
	if table.Kind != "Table" || kind < 0 {
		return nil, errors.New("the cluster did not answer with a table of Secrets")
	}
	out := &corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}, ListMeta: table.ListMeta, Items: []corev1.Secret{}}
	for _, row := range table.Rows {
		var one metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &one); err != nil {
			return nil, fmt.Errorf("table of Secrets: %w", err)
		}
		text, _ := row.Cells[kind].(string)
		out.Items = append(out.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: one.Namespace}, Type: corev1.SecretType(text)})
	}
	return out, nil
}
