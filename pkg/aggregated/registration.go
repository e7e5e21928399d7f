// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// AnnotationReadyAt is set on the APIService while it is not available, to have it checked again.
	AnnotationReadyAt = "platform.ai/ready-at"
	// caKey is the key of the ConfigMap SERVICE-ca.
	caKey = "ca.crt"
	// knockMin and knockMax bound the time between two updates of an APIService that stays unavailable.
	knockMin, knockMax = 250 * time.Millisecond, 5 * time.Second
	// lookAgain is after how long the registration is looked at although nothing was heard.
	lookAgain = 10 * time.Minute
)

// registration keeps the APIService of the group in order.
//
// kube-apiserver looks at a server that failed ever more rarely, up to every 30 s, but looks at once when the
// APIService changes. So a server that is ready while the APIService is not Available changes an annotation of it,
// again and ever more slowly until it is.
type registration struct {
	client    dynamic.Interface
	host      kubernetes.Interface
	namespace string
	service   string
	cert      *certificate
	clock     clock.WithTickerAndDelayedExecution

	delay  time.Duration // before the next knock; 0 while the APIService is available
	before time.Time     // of the last knock
}

func apiServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

func apiServiceName() string {
	return v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.SchemeGroupVersion.Group
}

// run works until ctx ends. It begins when the server answers.
func (r *registration) run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("registration")
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(r.client, apiServices(), "", 0, nil, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, apiServiceName()).String()
	}).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, obj any) { notify(obj) },
	})
	if err != nil {
		log.Error(err, "The APIService cannot be watched")
		return
	}
	go informer.RunWithContext(ctx)
	if err := r.publishCA(ctx); err != nil {
		log.Error(err, "The CA could not be published")
	}
	for {
		wait := lookAgain
		if obj, ok, _ := informer.GetStore().GetByKey(apiServiceName()); ok {
			if wait, err = r.keep(ctx, obj.(*unstructured.Unstructured)); err != nil && ctx.Err() == nil {
				log.Error(err, "The APIService could not be kept in order", "name", apiServiceName())
			}
		}
		timer := r.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
		case <-timer.C():
		case <-r.cert.renewed:
			if err := r.publishCA(ctx); err != nil {
				log.Error(err, "The CA could not be published")
			}
		}
		timer.Stop()
	}
}

// keep does what the APIService needs now, and tells when to look again.
func (r *registration) keep(ctx context.Context, s *unstructured.Unstructured) (time.Duration, error) {
	namespace, _, _ := unstructured.NestedString(s.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(s.Object, "spec", "service", "name")
	if namespace != r.namespace || name != r.service {
		return lookAgain, fmt.Errorf("it belongs to the Service %s/%s, not to %s/%s", namespace, name, r.namespace, r.service)
	}
	bundle, _, _ := unstructured.NestedString(s.Object, "spec", "caBundle")
	if want := base64.StdEncoding.EncodeToString(r.cert.ca()); want != "" && bundle != want {
		if err := r.patch(ctx, map[string]any{"spec": map[string]any{"caBundle": want}}); err != nil {
			return knockMax, err
		}
		r.delay = 0 // which is a knock, too
	}
	if available(s) {
		r.delay = 0
		return lookAgain, nil
	}
	now := r.clock.Now()
	if wait := r.delay - now.Sub(r.before); r.delay > 0 && wait > 0 {
		return wait, nil
	}
	r.delay, r.before = min(max(2*r.delay, knockMin), knockMax), now
	at := now.UTC().Format(time.RFC3339Nano)
	return r.delay, r.patch(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationReadyAt: at}}})
}

func (r *registration) patch(ctx context.Context, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.client.Resource(apiServices()).Patch(ctx, apiServiceName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: DefaultService})
	return err
}

// available tells what kube-apiserver found when it last looked.
func available(s *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Available" {
			return m["status"] == "True"
		}
	}
	return false
}

// publishCA writes the CA into the ConfigMap that clients read who come straight to this server, if there is one.
func (r *registration) publishCA(ctx context.Context) error {
	ca := r.cert.ca()
	if ca == nil {
		return nil
	}
	maps := r.host.CoreV1().ConfigMaps(r.namespace)
	m, err := maps.Get(ctx, r.service+"-ca", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && bytes.Equal([]byte(m.Data[caKey]), ca) {
		return nil
	}
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"data": map[string]string{caKey: string(ca)}})
	if err != nil {
		return err
	}
	_, err = maps.Patch(ctx, m.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: DefaultService})
	return err
}
