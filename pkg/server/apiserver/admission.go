// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
)

// addAdmission sets up the admission chain and priority and fairness. It returns the informers that they read, which
// the generic server starts and /readyz waits for.
func (c CompletedConfig) addAdmission() (informers.SharedInformerFactory, error) {
	host := c.Host
	if host == nil {
		host = c.Generic.LoopbackClientConfig
	}
	client, err := kubernetes.NewForConfig(host)
	if err != nil {
		return nil, fmt.Errorf("admission client: %w", err)
	}
	objects, err := dynamic.NewForConfig(host)
	if err != nil {
		return nil, fmt.Errorf("admission client: %w", err)
	}
	// The first plugin that needs kinds looks them up, which is after the start.
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	factory := informers.NewSharedInformerFactory(client, 0)
	namespaces, err := lifecycle.NewLifecycle(sets.New(c.Immortal...))
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", lifecycle.PluginName, err)
	}
	plugins := slices.Concat([]admission.Interface{namespaces}, c.Admission)
	init := initializer.New(client, objects, factory, c.Generic.Authorization.Authorizer, c.Generic.FeatureGate,
		c.Generic.EffectiveVersion, c.Generic.DrainedNotify(), kinds)
	for _, p := range plugins {
		init.Initialize(p)
		if v, ok := p.(admission.InitializationValidator); ok {
			if err := v.ValidateInitialization(); err != nil {
				return nil, fmt.Errorf("admission: %w", err)
			}
		}
	}
	c.Generic.AdmissionControl = admissionmetrics.WithStepMetrics(admission.NewChainHandler(plugins...))
	if c.PriorityAndFairness {
		c.Generic.FlowControl = flowcontrol.New(factory, client.FlowcontrolV1(), c.Generic.MaxRequestsInFlight+c.Generic.MaxMutatingRequestsInFlight)
	}
	return factory, nil
}
