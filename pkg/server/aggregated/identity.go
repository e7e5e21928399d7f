// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// defaultPort is the port of a Service that an APIService means if it names none.
const defaultPort = 443

// unknownStore stands for the store of an APIService that names none.
const unknownStore = "unknown"

var (
	errUnread = errors.New("the APIService " + apiServiceName() + " has not been read yet")
	errAbsent = errors.New("there is no APIService " + apiServiceName() + "; apply the manifests, which have it")
)

// claim is what an APIService says about which server serves the group.
type claim struct {
	store   string // the identity of the registered store; empty if none is named
	holder  string // the Service of the server that has the store, as NAMESPACE/NAME; empty if none is named
	service string // the Service that kube-apiserver calls, as NAMESPACE/NAME
	port    int64  // the port of that Service
	bundle  string // the CA of that Service, in base64
	blind   bool   // kube-apiserver calls it without looking at its certificate
}

func claimOf(s *unstructured.Unstructured) claim {
	namespace, _, _ := unstructured.NestedString(s.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(s.Object, "spec", "service", "name")
	port, found, _ := unstructured.NestedInt64(s.Object, "spec", "service", "port")
	if !found {
		port = defaultPort
	}
	bundle, _, _ := unstructured.NestedString(s.Object, "spec", "caBundle")
	blind, _, _ := unstructured.NestedBool(s.Object, "spec", "insecureSkipTLSVerify")
	a := s.GetAnnotations()
	return claim{
		store: a[v1alpha1.AnnotationStoreID], holder: a[v1alpha1.AnnotationStoreService],
		service: namespace + "/" + name, port: port, bundle: bundle, blind: blind,
	}
}

// judge returns nil if this server may serve the group, and otherwise the reason why not. A group has one store. A
// server with another store never registers it in place of the first one, whether or not the first one is alive:
// otherwise an outage of the first store would silently lead to an empty one. For the same reason no Lease tells whether
// the first one is alive: it would expire when that server is away, which is exactly when an empty store must not step in.
func (r *registration) judge(c claim) error {
	own := r.namespace + "/" + r.service
	switch {
	case r.takeOver != "" && r.takeOver == cmp.Or(c.store, unknownStore):
		return nil
	case c.store == r.store && (c.holder == own || c.holder == ""):
		return nil
	case c.store == r.store:
		return fmt.Errorf("the APIService %s has store %s registered for the Service %s, and this server, of the Service %s, has a copy of it: "+
			"if the other one is gone for good, start this server once with --take-over=%s", apiServiceName(), c.store, c.holder, own, c.store)
	case c.store != "":
		return fmt.Errorf("the APIService %s has store %s registered, of the Service %s, and this server has store %s: a cluster has one installation. "+
			"If the volume of %s was lost for good, start this server once with --take-over=%s; otherwise give it that volume, or remove this installation",
			apiServiceName(), c.store, c.holder, r.store, c.store, c.store)
	case r.mine:
		return nil // somebody removed the annotation
	case c.service != own:
		return fmt.Errorf("the APIService %s belongs to the Service %s, and this server to %s: a cluster has one installation. "+
			"If the other one is gone for good, start this server once with --take-over=%s", apiServiceName(), c.service, own, unknownStore)
	case c.bundle != "" && r.cert.ca() != nil && c.bundle != r.bundle():
		return fmt.Errorf("the APIService %s has the CA of another server. If this server has a new volume because "+
			"the old one was lost for good, start this server once with --take-over=%s", apiServiceName(), unknownStore)
	default:
		return nil
	}
}

// bundle returns the CA in the form that an APIService contains; empty if the certificate was given by the operator.
func (r *registration) bundle() string { return base64.StdEncoding.EncodeToString(r.cert.ca()) }

// missing returns what an APIService needs in order to lead to this server, as a merge patch, and the fields that it changes; nil if
// nothing is missing. port is that of the server's Service.
func (r *registration) missing(c claim, port int64) (change map[string]any, changed []string) {
	own := r.namespace + "/" + r.service
	change, spec, service := map[string]any{}, map[string]any{}, map[string]any{}
	if c.store != r.store || c.holder != own {
		change["metadata"] = map[string]any{"annotations": r.annotations()}
		changed = append(changed, fieldStore)
	}
	if c.service != own {
		service["namespace"], service["name"] = r.namespace, r.service
		changed = append(changed, fieldService)
	}
	if c.port != port {
		service["port"] = port
		changed = append(changed, fieldPort)
	}
	if len(service) > 0 {
		spec["service"] = service
	}
	// Whoever gives the certificate also decides how kube-apiserver verifies it.
	if want := r.bundle(); want != "" && (c.blind || c.bundle != want) {
		spec["caBundle"], spec["insecureSkipTLSVerify"] = want, false // the API accepts only one of both
		if c.blind {
			changed = append(changed, fieldInsecure)
		}
		if c.bundle != want && c.bundle != r.written { // otherwise the CA is renewed
			changed = append(changed, fieldBundle)
		}
	}
	if len(spec) > 0 {
		change["spec"] = spec
	}
	return change, changed
}

func (r *registration) annotations() map[string]any {
	return map[string]any{v1alpha1.AnnotationStoreID: r.store, v1alpha1.AnnotationStoreService: r.namespace + "/" + r.service}
}

// lost returns a new APIService of this server with the content that was last seen.
func (r *registration) lost() map[string]any {
	spec, _, _ := unstructured.NestedMap(r.seen.Object, "spec")
	spec["service"] = mergeService(spec["service"], r.namespace, r.service)
	if want := r.bundle(); want != "" {
		spec["caBundle"] = want
	}
	annotations := r.annotations()
	for k, v := range r.seen.GetAnnotations() { // of whoever installed it, such as Helm's mark of its release
		if _, own := annotations[k]; !own && k != AnnotationReadyAt {
			annotations[k] = v
		}
	}
	metadata := map[string]any{"name": apiServiceName(), "annotations": annotations}
	if labels := r.seen.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	return map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}
}

func mergeService(seen any, namespace, name string) map[string]any {
	service, _ := seen.(map[string]any)
	if service == nil {
		service = map[string]any{}
	}
	service["namespace"], service["name"] = namespace, name
	return service
}
